"""A dependency of a running server dies or freezes: what goes on, what is refused, and that it heals by itself."""

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fixtures.proc import children_of, frozen
from tests.fixtures.serve import MASKED_MODEL, MODEL, OTHER_MODEL, SENSITIVE_MODEL, FirstStart, Serve, running
from tests.fixtures.waiting import wait_until

SETTINGS = {"opa": {"timeout_ms": 300}, "database": {"timeout_ms": 400}, "telemetry": {"stale_ms": 1500}}
"""Deadlines that these tests wait for, long enough for two busy cores."""
HEALS_WITHIN_S = 30.0
ANALYST = {"subject": {"id": "a", "roles": ["risk-analyst"], "attributes": {"clearance": 3}}, "purpose": "credit-risk"}


@pytest.fixture(scope="module")
def server(first_start: FirstStart) -> Iterator[Serve]:
    """One server for all outages: each heals before the next."""
    with running(first_start, SETTINGS) as one:
        yield one


@pytest.fixture
def healthy(server: Serve) -> Iterator[Serve]:
    """The same, well before a test and well again after it, on its own."""
    yield server
    wait_until(server.ready, HEALS_WITHIN_S)
    tenant = server.tenant(qps=100)
    wait_until(lambda: _is_whole(server.decide(tenant)) and _is_whole(server.decide(tenant, OTHER_MODEL)), HEALS_WITHIN_S)


def _is_whole(decision: dict[str, Any]) -> bool:
    return bool(decision["allow"]) and not decision["telemetry"]["degraded"]


def warmed(server: Serve, **quota: Any) -> str:
    """A tenant whose ordinary question has been answered."""
    tenant = server.tenant(**{"qps": 100, "region": "cn-east", **quota})
    wait_until(lambda: _is_whole(server.decide(tenant, max_tokens=1)))
    for lease in server.leases(tenant):
        server.lease({"decision_id": lease}, "cancel")
    return tenant


def test_a_killed_opa_comes_back(healthy: Serve):
    """Warm questions are answered without a gap while OPA is away; cold ones are 503 until it runs again, and then answered."""
    tenant, opa = warmed(healthy), healthy.child("opa run")

    os.kill(opa, signal.SIGKILL)

    decisions = [healthy.decide(tenant, max_tokens=1) for _ in range(20)]
    assert all(_is_whole(decision) for decision in decisions)
    cold = healthy.tenant(qps=100)
    answers: list[dict[str, Any]] = []
    wait_until(lambda: answers.append(healthy.decide(cold)) or answers[-1]["allow"], HEALS_WITHIN_S)
    assert {reason["code"] for answer in answers for reason in answer["reasons"]} <= {"policy_unavailable"}
    assert healthy.child("opa run") != opa


def test_a_frozen_opa_leaves_what_is_known(healthy: Serve):
    """Warm questions are exact, other readings get half of the limits and half shed, cold and sensitive questions are 503; a thaw heals."""
    tenant, cold, sensitive = warmed(healthy), healthy.tenant(qps=100), warmed(healthy, tpm=60_000)

    with frozen(healthy.child("opa run")):
        exact = healthy.decide(tenant, max_tokens=1)
        unknown = healthy.decide(cold)
        secret = healthy.decide(sensitive, SENSITIVE_MODEL, **ANALYST)
        readiness = healthy.call("GET", "/readyz", key=None)
        healthy.engine("vllm-0", "/load", {"kv_ratio": 0.3})
        wait_until(lambda: healthy.decide(tenant, max_tokens=1)["telemetry"]["degraded"])
        substitutes = [healthy.decide(tenant, max_tokens=1) for _ in range(30)]
    healthy.engine("vllm-0", "/load", {})
    wait_until(lambda: healthy.reading("vllm-0") == 0)

    assert _is_whole(exact)
    for decision in (unknown, secret):
        assert (decision["status"], decision["reasons"][0]["code"]) == (503, "policy_unavailable")
        assert decision["headers"]["x-should-retry"] == "true"
    assert (readiness.status, readiness.json["parts"]["policy_engine"]["ok"]) == (200, False)
    assert all(decision["telemetry"]["degraded"] for decision in substitutes)
    assert {decision["status"] for decision in substitutes} == {200, 429}
    assert {decision["limits"]["qps"]["limit"] for decision in substitutes if decision["allow"]} == {50}
    wait_until(lambda: healthy.decide(cold)["allow"], HEALS_WITHIN_S)


