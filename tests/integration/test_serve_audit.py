"""/audit of a running serve: its own sequencer signs, and files are checked by the command line."""

from pathlib import Path

import pytest

from app.audit.verification.verify import verify
from app.signing.certificates import Certificate
from tests.fixtures.serve import Serve, new_key
from tests.fixtures.waiting import wait_until


@pytest.fixture(scope="module")
def root(serve: Serve) -> Certificate:
    """The root certificate, from the folder of the log's keys."""
    return Certificate.load_pem(serve.command("audit", "keys", "export-public", "--root").encode())


def test_a_change_is_signed_as_soon_as_somebody_asks(serve: Serve):
    """A fresh checkpoint covers a quota change that was made before, and its entry is proven by it."""
    tenant = serve.tenant(qps=1)
    wait_until(lambda: serve.call("GET", f"/audit/entries?tenant={tenant}", key="auditor").json["entries"])
    entry = serve.call("GET", f"/audit/entries?tenant={tenant}&kind=quota.in_force", key="auditor").json["entries"][0]
    checkpoint = serve.call("GET", "/audit/checkpoint?fresh=true", key="auditor").json
    proof = serve.call("GET", f"/audit/entries/{entry['seq']}/proof", key="auditor")

    assert checkpoint["size"] > entry["seq"]
    assert (proof.status, proof.json["index"], proof.json["leaf_hash"]) == (200, entry["seq"], entry["leaf_hash"])


def test_an_export_over_http_and_one_by_the_command_are_whole(serve: Serve, root: Certificate, tmp_path: Path):
    """Both files are whole for the verifier, and the log says who asked for each."""
    serve.tenant(qps=1)
    serve.call("GET", "/audit/checkpoint?fresh=true", key="auditor")
    over_http, by_command = serve.call("GET", "/audit/export", key="auditor").body, tmp_path / "command.jsonl"
    serve.command("audit", "export", "--out", str(by_command))

    for file in (over_http, by_command.read_bytes()):
        report = verify(file.splitlines(keepends=True), root)
        assert (report.verdict, report.findings) == ("whole", ())
    operators = ["dev-auditor", "cli:"]
    wait_until(lambda: all(any(told.startswith(name) for told in exporters(serve)) for name in operators))


def exporters(serve: Serve) -> list[str]:
    """Who exported the log."""
    entries = serve.call("GET", "/audit/entries?kind=log.read", key="auditor").json["entries"]
    return [entry["body"]["operator"] for entry in entries if entry["body"]["read"] == "export"]


def test_the_log_is_a_part_of_readiness_and_metrics(serve: Serve):
    """/readyz says how long the log is and how fresh its signature, and a scrape has the same as numbers."""
    serve.tenant(qps=1)
    serve.call("GET", "/audit/checkpoint?fresh=true", key="auditor")
    wait_until(lambda: "signed" in serve.parts()["log"]["detail"])
    page = serve.call("GET", "/metrics", key=None).body.decode()

    assert serve.parts()["log"]["ok"]
    for gauge in ("backlog_entries", "backlog_age_seconds", "log_size", "checkpoint_age_seconds"):
        assert f'sluice_audit_{gauge}{{log="sluice/' in page


def test_roles_decide_who_reads(serve: Serve):
    """A gateway's key does not read the log, and no key at all neither."""
    new_key(serve, "log-gateway", "--role", "gateway", "--tenant", "*")

    assert serve.call("GET", "/audit/entries", key="log-gateway").status == 403
    assert serve.call("GET", "/audit/export", key=None).status == 401
