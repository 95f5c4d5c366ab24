"""Leases over the wire: what a gateway reports after an admitted call, and what happens when it never does."""

import re

import pytest

from tests.fixtures.serve import MODEL, Serve
from tests.fixtures.waiting import wait_until

CACHED_FREE, CACHED_TENTH = "cached-free", "cached-tenth"


def test_settling_refunds_what_was_not_used_and_frees_the_slot(serve: Serve):
    """Of 1000 reserved tokens 300 were used: 700 come back, the slot is free, and the same report again changes nothing."""
    tenant = serve.tenant(tpm=6000, concurrency=1)
    decision = serve.decide(tenant, prompt_tokens=100, max_tokens=900)

    first = serve.lease(decision, "settle", prompt_tokens=100, completion_tokens=200, outcome="completed", ttft_ms=51.5, e2e_ms=900).json
    again = serve.lease(decision, "settle", prompt_tokens=100, completion_tokens=200, outcome="completed").json

    assert first == {
        "lease_id": decision["decision_id"],
        "outcome": "completed",
        "tokens_charged": 300,
        "tokens_refunded": 700,
        "freed": True,
        "repeated": False,
        "flags": [],
        "obligations_owed": [],
    }
    assert again == {**first, "repeated": True}
    assert serve.decide(tenant, max_tokens=1)["allow"]


def test_a_call_is_in_flight_on_its_node_until_it_is_settled(serve: Serve):
    """Operators see where a call runs, and the metrics of its node have one request and 1000 tokens more until its end."""
    tenant = serve.tenant()
    before = held(serve)

    decision = serve.decide(tenant, prompt_tokens=100, max_tokens=900)
    listed = serve.call("GET", f"/leases?tenant={tenant}", key="operator").json["leases"]
    during = held(serve)
    serve.lease(decision, "settle", prompt_tokens=100, completion_tokens=200)

    assert [(lease["node"], lease["tokens_reserved"]) for lease in listed] == [(decision["node"], 1000)]
    assert {place: value - before[place] for place, value in during.items() if value != before[place]} == {
        ("requests", decision["node"]): 1,
        ("tokens", decision["node"]): 1000,
    }
    assert held(serve) == before


def test_who_finds_no_slot_waits_as_long_as_calls_take(serve: Serve):
    """Before any call of the tenant has ended the wait is 3 s, a fifth more or less; after one that was short it is short."""
    tenant = serve.tenant(concurrency=1)
    first = serve.decide(tenant, max_tokens=1)
    unknown = serve.decide(tenant, max_tokens=1)
    serve.lease(first, "settle", completion_tokens=1)
    serve.decide(tenant, max_tokens=1)
    known = serve.decide(tenant, max_tokens=1)

    assert "frees_in_ms" not in unknown["reasons"][0]
    assert 2400 <= unknown["retry_after_ms"] <= 3600
    assert 1 <= known["reasons"][0]["frees_in_ms"] < 5000


def held(serve: Serve) -> dict[tuple[str, str], float]:
    """What is in flight of the model by node, as metrics tell it."""
    page = serve.call("GET", "/metrics", key=None).body.decode()
    found = re.findall(r'^sluice_in_flight_(requests|tokens){model="([^"]*)",node="([^"]*)"} (\S+)$', page, re.MULTILINE)
    return {(what, node): float(value) for what, model, node, value in found if model == MODEL}


@pytest.mark.parametrize("stream", [False, True])
def test_streamed_and_plain_replies_cost_the_same(serve: Serve, stream: bool):
    """The same reply of 500 tokens is charged alike whether it was streamed or not; without usage the reservation stands, flagged."""
    tenant = serve.tenant(tpm=100_000)
    told = serve.decide(tenant, prompt_tokens=100, max_tokens=400, stream=stream)
    untold = serve.decide(tenant, prompt_tokens=100, max_tokens=400, stream=stream)

    exact = serve.lease(told, "settle", prompt_tokens=100, completion_tokens=400).json
    estimated = serve.lease(untold, "settle").json

    assert (exact["tokens_charged"], exact["flags"]) == (500, [])
    assert (estimated["tokens_charged"], estimated["flags"]) == (500, ["estimated"])


