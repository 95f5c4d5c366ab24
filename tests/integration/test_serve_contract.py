"""The contract of decisions over the wire: every field, batches, explanations and ready-made headers."""

import pytest

from tests.fixtures.serve import MODEL, OTHER_MODEL, Serve


def test_a_decision_has_every_field_of_the_contract(serve: Serve):
    """An admitted request is answered with lease, limits, headers, policy and telemetry, hand-computed to the token."""
    tenant = serve.tenant(qps=50, tpm=30000, concurrency=8)

    decision = serve.decide(tenant, prompt_tokens=200, max_tokens=100, something_new={"is": "ignored"})

    assert decision.pop("decision_id").count("-") == 4
    assert len(decision["policy"].pop("revision")) == 24
    assert decision["telemetry"].pop("generation") >= 1
    assert 0 <= decision["telemetry"].pop("age_ms") < 10_000
    room, size = decision["limits"].pop("tokens_in_flight"), decision["limits"].pop("request_tokens")
    assert (room["bucket"], size["bucket"]) == ("model", "model")
    assert room["remaining"] <= room["limit"] - 300
    assert room["limit"] <= size["limit"] == 445_644  # 0.85 x 32 768 blocks x 16
    assert decision == {
        "allow": True,
        "status": 200,
        "reasons": [],
        "retry_after_ms": None,
        "replayed": False,
        "lease": {"expires_in_ms": 30_000, "tokens_reserved": 300},
        "limits": {
            "concurrency": {"bucket": "tenant", "limit": 8, "remaining": 7, "reset_ms": 0},
            "qps": {"bucket": "tenant", "limit": 50, "remaining": 49, "reset_ms": 20},  # 1 of 50/s
            "tpm": {"bucket": "tenant", "limit": 30_000, "remaining": 29_700, "reset_ms": 600},  # 300 of 30 000/60 s
        },
        "obligations": [],
        "node": "vllm-0",
        "headers": {
            "RateLimit-Policy": '"concurrency";q=8, "qps";q=50;w=1, "tpm";q=30000;w=60',
            "RateLimit": '"concurrency";r=7;t=0, "qps";r=49;t=1, "tpm";r=29700;t=1',
        },
        "policy": {"quota_version": 1},
        "telemetry": {"degraded": False},
    }


