"""The shape of what rules answer."""

import pytest

from app.policy.parts import parse
from app.policy.terms import Cost, Deny, Limit, Obligation
from app.policy.unanswered import PolicyInvalid

LIMIT = {"bucket": "tenant", "dimension": "tpm", "limit": 30000}
DENY = {"code": "x", "message": "m", "status": 403}


def test_every_output_is_read() -> None:
    """One element of each kind becomes the value of its kind."""
    part = parse(
        "mine",
        {
            "deny": [{**DENY, "waivable": True}],
            "waive": ["x"],
            "limit": [{**LIMIT, "burst": 5}],
            "cost": [{"input": 5, "cached": 0.5}],
            "scale": [{"dimension": "qps", "factor": 0.7}],
            "shed": [1],
            "oblige": [{"code": "mask", "fields": ["email"]}, {"code": "audit", "retention_days": 365}],
        },
    )

    assert part.denies == (Deny("mine", "x", "m", 403, waivable=True),)
    assert part.waives == {"x"}
    assert part.limits == (Limit("mine", "tenant", "tpm", 30000, 5),)
    assert part.costs == (Cost(input=5, cached=0.5),)
    assert part.factors == (("qps", 0.7),)
    assert part.sheds == (1,)
    assert part.obligations == (Obligation("mask", None, ("email",)), Obligation("audit", 365))


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        ({"limit": [{**LIMIT, "limit": "30000"}]}, "limit.limit must be a number, not a text"),
        ({"limit": [{**LIMIT, "limit": True}]}, "limit.limit must be a number, not a boolean"),
        ({"limit": [{**LIMIT, "limit": -1}]}, "limit.limit must be from 0"),
        ({"limit": [{**LIMIT, "limit": 2**53}]}, "limit.limit must be from 0"),
        ({"limit": [{**LIMIT, "limit": None}]}, "limit.limit must be a number, not null"),
        ({"limit": [{**LIMIT, "bucket": "everybody"}]}, "limit.bucket must be one of"),
        ({"limit": [{**LIMIT, "dimension": ["qps"]}]}, "limit.dimension must be one of"),
        ({"limit": [{**LIMIT, "brust": 5}]}, "limit.brust is unknown"),
        ({"limit": [{"bucket": "tenant", "limit": 1}]}, "limit.dimension is missing"),
        ({"limit": [5]}, "limit must hold objects, not a number"),
        ({"deny": True}, "deny must be a set"),
        ({"deny": [{**DENY, "status": 200}]}, "deny.status must be an HTTP status"),
        ({"deny": [{**DENY, "status": 500}]}, "deny.status must be an HTTP status"),
        ({"deny": [{**DENY, "code": ""}]}, "deny.code must be a text"),
        ({"deny": [{**DENY, "waivable": 1}]}, "deny.waivable must be true or false"),
        ({"shed": [1.01]}, "shed must be from 0 to 1"),
        ({"scale": [{"dimension": "qps", "factor": 1.6}]}, "scale.factor must be from 0 to 1.5"),
        ({"cost": [{"input": float("inf")}]}, "cost.input must be from 0"),
        ({"oblige": [{"code": "audit", "retention_days": 0}]}, "oblige.retention_days must be a whole number"),
        ({"oblige": [{"code": "audit", "retention_days": 183}]}, "oblige.retention_days must be a whole number of days from 184 to 9999"),
        ({"oblige": [{"code": "audit", "retention_days": 99999}]}, "from 184 to 9999"),
        ({"deny": [{**DENY, "code": "a\x00b"}]}, "deny.code must be a text of at most 1000 characters without U"),
        ({"deny": [{**DENY, "message": "x" * 1001}]}, "deny.message must be a text of at most 1000"),
        ({"limit": [{**LIMIT, "limit": 1e-48}]}, "limit.limit must be 0 or at least 1e-06"),
        ({"oblige": [{"code": "mask", "fields": "email"}]}, "oblige.fields must be a list"),
        ({"waive": [5]}, "waive must hold codes"),
        ({"allow": [True]}, "allow is no output"),
    ],
)
def test_whatever_is_not_exactly_right_names_rule_and_field(outputs: dict[str, object], names: str) -> None:
    """Nothing is guessed or converted; the message says which rule and which field."""
    with pytest.raises(PolicyInvalid, match="rule mine: ") as refused:
        parse("mine", outputs)

    assert names in refused.value.message
    assert refused.value.rule == "mine"