def test_an_abandoned_stream_pays_for_what_it_got(serve: Serve):
    """A client that drops after 300 of 900 tokens is charged 400 with the prompt; late usage corrects that and does not add."""
    tenant = serve.tenant(tpm=100_000)
    decision = serve.decide(tenant, prompt_tokens=100, max_tokens=900, stream=True)

    dropped = serve.lease(decision, "settle", prompt_tokens=100, completion_tokens=300, outcome="aborted").json
    late = serve.lease(decision, "settle", prompt_tokens=100, completion_tokens=350, outcome="aborted").json

    assert tuple(dropped[name] for name in ("tokens_charged", "tokens_refunded", "outcome", "freed")) == (400, 600, "aborted", True)
    assert tuple(late[name] for name in ("tokens_charged", "tokens_refunded", "freed")) == (450, -50, False)


@pytest.mark.parametrize(("model", "charged"), [(CACHED_FREE, 2000), (CACHED_TENTH, 2800), (MODEL, 10_000)])
def test_cached_tokens_cost_what_the_model_says(serve: Serve, model: str, charged: int):
    """Of 10 000 prompt tokens 8000 came from the cache: 2000 + 8000 x weight of 0, 0.1 and 1 are charged."""
    tenant = serve.tenant(tpm=100_000)
    decision = serve.decide(tenant, model, prompt_tokens=10_000, max_tokens=0)

    settled = serve.lease(decision, "settle", prompt_tokens=10_000, completion_tokens=0, cached_tokens=8000).json

    assert charged == settled["tokens_charged"]


@pytest.mark.parametrize("cached_tokens", [-1, 101])
def test_impossible_cached_tokens_are_none(serve: Serve, cached_tokens: int):
    """Fewer than none or more than the prompt from the cache is taken for none, and flagged."""
    decision = serve.decide(serve.tenant(tpm=10_000), CACHED_FREE, prompt_tokens=100, max_tokens=0)

    settled = serve.lease(decision, "settle", prompt_tokens=100, completion_tokens=0, cached_tokens=cached_tokens).json

    assert (settled["tokens_charged"], settled["flags"]) == (100, ["cached_implausible"])


def test_cancelling_gives_everything_back(serve: Serve):
    """A call that never started costs nothing: rate, tokens and slot are as before, and a second cancel changes nothing."""
    tenant = serve.tenant(qps=1, tpm=600, concurrency=1)
    decision = serve.decide(tenant, prompt_tokens=300, max_tokens=300)

    assert [serve.lease(decision, "cancel").status for _ in range(2)] == [200, 200]
    assert serve.decide(tenant, prompt_tokens=300, max_tokens=300)["allow"]


def test_a_lease_that_nobody_settles_expires(serve: Serve):
    """At its end the slot is free and the tokens stay charged; a late report corrects the tokens and frees nothing twice."""
    tenant = serve.tenant(tpm=600, concurrency=1)
    decision = serve.decide(tenant, prompt_tokens=100, max_tokens=400)

    assert serve.lease(decision, "renew", ttl_ms=1000).json == {"lease_id": decision["decision_id"], "expires_in_ms": 1000}
    assert not serve.decide(tenant, max_tokens=1)["allow"]
    wait_until(lambda: serve.leases(tenant) == [])
    assert serve.remaining(tenant)["tpm"] < 200  # 100 were left, and 10 come back each second
    late = serve.lease(decision, "settle", prompt_tokens=100, completion_tokens=0).json
    assert (late["tokens_charged"], late["tokens_refunded"], late["freed"]) == (100, 400, False)
    assert serve.remaining(tenant)["tpm"] >= 500