def test_a_refusal_names_what_is_spent_and_when_it_frees(serve: Serve):
    """A spent token budget is 429 with the caller's own time to wait, in the body and in headers ready for the client."""
    tenant = serve.tenant(tpm=600)
    serve.decide(tenant, prompt_tokens=300, max_tokens=300)

    decision = serve.decide(tenant, prompt_tokens=50, max_tokens=50)

    (reason,) = decision["reasons"]
    frees_in_ms = reason.pop("frees_in_ms")
    message = reason.pop("message")
    assert 690 < reason.pop("observed") <= 700  # 10 tokens come back each second
    assert 5_000 < frees_in_ms <= 10_000  # 100 tokens at 10/s, less the time between the two calls
    assert "tokens per minute" in message
    assert reason == {"code": "tpm_exceeded", "rule": "quota", "bucket": "tenant", "dimension": "tpm", "limit": 600}
    assert (decision["allow"], decision["status"], decision["lease"], decision["node"]) == (False, 429, None, None)
    assert frees_in_ms <= decision["retry_after_ms"] <= frees_in_ms * 1.2 + 1  # up to a fifth of jitter
    assert decision["headers"] == {
        "Retry-After": str(-(-decision["retry_after_ms"] // 1000)),
        "retry-after-ms": str(decision["retry_after_ms"]),
        "x-should-retry": "true",
    }


def test_waiting_cannot_help_a_request_larger_than_the_budget(serve: Serve):
    """One token more than the whole budget is refused without a time to come back, and spends nothing."""
    tenant = serve.tenant(tpm=2000)

    refused = serve.decide(tenant, prompt_tokens=1000, max_tokens=1001)
    exact = serve.decide(tenant, prompt_tokens=1000, max_tokens=1000)

    assert (refused["status"], refused["reasons"][0]["code"], refused["retry_after_ms"]) == (429, "over_capacity", None)
    assert refused["headers"] == {"x-should-retry": "false"}
    assert exact["limits"]["tpm"]["remaining"] == 0


def test_a_policy_refusal_is_a_403_in_a_200(serve: Serve):
    """An unknown tenant and an unknown model are refused by policy, each by its name, without a time to come back."""
    unknown = serve.decide("nobody-knows", "no-such-model")

    assert (unknown["allow"], unknown["status"], unknown["retry_after_ms"]) == (False, 403, None)
    assert {reason["code"] for reason in unknown["reasons"]} == {"unknown_tenant", "unknown_model"}


def test_explain_shows_each_rules_part_and_the_time_of_each_stage(serve: Serve):
    """?explain adds what each rule contributed and where the time went; without it neither is there."""
    tenant = serve.tenant(qps=7)

    told = serve.call("POST", "/decide?explain", {"tenant": tenant, "model": MODEL}).json["explain"]

    assert told["rules"]["quota"]["limit"] == [{"bucket": "tenant", "dimension": "qps", "limit": 7}]
    assert told["rules"]["liveness"] == {"shed": []}
    assert set(told["stages"]) == {"terms_ms", "spend_ms", "write_ms"}
    assert "explain" not in serve.decide(tenant)


def test_the_chosen_node_is_kept_while_it_lives(serve: Serve):
    """A node that the gateway names is kept where it serves the model and lives; any other name gets the best one."""
    tenant = serve.tenant()

    assert serve.decide(tenant, OTHER_MODEL, node="vllm-1")["node"] == "vllm-1"
    assert serve.decide(tenant, OTHER_MODEL, node="vllm-0")["node"] == "vllm-1"
    assert serve.decide(tenant, OTHER_MODEL, node="gone")["node"] == "vllm-1"


def test_a_heavy_model_spends_more_of_the_same_purse(serve: Serve):
    """A model of cost 5 takes five requests' worth of the rate and five times its tokens, a tenant's own price beats that."""
    tenant, dear = serve.tenant(qps=20, tpm=1000), serve.tenant(qps=20, tpm=1000, costs={"gpt-4o": 2})

    levels = serve.decide(tenant, "gpt-4o", prompt_tokens=10, max_tokens=10)["limits"]
    own = serve.decide(dear, "gpt-4o", prompt_tokens=10, max_tokens=10)["limits"]

    assert (levels["qps"]["remaining"], levels["tpm"]["remaining"]) == (15, 900)
    assert (own["qps"]["remaining"], own["tpm"]["remaining"]) == (18, 960)


def test_choices_multiply_what_is_reserved(serve: Serve):
    """Three choices of up to 100 tokens over a prompt of 50 reserve 350."""
    assert serve.decide(serve.tenant(), prompt_tokens=50, max_tokens=100, n=3)["lease"]["tokens_reserved"] == 350


def test_without_max_tokens_the_models_default_is_reserved(serve: Serve):
    """A request that names no tokens reserves the model's 512, also of a tenant that has no token limit; it is never free."""
    limited, unlimited = serve.tenant(tpm=1000), serve.tenant()

    assert serve.decide(limited)["limits"]["tpm"]["remaining"] == 488
    assert serve.decide(unlimited)["lease"]["tokens_reserved"] == 512
    assert serve.decide(limited, prompt_tokens=0, max_tokens=0)["lease"]["tokens_reserved"] == 1


def test_a_batch_answers_in_order(serve: Serve):
    """Decisions of a batch stand in the order of its requests, spent in that order."""
    tenant = serve.tenant(concurrency=3)
    items = [{"tenant": tenant, "model": MODEL, "max_tokens": number} for number in range(1, 6)]

    decisions = serve.call("POST", "/decide/batch", {"requests": items}).json["decisions"]

    assert [(decision["lease"] or {}).get("tokens_reserved") for decision in decisions] == [1, 2, 3, None, None]
    assert [decision["reasons"][0]["code"] for decision in decisions[3:]] == ["concurrency_exceeded"] * 2


def test_a_refused_request_burns_nothing_of_a_wider_limit(serve: Serve):
    """What a narrow limit refuses is not charged to the wider one that others share."""
    # the model's own rate is 10 x 0.1 x 1.2 = 1.2, held at 5 at least (B5); the tenant has 10
    tenant = serve.tenant(qps=10, rate_factors={MODEL: 0.1})
    items = [{"tenant": tenant, "model": MODEL}] * 10 + [{"tenant": tenant, "model": OTHER_MODEL, "n": 1}] * 1

    decisions = serve.call("POST", "/decide/batch", {"requests": items}).json["decisions"]

    assert [decision["allow"] for decision in decisions[:10]] == [True] * 5 + [False] * 5
    assert {"tenant_model"} == {reason["bucket"] for decision in decisions[5:10] for reason in decision["reasons"]}
    assert decisions[10]["allow"]  # of cost 3, and 5 are left
    assert decisions[10]["limits"]["qps"]["remaining"] == 2


@pytest.mark.parametrize("requests", [[], "text", [None], None, [{"tenant": "a", "model": "m"}] * 257])
def test_a_batch_has_one_to_256_requests(serve: Serve, requests: object):
    """An empty batch, one of 257, and one that is no list of objects are refused, naming the field."""
    reply = serve.call("POST", "/decide/batch", {"requests": requests})

    assert (reply.status, reply.json["field"].partition("[")[0]) == (400, "requests")


def test_a_batch_with_a_bad_item_charges_nothing(serve: Serve):
    """One wrong item refuses the whole batch by its index, and none of the others is charged."""
    tenant = serve.tenant(tpm=1000, concurrency=5)
    good, bad = {"tenant": tenant, "model": MODEL, "max_tokens": 10}, {"tenant": tenant, "model": MODEL, "max_tokens": -1}

    reply = serve.call("POST", "/decide/batch", {"requests": [good, good, bad, good]})

    assert (reply.status, reply.json["field"]) == (400, "requests[2].max_tokens")
    assert serve.leases(tenant) == []
    assert serve.decide(tenant, max_tokens=1)["limits"]["tpm"]["remaining"] == 999


def test_callers_at_the_same_moment_pass_a_limit_once(serve: Serve):
    """Of five callers at once with 60 tokens each, exactly one passes a budget of 100; settled with 30, 70 are left."""
    tenant = serve.tenant(tpm=100)
    items = {"tenant": tenant, "model": MODEL, "prompt_tokens": 10, "max_tokens": 50}

    decisions = serve.at_once([("POST", "/decide", items)] * 5)

    (admitted,) = [reply.json for reply in decisions if reply.json["allow"]]
    assert sum(not reply.json["allow"] for reply in decisions) == 4
    assert serve.lease(admitted, "settle", prompt_tokens=10, completion_tokens=20).json["tokens_refunded"] == 30
    assert 70 <= serve.remaining(tenant)["tpm"] <= 75  # what a few seconds bring back at 100 a minute is in it