def test_a_silent_database_stops_changes_and_what_must_be_logged(healthy: Serve):
    """Ordinary decisions go on; a change, a sensitive access and a refusal by policy are 503, and nothing stays spent; a thaw heals."""
    tenant, watched = warmed(healthy), warmed(healthy, tpm=60_000, concurrency=1)
    before = healthy.decide(watched, SENSITIVE_MODEL, **ANALYST)
    assert before["allow"]
    healthy.lease(before, "cancel")
    left = healthy.remaining(watched)["tpm"]
    postmaster = healthy.child("postgres -D")

    with frozen(postmaster, *children_of(postmaster)):
        ordinary = [healthy.decide(tenant, max_tokens=1) for _ in range(20)]
        change = healthy.call("PATCH", f"/quotas/{tenant}", {"qps": 7}, key="operator", if_match='"1"')
        secret = healthy.decide(watched, SENSITIVE_MODEL, **ANALYST)
        refusal = healthy.decide("nobody-knows")
        begun = time.perf_counter()
        readiness = healthy.call("GET", "/readyz", key=None)
        looked_s = time.perf_counter() - begun

    assert all(_is_whole(decision) for decision in ordinary)
    assert (change.status, change.json["code"], change.headers["retry-after"]) == (503, "database_down", "3")
    for decision in (secret, refusal):
        assert (decision["allow"], decision["status"], decision["reasons"][0]["code"]) == (False, 503, "audit_unavailable")
        assert decision["lease"] is None
    assert healthy.leases(watched) == []
    assert healthy.remaining(watched)["tpm"] >= left
    assert (readiness.status, readiness.json["parts"]["database"]["ok"]) == (200, False)
    assert looked_s < 1  # as long as an orchestrator waits for its probe
    wait_until(lambda: healthy.decide(watched, SENSITIVE_MODEL, **ANALYST)["allow"] or None, HEALS_WITHIN_S)
    assert healthy.call("GET", f"/quotas/{tenant}", key="operator").json["qps"] == 100


def test_what_may_wait_for_a_silent_database_is_in_the_log_afterwards(healthy: Serve):
    """A settlement that confirms and rules that come into force are taken during the outage, and told by the log once it is over."""
    tenant = warmed(healthy, tpm=60_000)
    steward = {"subject": {"id": "steward", "roles": ["data-steward"]}, "action": "train", "purpose": "model-training"}
    decision = healthy.decide(tenant, MASKED_MODEL, **steward)
    stranger = {**steward, "subject": {"id": f"stranger-{tenant}", "roles": ["data-steward"]}}
    rule = healthy.var / "rego/rules/pressure/pressure.rego"
    postmaster = healthy.child("postgres -D")

    with frozen(postmaster, *children_of(postmaster)):
        settled = healthy.lease(decision, "settle", prompt_tokens=1, completion_tokens=1, obligations_met=["mask"])
        unknown = healthy.decide(tenant, MASKED_MODEL, **stranger)
        old = unknown["policy"]["revision"]
        rule.write_text(rule.read_text() + "\n# another text, the same answers\n")
        wait_until(lambda: healthy.decide(tenant, max_tokens=1)["policy"]["revision"] != old, HEALS_WITHIN_S)

    def told() -> bool:
        entries = healthy.entries()
        confirmed = [entry["outcome"] for entry in entries if entry.get("decision_id") == decision["decision_id"]]
        activated = [
            entry["previous_revision"] for entry in entries if entry["kind"] == "policy.activated" and "previous_revision" in entry
        ]
        return confirmed == ["unconfirmed", "confirmed"] and old in activated

    assert (settled.status, settled.json["freed"]) == (200, True)
    assert (unknown["allow"], unknown["reasons"][0]["code"]) == (False, "audit_unavailable")
    wait_until(told, HEALS_WITHIN_S)