def test_renewing_moves_the_end(serve: Serve):
    """A renewed lease lives for the time asked for, or the default; an ended one cannot be renewed."""
    tenant = serve.tenant(concurrency=1)
    decision = serve.decide(tenant)

    assert serve.lease(decision, "renew", ttl_ms=60_000).json["expires_in_ms"] == 60_000
    assert serve.lease(decision, "renew").json["expires_in_ms"] == 30_000
    serve.lease(decision, "settle")
    ended = serve.lease(decision, "renew")
    assert (ended.status, ended.json["code"]) == (409, "lease_ended")


def test_ends_that_contradict_each_other_are_refused(serve: Serve):
    """What was settled cannot be cancelled, and what was cancelled cannot be settled."""
    settled, cancelled = serve.decide(serve.tenant()), serve.decide(serve.tenant())
    serve.lease(settled, "settle")
    serve.lease(cancelled, "cancel")

    assert [serve.lease(settled, "cancel").status, serve.lease(cancelled, "settle").status] == [409, 409]


@pytest.mark.parametrize("verb", ["settle", "renew", "cancel"])
def test_nobody_ends_the_lease_of_another_credential(serve: Serve, verb: str):
    """Another key gets the same 404 as for a lease that does not exist, and the lease goes on."""
    tenant = serve.tenant(concurrency=1)
    decision = serve.decide(tenant)

    foreign = serve.lease(decision, verb, key="admin")
    unknown = serve.lease({"decision_id": "01900000-0000-7000-8000-000000000000"}, verb)

    assert [(reply.status, reply.json["code"]) for reply in (foreign, unknown)] == [(404, "not_found")] * 2
    assert [decision["decision_id"]] == serve.leases(tenant)


def test_a_refused_decision_has_no_lease(serve: Serve):
    """Whoever settles a refusal is told that it has nothing to settle."""
    refused = serve.decide(serve.tenant(), "no-such-model")

    reply = serve.lease(refused, "settle")

    assert (refused["allow"], reply.status) == (False, 404)
    assert "a refused decision has no lease" in reply.json["hint"]


def test_an_operator_frees_the_slot_of_a_holder_that_is_gone(serve: Serve):
    """A forced release frees the slot at once, needs an operator, and a second one is a conflict."""
    tenant = serve.tenant(concurrency=1)
    target = f"/leases/{serve.decide(tenant)['decision_id']}"

    assert [serve.call("DELETE", target, key=key).status for key in ("gateway", "operator", "operator")] == [403, 200, 409]
    assert serve.decide(tenant)["allow"]


def test_no_slot_is_lost_however_calls_end(serve: Serve):
    """After 60 rounds of failures, time-outs, aborts, cancels and bad reports, each sent twice, the one slot is free."""
    tenant = serve.tenant(concurrency=1)
    ends = [("settle", {"outcome": outcome}) for outcome in ("completed", "aborted", "failed", "timeout")] + [("cancel", {})]

    for number in range(60):
        decision = serve.decide(tenant, max_tokens=1)
        assert decision["allow"], number
        assert serve.lease(decision, "settle", outcome="lost").status == 400
        verb, report = ends[number % len(ends)]
        assert [serve.lease(decision, verb, **report).status for _ in range(2)] == [200, 200]

    assert serve.leases(tenant) == []


@pytest.mark.parametrize(
    ("verb", "report", "field"),
    [
        ("settle", {"prompt_tokens": -1}, "prompt_tokens"),
        ("settle", {"completion_tokens": 1.5}, "completion_tokens"),
        ("settle", {"outcome": "lost"}, "outcome"),
        ("settle", {"ttft_ms": "fast"}, "ttft_ms"),
        ("renew", {"ttl_ms": 999}, "ttl_ms"),
        ("renew", {"ttl_ms": 3_600_001}, "ttl_ms"),
    ],
)
def test_a_bad_report_changes_nothing(serve: Serve, verb: str, report: dict[str, object], field: str):
    """A report with a wrong field is 400 naming the field, and the lease goes on."""
    tenant = serve.tenant(concurrency=1)
    decision = serve.decide(tenant)

    reply = serve.lease(decision, verb, **report)

    assert (400, field) == (reply.status, reply.json["field"])
    assert [decision["decision_id"]] == serve.leases(tenant)
