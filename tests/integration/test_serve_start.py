"""Starting servers: beside each other, in each other's way, and again."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.engine import free_port
from tests.fixtures.serve import ENGINES, ROOT, UNHURRIED, FirstStart, Serve, copy_of, report, spawn, write_settings
from tests.fixtures.waiting import wait_until

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
    ("what", "says"),
    [
        ("folder", "is in use by process"),
        ("port", "Address already in use"),
        ("settings", "opa.timeout_ms"),
        ("secrets", "subject-keys.key: does not open the key"),
    ],
)
def test_a_start_in_anothers_way_says_why(serve: Serve, spare_var: Path, what: str, says: str):
    """A folder or a port in use, a wrong setting or a wrong secret end the start with the reason and the remedy, and leave the other alone."""
    var = serve.var if what == "folder" else spare_var
    if what == "settings":
        write_settings(var, free_port(), {**UNHURRIED, "opa": {"timeout_ms": -1}})
    if what == "secrets":
        (var / "secrets" / "subject-keys.key").write_bytes(bytes(32))
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


def told(log: str) -> list[dict[str, Any]]:
    """The events of a log, each line of which must be one; what is said on stdout is left out."""
    return [json.loads(line) for line in log.splitlines() if line.startswith("{")]


def test_a_healthy_life_warns_of_nothing(spare_var: Path):
    """From start to end the log has no warning, shows lines of children as they meant them, and ends with `stopped`."""
    server = spawn(spare_var, free_port(), {}).wait_ready()
    before = len(server.log())
    server.stop()
    life, end = told(server.log()), told(server.log()[before:])

    worse = [event["event"] for event in life if event["level"] not in ("debug", "info")]
    assert [event for event in worse if "Running OPA with root privileges" not in event] == []
    assert [event["line"] for event in life if event["event"] == "child_line" and event["line"].startswith("{")] == []
    assert [event["event"] for event in end] == ["stopping", "stopped"]


def test_the_banner_tells_where_engines_listen(serve: Serve):
    """What a newcomer has to type stands in the banner: our address, the engines' and where the keys are."""
    wait_until(lambda: 'gateway"])' in serve.log().partition(f"Sluice decides on {serve.url}\n")[2])
    banner = serve.log().partition(f"Sluice decides on {serve.url}\n")[2].splitlines()

    for name, models in ENGINES.items():
        assert f"  stand-in engine {name}: http://127.0.0.1:{serve.engine_port(name)} ({', '.join(models)})" in banner
    assert any(str(serve.var / "dev-keys.json") in line for line in banner)


def test_wrong_engines_are_told_while_serving(start_serve: Callable[..., Serve]):
    """A wrong kind in the settings file changes nothing; /readyz says what is wrong, a metric counts it, a warning is logged."""
    server = start_serve()
    file = server.var / "sluice.yaml"
    good = file.read_text()
    assert server.parts()["engines"] == {"ok": True, "detail": "2 configured"}

    wrong = server.var / "wrong.yaml"
    wrong.write_text(good.replace("models:", "kind: vlmm\n  models:"))
    wrong.replace(file)
    wait_until(lambda: not server.parts()["engines"]["ok"])
    assert "sluice.yaml: engines[0].kind: Input should be 'vllm'" in server.parts()["engines"]["detail"]
    assert server.parts()["telemetry"]["ok"]
    assert 'sluice_config_loads_total{file="engines",result="refused"} 1.0' in server.call("GET", "/metrics", key=None).body.decode()
    refused = [event for event in told(server.log()) if event["event"] == "config.refused"]
    assert [(event["level"], event["child"]) for event in refused] == [("warning", "telemetry")]

    file.write_text(good)
    wait_until(lambda: server.parts()["engines"]["ok"])
