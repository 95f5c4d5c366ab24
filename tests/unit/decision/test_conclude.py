"""How a decision ends, per kind of ending."""

import orjson

from app.decision import conclude
from app.decision.decision import Facts, replayed
from app.limiter.charge import Bucket, Level, Refusal, Spent
from app.policy.terms import Deny, Limit, Obligation, Terms

FACTS = Facts("d-1", "r1", 3, 7, 40, degraded=False, node="vllm-0")
QPS = Bucket("tenant", ("tenant", "a"), "qps", 50.0)
TPM = Bucket("tenant", ("tenant", "a"), "tpm", 2000.0)


def test_an_admitted_request_carries_its_lease_and_limits():
    """The whole wire document of an admitted request."""
    terms = Terms("r1", obligations=(Obligation("mask", None, ("name",)),))
    spent = Spent(admitted=True, levels=(Level(QPS, 49.0, 20.0),), tokens_reserved=300, expires_in_ms=30000.0)

    assert conclude.admitted(FACTS, terms, spent).document() == {
        "decision_id": "d-1",
        "allow": True,
        "status": 200,
        "reasons": [],
        "retry_after_ms": None,
        "replayed": False,
        "lease": {"expires_in_ms": 30000, "tokens_reserved": 300},
        "limits": {"qps": {"bucket": "tenant", "limit": 50, "remaining": 49, "reset_ms": 20}},
        "obligations": [{"code": "mask", "fields": ["name"]}],
        "node": "vllm-0",
        "headers": {"RateLimit-Policy": '"qps";q=50;w=1', "RateLimit": '"qps";r=49;t=1'},
        "policy": {"revision": "r1", "quota_version": 3},
        "telemetry": {"generation": 7, "age_ms": 40, "degraded": False},
    }


def test_a_refusal_names_every_bucket_that_had_no_room():
    """Code, rule, bucket, limit, what was asked, and when it frees stand in the reasons; 429 and a retry time beside them."""
    terms = Terms("r1", limits=(Limit("quota", "tenant", "qps", 50.0), Limit("quota", "tenant", "tpm", 2000.0)))
    spent = Spent(admitted=False, refusals=(Refusal(QPS, 51.0, 20.0), Refusal(TPM, 2300.0, 9000.0)))

    document = conclude.refused(FACTS, terms, spent, 0.0).document()

    assert (document["allow"], document["status"], document["retry_after_ms"]) == (False, 429, 9000)
    assert document["lease"] is None
    assert document["node"] is None
    assert document["reasons"][1] == {
        "code": "tpm_exceeded",
        "message": "tokens per minute of the tenant: 2300 against a limit of 2000",
        "rule": "quota",
        "bucket": "tenant",
        "dimension": "tpm",
        "limit": 2000,
        "observed": 2300,
        "frees_in_ms": 9000,
    }


def test_a_request_larger_than_its_bucket_is_not_retried():
    """The reason is over_capacity, without a retry time, and clients are told not to retry."""
    spent = Spent(admitted=False, refusals=(Refusal(TPM, 2001.0, None, over_capacity=True),))

    document = conclude.refused(FACTS, Terms("r1"), spent, 0.5).document()

    assert document["reasons"][0]["code"] == "over_capacity"
    assert document["retry_after_ms"] is None
    assert document["headers"] == {"x-should-retry": "false"}


def test_a_denial_keeps_the_status_of_its_rule():
    """A rule's 403 is final; a rule's 429 carries a time to come back."""
    final = conclude.denied(FACTS, (Deny("known", "unknown_model", "no such model"),), 0.5).document()
    later = conclude.denied(FACTS, (Deny("night", "closed_at_night", "try at eight", 429),), 0.5).document()

    assert (final["status"], final["retry_after_ms"], final["headers"]) == (403, None, {"x-should-retry": "false"})
    assert (later["status"], later["retry_after_ms"]) == (429, 3000)


def test_a_final_refusal_goes_before_one_that_passes():
    """One rule says 429, another 403: waiting cannot help, so the status is 403; both reasons stand."""
    denies = (Deny("night", "closed_at_night", "try at eight", 429), Deny("known", "unknown_model", "no such model"))

    document = conclude.denied(FACTS, denies, 0.5).document()

    assert (document["status"], document["retry_after_ms"]) == (403, None)
    assert [reason["code"] for reason in document["reasons"]] == ["closed_at_night", "unknown_model"]


def test_shedding_is_a_429_that_names_its_rule():
    """Never a 500: clients would retry at once."""
    document = conclude.shed(FACTS, Terms("r1", shed=0.5, shed_rule="pressure"), 0.5).document()

    assert (document["status"], document["retry_after_ms"]) == (429, 3000)
    assert document["reasons"] == [{"code": "shed", "message": "load is shed with probability 0.5", "rule": "pressure", "limit": 0.5}]


def test_a_replay_is_the_same_decision_marked():
    """Only `replayed` differs."""
    first = conclude.admitted(FACTS, Terms("r1"), Spent(admitted=True, tokens_reserved=1, expires_in_ms=1.0)).json()

    assert orjson.loads(replayed(first)) == orjson.loads(first) | {"replayed": True}
