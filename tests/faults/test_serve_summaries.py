"""What a server that ends tells the log of the decisions it counted."""

import json
from collections.abc import Callable
from typing import Any

from tests.fixtures.proc import runs
from tests.fixtures.serve import GONE_WITHIN_S, Serve, spawn
from tests.fixtures.waiting import wait_until


def logged(server: Serve, kind: str) -> list[dict[str, Any]]:
    """Bodies of this kind, sequenced or not."""
    rows = server.sql("SELECT body FROM audit.intake UNION SELECT body FROM audit.body")
    bodies = [json.loads(bytes(row[0])) for row in rows]
    return sorted((body for body in bodies if body["kind"] == kind), key=lambda body: str(body["id"]))


def counted(server: Serve, tenant: str) -> dict[str, int]:
    """Decisions of a tenant in all summaries, by outcome."""
    counts: dict[str, int] = {}
    for body in logged(server, "decisions.minute"):
        if body["tenant"] == tenant:
            counts[body["outcome"]] = counts.get(body["outcome"], 0) + body["count"]
    return counts


def test_an_orderly_stop_loses_no_count(start_serve: Callable[..., Serve]):
    """Three admitted and two refused decisions are in the log after a stop and a start, and no gap is told."""
    first = start_serve()
    tenant = first.tenant(concurrency=3)
    for _ in range(5):
        first.decide(tenant)
    assert first.stop() == 0

    again = spawn(first.var, first.port, first.keys).wait_ready()
    try:
        assert counted(again, tenant) == {"allow": 3, "quota": 2}
        assert logged(again, "audit.gap") == []
    finally:
        assert again.stop() == 0


def test_after_a_kill_the_next_start_tells_a_gap(start_serve: Callable[..., Serve]):
    """Counts of the running minute are gone with kill -9; one entry tells from which minute on, and that nobody knows how many."""
    first = start_serve()
    tenant = first.tenant()
    first.decide(tenant)
    family = [first.process.pid, *first.children()]
    first.process.kill()
    wait_until(lambda: first.process.poll() is not None and not any(runs(pid) for pid in family), GONE_WITHIN_S)

    again = spawn(first.var, first.port, first.keys).wait_ready()
    try:
        wait_until(lambda: logged(again, "audit.gap"), 5)
        [gap] = logged(again, "audit.gap")
        assert gap["reason"] == "stopped"
        assert "lost" not in gap
        assert gap["from"] < gap["to"]
        assert counted(again, tenant) in ({}, {"allow": 1})  # the minute may just have ended
    finally:
        assert again.stop() == 0