def test_a_killed_database_comes_back_with_what_was_committed(healthy: Serve):
    """Decisions go on while PostgreSQL recovers; a change made before the kill is there afterwards and changes work again."""
    tenant = warmed(healthy)
    assert healthy.call("PATCH", f"/quotas/{tenant}", {"qps": 99}, key="operator", if_match='"1"').status == 200
    postmaster = healthy.child("postgres -D")

    os.kill(postmaster, signal.SIGKILL)

    assert all(healthy.decide(tenant, max_tokens=1)["allow"] for _ in range(20))
    statuses: list[int] = []

    def changed() -> bool:
        statuses.append(healthy.call("PATCH", f"/quotas/{tenant}", {"qps": 98}, key="operator", if_match='"2"').status)
        return statuses[-1] in (200, 412)

    wait_until(changed, HEALS_WITHIN_S)
    assert set(statuses) <= {200, 412, 503}
    assert healthy.decide(tenant, max_tokens=1)["limits"]["qps"]["limit"] == 98
    assert healthy.child("postgres -D") != postmaster


def test_a_killed_telemetry_process_comes_back(healthy: Serve):
    """Decisions go on, blind ones marked degraded, until readings are there again."""
    tenant, telemetry = warmed(healthy), healthy.child("app.cli telemetry")

    os.kill(telemetry, signal.SIGKILL)

    decisions: list[dict[str, Any]] = []

    def back() -> bool:
        decisions.append(healthy.decide(tenant, max_tokens=1))
        return any(pid != telemetry and "app.cli telemetry" in line for pid, line in healthy.children().items()) and healthy.ready()

    wait_until(back, HEALS_WITHIN_S)
    assert {decision["status"] for decision in decisions} <= {200, 429}
    assert all(decision["telemetry"]["degraded"] for decision in decisions if decision["status"] == 429)


def test_a_killed_engine_leaves_the_snapshot_and_returns(healthy: Serve):
    """Its model goes on half blind without a node, other models do not notice, and its next process is seen."""
    tenant, engine = warmed(healthy), healthy.child("app.cli engine --port " + str(healthy.engine_port("vllm-1")))

    with frozen(engine):
        wait_until(lambda: healthy.reading("vllm-1") is None)
        blind = [healthy.decide(tenant, OTHER_MODEL, max_tokens=1) for _ in range(20)]
        seeing = healthy.decide(tenant, MODEL, max_tokens=1)
    os.kill(engine, signal.SIGKILL)

    assert all(decision["telemetry"]["degraded"] and decision["node"] is None for decision in blind)
    assert (_is_whole(seeing), seeing["node"]) == (True, "vllm-0")
    wait_until(lambda: healthy.decide(tenant, OTHER_MODEL, max_tokens=1)["node"] == "vllm-1", HEALS_WITHIN_S)


@pytest.mark.parametrize("mode", ["frozen", "error500", "html", "nan"])
def test_a_blind_spot_sheds_half(healthy: Serve, mode: str):
    """While the only engine of a model tells nothing, about half of its requests are shed and the rest admitted, marked degraded."""
    tenant = healthy.tenant()
    healthy.engine("vllm-1", "/faults", {"mode": mode})
    wait_until(lambda: healthy.reading("vllm-1") is None)

    items = [{"tenant": tenant, "model": OTHER_MODEL, "max_tokens": 1}] * 200
    decisions = healthy.call("POST", "/decide/batch", {"requests": items}).json["decisions"]
    healthy.engine("vllm-1", "/faults", {"mode": "none"})

    admitted = sum(decision["allow"] for decision in decisions)
    assert 57 <= admitted <= 143  # six standard deviations of 7.1 around 100
    assert {(decision["telemetry"]["age_ms"], decision["telemetry"]["degraded"], decision["node"]) for decision in decisions} == {
        (None, True, None)
    }
