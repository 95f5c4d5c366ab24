"""Nodes as a running server looks after them: a frozen one gets a probe and returns, a full one a smaller batch."""

import contextlib
import http.client
import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.engine import RunningEngine, free_port
from tests.fixtures.serve import OTHER_MODEL, UNHURRIED, FirstStart, Serve, report, running
from tests.fixtures.waiting import wait_until

PROBED_WITHIN_S = 12.0
"""The promise is 10 s; a busy machine gets the rest."""
MIB_PER_TOKEN = 0.125
WEIGHTS_MIB, DRIVER_MIB, ENGINE_MIB = 1024, 512, 4096
"""Of the card: what the model takes, what the driver keeps, and what the engine may have in all."""
CARD = "GPU-7f0c3c1e-0000-4000-8000-000000000001"


def node(serve: Serve, name: str) -> dict[str, Any]:
    """The first state of a node, as GET /telemetry tells it."""
    nodes = serve.call("GET", "/telemetry", key="operator").json["nodes"]
    return next(state for state in nodes if state["node"] == name)


def complete(port: int, model: str, prompt_tokens: int, max_tokens: int) -> http.client.HTTPConnection:
    """A streamed completion whose first token has come; close it to abort."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    ask = {"model": model, "prompt": [1] * prompt_tokens, "max_tokens": max_tokens, "stream": True}
    connection.request("POST", "/v1/completions", json.dumps(ask).encode())
    assert connection.getresponse().readline().startswith(b"data: ")
    return connection


@pytest.fixture
def thawed(serve: Serve) -> Iterator[Serve]:
    """The server, with nothing of other tests in flight; its engine is at rest again once a test ends."""
    for lease in serve.call("GET", "/leases", key="operator").json["leases"]:
        serve.call("DELETE", f"/leases/{lease['lease_id']}", key="operator")
    yield serve
    serve.engine("vllm-1", "/load", {})
    serve.engine("vllm-1", "/faults", {"mode": "none"})
    complete(serve.engine_port("vllm-1"), OTHER_MODEL, 8, 1).close()
    wait_until(lambda: serve.reading("vllm-1") == 0)


def test_a_node_with_frozen_gauges_returns_by_one_probe(thawed: Serve):
    """Gauges at 0.99 that nothing moves shed all, until one request is let through to see; the step it brings opens the node."""
    tenant = thawed.tenant()
    thawed.engine("vllm-1", "/load", {"kv_ratio": 0.99, "waiting": 15})
    wait_until(lambda: thawed.reading("vllm-1") == 0.99)
    thawed.engine("vllm-1", "/faults", {"mode": "stuck"})
    begun = time.perf_counter()

    admitted = wait_until(
        lambda: [one for one in (thawed.decide(tenant, OTHER_MODEL, max_tokens=1) for _ in range(5)) if one["allow"]], PROBED_WITHIN_S
    )
    report(f"a frozen node was probed after {time.perf_counter() - begun:.1f} s")
    beside = [thawed.decide(tenant, OTHER_MODEL, max_tokens=1)["allow"] for _ in range(20)]

    assert [(one["node"], one["telemetry"].get("probe")) for one in admitted] == [("vllm-1", True)]
    assert not any(beside)
    assert node(thawed, "vllm-1")["why"] == "frozen"

    thawed.engine("vllm-1", "/load", {})
    complete(thawed.engine_port("vllm-1"), OTHER_MODEL, 8, 1).close()
    thawed.lease(admitted[0], "settle", completion_tokens=1)
    wait_until(lambda: thawed.decide(tenant, OTHER_MODEL, max_tokens=1)["allow"], PROBED_WITHIN_S)
    assert "why" not in node(thawed, "vllm-1")


@pytest.fixture
def with_card(first_start: FirstStart, start_engine: Callable[..., RunningEngine], tmp_path: Path) -> Iterator[tuple[Serve, RunningEngine]]:
    """A server whose only engine has a card that fills as its cache does, and that takes another size of its batch."""
    engine = start_engine(
        model=OTHER_MODEL,
        port=free_port(),
        max_num_seqs=60,
        gpu_memory_mib=ENGINE_MIB + DRIVER_MIB,
        gpu_uuid=CARD,
        weights_mib=WEIGHTS_MIB,
        kv_kib_per_token=1024 * MIB_PER_TOKEN,
        preallocates=False,
    )
    engines = [
        {
            "name": "card",
            "url": engine.url,
            "models": [OTHER_MODEL],
            "gpus": [CARD],
            "max_num_seqs": 60,
            "control_url": f"{engine.url}/control",
        }
    ]
    models = tmp_path / "models.yaml"
    models.write_text(f"[{{id: {OTHER_MODEL}, preallocates: false}}]")
    settings = UNHURRIED | {
        "models": str(models),
        "engines": engines,
        "gpus": {"nvml": "off", "nvidia_smi": "off", "dcgm": [f"{engine.url}/dcgm"]},
    }
    with running(first_start, settings) as serve:
        yield serve, engine


def test_a_card_that_fills_makes_the_batch_smaller(with_card: tuple[Serve, RunningEngine]):
    """Memory over 0.85 for 3 s leaves the engine 0.3 of its batch, told to the engine itself; with room again it has all of it."""
    serve, engine = with_card
    port = int(engine.url.rpartition(":")[2])
    wait_until(lambda: node(serve, "card").get("max_num_seqs") == 60)

    # 1024 MiB of weights, and 0.9 x 4096 - 1024 = 2662 MiB of cache at an eighth of a MiB a token
    with contextlib.closing(complete(port, OTHER_MODEL, int((0.9 * ENGINE_MIB - WEIGHTS_MIB) / MIB_PER_TOKEN), 100_000)):
        begun = time.perf_counter()
        wait_until(lambda: node(serve, "card").get("max_num_seqs") == 18)
        report(f"0.9 of the card was 0.3 of the batch after {time.perf_counter() - begun:.1f} s")
        wait_until(lambda: "sluice_engine_max_num_seqs 18\n" in page(engine))
    wait_until(lambda: "sluice_engine_max_num_seqs 60\n" in page(engine))


def page(engine: RunningEngine) -> str:
    """The engine's page."""
    with urllib.request.urlopen(f"{engine.url}/metrics", timeout=10) as answer:  # noqa: S310 - our own engine
        return answer.read().decode()
