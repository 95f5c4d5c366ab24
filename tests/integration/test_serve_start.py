"""Starting servers: beside each other, in each other's way, and again."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fixtures.engine import free_port
from tests.fixtures.serve import ROOT, UNHURRIED, FirstStart, Serve, copy_of, report, spawn, write_settings

SECOND_START_WITHIN_S = 15.0
REFUSED_WITHIN_S = 30.0


@pytest.fixture
def spare_var(first_start: FirstStart) -> Iterator[Path]:
    """A prepared folder that no server runs on."""
    var = copy_of(first_start.var)
    yield var
    shutil.rmtree(var)


def test_a_second_start_is_quick_and_keeps_what_there_was(first_start: FirstStart, start_serve: Callable[..., Serve]):
    """A start on a folder that exists is ready within 15 s, with the tenants, keys and versions of before."""
    begun = time.perf_counter()
    again = start_serve()
    took_s = time.perf_counter() - begun
    report(f"the first start took {first_start.took_s:.1f} s, the second {took_s:.1f} s")

    assert took_s < SECOND_START_WITHIN_S
    assert again.call("GET", "/quotas/tenant-prod-a", key="operator").json["version"] == 1
    assert "Sluice decides on" in again.log()


def test_two_servers_stand_beside_each_other(serve: Serve, start_serve: Callable[..., Serve]):
    """A second server with a folder and a port of its own has tenants of its own, and the first goes on."""
    beside = start_serve()
    tenant = serve.tenant(qps=10)

    assert serve.decide(tenant)["allow"]
    assert beside.decide(tenant)["reasons"][0]["code"] == "unknown_tenant"
    assert beside.decide("tenant-prod-a")["allow"]


@pytest.mark.parametrize(
    ("what", "says"), [("folder", "is in use by process"), ("port", "Address already in use"), ("settings", "opa.timeout_ms")]
)
def test_a_start_in_anothers_way_says_why(serve: Serve, spare_var: Path, what: str, says: str):
    """A folder or a port in use and a wrong setting end the start at once with the reason and the remedy, and leave the other alone."""
    var = serve.var if what == "folder" else spare_var
    if what == "settings":
        write_settings(var, free_port(), {**UNHURRIED, "opa": {"timeout_ms": -1}})
    before = serve.log() if what == "folder" else ""

    refused = spawn(var, serve.port if what == "port" else free_port(), {})
    code = refused.process.wait(REFUSED_WITHIN_S)

    said = refused.log().removeprefix(before)
    assert code == 2
    assert says in said
    assert "Traceback" not in said
    assert serve.ready()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path):
    """A --var below a file ends the start with one line and its remedy."""
    (tmp_path / "file").touch()
    command = [sys.executable, "-m", "app.cli", "serve", "--var", str(tmp_path / "file" / "var")]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=REFUSED_WITHIN_S)

    assert ended.returncode == 2
    assert ended.stderr == (
        f"sluice: {tmp_path}/file/var: Not a directory\n"
        "  Make it for this user, run as the one whose it is, or name another folder with --var DIR.\n"
    )
