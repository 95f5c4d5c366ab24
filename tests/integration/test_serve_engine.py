"""Decisions follow a live engine: its cache fills and they turn to 429, it empties and they turn back."""

import http.client
import json
import time
from collections.abc import Iterator

import pytest

from tests.fixtures.serve import OTHER_MODEL, Serve, report
from tests.fixtures.waiting import wait_until

SEEN_WITHIN_S = 3.0
"""The promise is 300 ms; two busy cores get the rest."""
BLOCK_TOKENS = 16
BLOCKS = 32_768


@pytest.fixture
def relieved(serve: Serve) -> Iterator[Serve]:
    """The server, whose engine is at rest again once a test ends."""
    yield serve
    serve.engine("vllm-1", "/load", {})
    serve.engine("vllm-1", "/faults", {"mode": "none"})
    wait_until(lambda: serve.reading("vllm-1") == 0)


def took_s(serve: Serve, tenant: str, *, allow: bool) -> float:
    """How long it takes until decisions are of this kind."""
    begun = time.perf_counter()
    wait_until(lambda: serve.decide(tenant, OTHER_MODEL, max_tokens=1)["allow"] is allow, SEEN_WITHIN_S)
    return time.perf_counter() - begun


def test_a_full_cache_turns_decisions_away_and_back(relieved: Serve):
    """At 0.95 of the cache every request of its models is shed with 429 and a time to come back; at rest they pass again."""
    tenant, elsewhere = relieved.tenant(), relieved.tenant()

    relieved.engine("vllm-1", "/load", {"kv_ratio": 0.95})
    report(f"0.95 of the cache was a 429 after {took_s(relieved, tenant, allow=False) * 1000:.0f} ms")
    shed = [relieved.decide(tenant, OTHER_MODEL) for _ in range(20)]
    beside = relieved.decide(elsewhere)
    relieved.engine("vllm-1", "/load", {})
    report(f"an empty cache was a 200 after {took_s(relieved, tenant, allow=True) * 1000:.0f} ms")

    assert {(429, "shed", "pressure")} == {
        (decision["status"], decision["reasons"][0]["code"], decision["reasons"][0]["rule"]) for decision in shed
    }
    assert all(2400 <= decision["retry_after_ms"] <= 3600 for decision in shed)  # 3 s and a fifth to both sides (A5)
    assert beside["allow"]


def test_a_cache_filled_by_real_work_turns_decisions_away(relieved: Serve):
    """A completion whose prompt fills 0.95 of the blocks sheds what comes after it, until its client leaves."""
    tenant = relieved.tenant()
    prompt = [1] * (int(BLOCKS * 0.955) * BLOCK_TOKENS)
    ask = {"model": OTHER_MODEL, "prompt": prompt, "max_tokens": 600, "stream": True}
    client = http.client.HTTPConnection("127.0.0.1", relieved.engine_port("vllm-1"), timeout=30)
    client.request("POST", "/v1/completions", json.dumps(ask).encode())
    stream = client.getresponse()
    assert stream.readline().startswith(b"data: ")

    report(f"a filled cache was a 429 after {took_s(relieved, tenant, allow=False) * 1000:.0f} ms")
    client.close()
    stream.close()
    report(f"a client that left was a 200 after {took_s(relieved, tenant, allow=True) * 1000:.0f} ms")
