"""Entries of decisions."""

from datetime import UTC, datetime

import orjson

from app.audit.records.access import (
    RequestFacts,
    access_cancelled,
    access_confirmed,
    obligation_unmet,
    policy_refusal,
    sensitive_access,
    waiver_used,
)

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
ASKED = RequestFacts(operator="gw1", tenant="a", model="m", action="infer", decision_id="d", policy_revision="r", quota_version=4)
REASONS = [{"code": "sensitive_role", "rule": "sensitive_models"}]


def test_access_keeps_as_long_as_policy_says():
    """Access to a sensitive model is kept for the days of its policy, a refusal by policy for the default."""
    access = sensitive_access(ASKED, "allowed", recorded=AT, retention_days=365)
    refusal = policy_refusal(ASKED, recorded=AT, reasons=REASONS)

    assert (access.retention, orjson.loads(access.body)["outcome"]) == ("d365", "allowed")
    assert (refusal.retention, orjson.loads(refusal.body)["outcome"]) == ("d400", "refused")
    assert orjson.loads(refusal.body)["reasons"] == REASONS


def test_what_must_be_confirmed_and_what_was():
    """An unconfirmed access names what the gateway owes, its confirmation what the gateway met, and both the decision."""
    owed = orjson.loads(sensitive_access(ASKED, "unconfirmed", recorded=AT, retention_days=365, obligations=("mask",)).body)
    met = orjson.loads(access_confirmed(ASKED, recorded=AT, retention_days=365, obligations_met=("log", "mask")).body)

    assert tuple(owed[name] for name in ("outcome", "obligations", "decision_id")) == ("unconfirmed", ["mask"], "d")
    assert tuple(met[name] for name in ("outcome", "obligations_met", "decision_id")) == ("confirmed", ["log", "mask"], "d")


def test_what_ended_unconfirmed_or_unused():
    """Both name what was owed; the incident also how the lease ended, and both are kept as long as the access."""
    unmet = obligation_unmet(ASKED, recorded=AT, retention_days=730, obligations=("mask",), reason="expired")
    unused = access_cancelled(ASKED, recorded=AT, retention_days=730, obligations=("mask",))
    told = [orjson.loads(entry.body) for entry in (unmet, unused)]

    assert [(body["kind"], body["outcome"], body["obligations"], body.get("reason")) for body in told] == [
        ("obligation.unmet", "unmet", ["mask"], "expired"),
        ("sensitive.access", "cancelled", ["mask"], None),
    ]
    assert (unmet.retention, unused.retention, told[0]["decision_id"]) == ("d730", "d730", "d")


def test_a_waiver_names_what_it_lifted():
    """The refusal that rules lifted stands in the entry, apart from what became of the request."""
    body = orjson.loads(waiver_used(ASKED, "allowed", recorded=AT, waived=REASONS).body)

    assert tuple(body[name] for name in ("kind", "outcome", "waived")) == ("waiver.used", "allowed", REASONS)
