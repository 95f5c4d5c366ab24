"""The contract that /openapi.json gives holds for whatever a caller sends: calls made up from it by schemathesis."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.serve import Serve

EXAMPLES = 5
"""Calls per route beside those that cover its schema; all take some ten seconds."""
WITHIN_S = 60
NOT_SAID_BY_SCHEMAS = "positive_data_acceptance"
"""A schema cannot say that a name holds no invisible character, so some calls that fit it are refused with 400."""


@pytest.fixture(scope="module")
def contract(serve: Serve) -> dict[str, Any]:
    """The contract as it is served."""
    return dict(serve.call("GET", "/openapi.json", key=None).json)


@pytest.mark.timeout(2 * WITHIN_S)
def test_no_made_up_call_breaks_the_contract(serve: Serve, tmp_path: Path):
    """Whatever is sent, no answer is a 5xx or one that the contract does not describe, and what the schema excludes is refused."""
    command = [
        sys.executable,
        "-m",
        "schemathesis.cli",
        "run",
        f"{serve.url}/openapi.json",
        "-H",
        f"Authorization: Bearer {serve.keys['admin']}",
    ]
    options = f"--max-examples {EXAMPLES} --seed 1 --phases coverage,fuzzing,stateful --exclude-checks {NOT_SAID_BY_SCHEMAS} --no-color"

    ran = subprocess.run([*command, *options.split()], check=False, capture_output=True, text=True, cwd=tmp_path)

    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    assert int(re.findall(r"(\d+) generated", ran.stdout)[-1]) > 300


def test_every_route_is_described(contract: dict[str, Any]):
    """The contract has the routes that answer, hot ones included, and each but the public ones names the credential it needs."""
    public = {
        path for path, operations in contract["paths"].items() for operation in operations.values() if operation.get("security") == []
    }

    assert {"/decide", "/decide/batch", "/leases/{decision_id}/settle", "/leases/{decision_id}/renew"} <= set(contract["paths"])
    assert {"/leases/{decision_id}/cancel", "/quotas/{tenant}", "/quotas/{tenant}/history", "/usage/{tenant}"} <= set(contract["paths"])
    assert public == {"/healthz", "/readyz", "/metrics", "/version"}
    assert contract["security"] == [{"bearer": []}]


def test_a_decision_has_the_fields_that_the_contract_names(serve: Serve, contract: dict[str, Any]):
    """What is answered and what is described are the same names, admitted or refused."""
    shape = contract["components"]["schemas"]["Decision"]
    admitted, refused = serve.decide(serve.tenant()), serve.decide("nobody-knows")

    assert set(admitted) == set(refused) == set(shape["properties"])
    assert set(shape["required"]) <= set(admitted)
