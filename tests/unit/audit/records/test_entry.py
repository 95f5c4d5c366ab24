"""The canonical form and the envelope of log entries."""

import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.audit.records import entry
from app.instants import rfc3339

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

    assert rfc3339(AT) == "2026-01-02T03:04:05.000006Z"
    assert rfc3339(elsewhere) == "2026-01-02T03:04:05.000000Z"
    assert rfc3339(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00.000000Z"


@pytest.mark.parametrize(("days", "name"), [(365, "d365"), (730, "d730"), (None, "d400")])
def test_retention_is_named_by_days(days: int | None, name: str):
    """The class carries the days that policy asks for, and 400 where it asks for none."""
    assert name == entry.retention_class(days)


def test_envelope_is_complete_and_nothing_is_null_in_it():
    """An entry holds the common members and its details; details that are not known are absent."""
    details = {"policy_revision": "r1", "previous_revision": None}
    sealed = entry.make_entry("policy.activated", recorded=AT, operator="sluice", tenant="a", outcome="done", details=details)

    assert sealed.body == (
        b'{"id":"' + str(sealed.id).encode() + b'","kind":"policy.activated","operator":"sluice","outcome":"done",'
        b'"policy_revision":"r1","recorded":"2026-01-02T03:04:05.000006Z","tenant":"a","v":1}'
    )
    assert (sealed.id.version, sealed.kind, sealed.retention, sealed.recorded) == (7, "policy.activated", "d400", AT)


def test_sealed_texts_stand_under_the_id_they_were_sealed_for():
    """Texts that open under one entry id alone are in the entry with that id."""
    texts = entry.Sealed(ID, {"reason": "s1:key:text"})
    sealed = entry.make_entry(
        "quota.approved", recorded=AT, operator="op", tenant="a", outcome="done", details={"proposal": "p"}, sealed=texts
    )
    body = orjson.loads(sealed.body)

    assert (sealed.id, body["id"], body["sealed"]) == (ID, str(ID), {"reason": "s1:key:text"})


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"kind": "quota.gone"}, "'quota.gone' is no kind"),
        ({"outcome": "perhaps"}, "quota.approved: outcome 'perhaps' is none of done"),
        ({"details": {}}, "quota.approved: proposal is missing"),
        ({"details": {"proposal": None}}, "quota.approved: proposal is missing"),
        ({"details": {"proposal": "p", "colour": "red"}}, "quota.approved: colour is no member"),
        ({"details": {"proposal": "p", "id": "another"}}, "quota.approved: id is no member"),
        ({"details": {"proposal": 0.5}}, r"\$\.proposal: float"),
        ({"details": {"proposal": "x\x00"}}, r"\$\.proposal: "),
        ({"details": {"proposal": "x" * entry.MAX_BODY_BYTES}}, "quota.approved: 1048[0-9]{3} bytes"),
        ({"operator": "\ud800"}, r"\$\.operator: "),
        ({"retention_days": 99}, "kept from 100 to 9999 days, not 99"),
        ({"retention_days": 10_000}, "kept from 100 to 9999 days, not 10000"),
        ({"recorded": AT.replace(tzinfo=None)}, "a time without a zone"),
    ],
)
def test_what_the_log_could_not_hold_never_becomes_an_entry(wrong: dict, problem: str):
    """Another kind, member, outcome, value, time or size is refused where it is written, and the refusal says what is wrong."""
    right = {"kind": "quota.approved", "recorded": AT, "operator": "op", "tenant": "a", "outcome": "done", "details": {"proposal": "p"}}
    with pytest.raises(ValueError, match=problem):
        entry.make_entry(**right | wrong)
