"""The canonical form and the envelope of log entries."""

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.audit import entry

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
ID = UUID("01890000-0000-7000-8000-000000000001")

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
keys = st.text(st.characters(max_codepoint=126, min_codepoint=1), max_size=8)
bodies = st.dictionaries(
    keys,
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts,
        lambda children: st.lists(children, max_size=4) | st.dictionaries(keys, children, max_size=4),
        max_leaves=20,
    ),
    max_size=5,
)


@given(bodies)
def test_canonical_bytes_are_those_of_sorted_compact_json(body: dict):
    """The bytes equal sorted, compact, unescaped JSON as the standard library writes it."""
    reference = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

    assert reference == entry.canonical(body)


@given(bodies)
def test_canonical_bytes_survive_a_round_trip(body: dict):
    """Bytes read and made canonical again are the same bytes."""
    once = entry.canonical(body)

    assert once == entry.canonical(orjson.loads(once))


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"a": {"b": [1, 1.0]}}, r"\$\.a\.b\[1\]: float"),
        ({"a": float("nan")}, r"\$\.a: float"),
        ({"a": 2**53}, r"\$\.a: integer"),
        ({"a": -(2**53)}, r"\$\.a: integer"),
        ({"a": "x\x00"}, r"\$\.a: "),
        ({"a": ["\ud800"]}, r"\$\.a\[0\]: "),
        ({"ü": 1}, r"\$: key 'ü'"),
        ({1: 1}, r"\$: key 1"),
        ({"a": AT}, r"\$\.a: datetime"),
        ({"a": Decimal("NaN")}, r"\$\.a: Decimal"),
    ],
)
def test_what_readers_could_read_differently_is_refused(body: dict, where: str):
    """Floats, big integers, U+0000, surrogates, other keys and types are refused with the path of the culprit."""
    with pytest.raises(ValueError, match=where):
        entry.canonical(body)


@pytest.mark.parametrize(
    ("number", "text"),
    [("0.80", "0.8"), ("50.000000", "50"), ("1E+6", "1000000"), ("100", "100"), ("0.000001", "0.000001"), ("0", "0")],
)
def test_decimals_are_plain_text(number: str, text: str):
    """A decimal has one spelling, without exponent and trailing zeros."""
    assert f'{{"n":"{text}"}}'.encode() == entry.canonical({"n": Decimal(number)})


def test_instants_have_one_spelling():
    """Equal instants are written alike: UTC, microseconds, Z."""
    elsewhere = datetime(2026, 1, 2, 11, 4, 5, tzinfo=timezone(timedelta(hours=8)))

    assert entry.rfc3339(AT) == "2026-01-02T03:04:05.000006Z"
    assert entry.rfc3339(elsewhere) == "2026-01-02T03:04:05.000000Z"


@pytest.mark.parametrize(("days", "name"), [(365, "d365"), (730, "d730"), (None, "d400")])
def test_retention_is_named_by_days(days: int | None, name: str):
    """The class carries the days that policy asks for, and 400 where it asks for none."""
    assert name == entry.retention_class(days)


def test_envelope_is_complete_and_nothing_is_null_in_it():
    """An entry holds the common members and its details; details that are not known are absent."""
    sealed = entry.seal("test.kind", recorded=AT, operator="gw1", tenant="a", outcome="done", details={"model": "m", "subject": None})

    assert sealed.body == (
        b'{"id":"' + str(sealed.id).encode() + b'","kind":"test.kind","model":"m","operator":"gw1","outcome":"done",'
        b'"recorded":"2026-01-02T03:04:05.000006Z","tenant":"a","v":1}'
    )
    assert (sealed.id.version, sealed.kind, sealed.retention, sealed.recorded) == (7, "test.kind", "d400", AT)


def test_quota_entries_carry_snapshots_and_difference():
    """A change records operator, tenant, version, both snapshots, their difference and the reason."""
    sealed = entry.quota_in_force(
        recorded=AT,
        operator="op",
        tenant="a",
        version=2,
        before={"qps": "5"},
        after={"qps": "6"},
        diff=[{"path": "/qps", "before": "5", "after": "6"}],
        reason="more",
    )
    body = orjson.loads(sealed.body)

    assert (
        body["kind"],
        body["quota_version"],
        body["before"],
        body["after"],
        body["reason"],
    ) == ("quota.in_force", 2, {"qps": "5"}, {"qps": "6"}, "more")
    assert body["diff"] == [{"path": "/qps", "before": "5", "after": "6"}]


def test_deletion_has_no_after():
    """What is gone has a before and no after."""
    sealed = entry.quota_deleted(recorded=AT, operator="op", tenant="a", version=3, before={"qps": "5"}, diff=[], reason="")

    assert {"before", "diff", "id", "kind", "operator", "outcome", "quota_version", "reason", "recorded", "tenant", "v"} == set(
        orjson.loads(sealed.body)
    )


def test_key_entries_hold_no_key():
    """Creation and revocation name the key by id and name, with roles and tenants, and nothing secret."""
    made = entry.key_created(
        recorded=AT, operator="cli:root", key_id=str(ID), name="gw1", roles=["gateway"], tenants=["b", "a"], expires=None
    )
    revoked = entry.key_revoked(recorded=AT, operator="cli:root", key_id=str(ID), name="gw1")

    assert orjson.loads(made.body)["after"] == {"name": "gw1", "roles": ["gateway"], "tenants": ["a", "b"], "expires": None}
    assert ("key.revoked", str(ID)) == (revoked.kind, orjson.loads(revoked.body)["key"])


def test_access_keeps_as_long_as_policy_says():
    """Access to a sensitive model is kept for the days of its policy, a refusal by policy for the default."""
    asked = entry.Asked(operator="gw1", tenant="a", model="m", action="infer", decision_id="d", policy_revision="r", quota_version=4)
    access = entry.sensitive_access(asked, "allowed", recorded=AT, retention_days=365)
    refusal = entry.policy_refusal(asked, recorded=AT, reasons=[{"code": "sensitive_role", "rule": "sensitive_models"}])

    assert (access.retention, orjson.loads(access.body)["outcome"]) == ("d365", "allowed")
    assert (refusal.retention, orjson.loads(refusal.body)["outcome"]) == ("d400", "refused")
    assert orjson.loads(refusal.body)["reasons"] == [{"code": "sensitive_role", "rule": "sensitive_models"}]
