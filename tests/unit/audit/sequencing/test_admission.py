"""What enters the log as it is, and what stands there for the rest."""

import base64
from datetime import UTC, datetime, timedelta
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.audit.format.leaf import sm3
from app.audit.records.entry import Entry, canonical
from app.audit.sequencing.admission import MAX_KEPT_BYTES, Malformed, Row, admit, malformed
from tests.fixtures.entries import AT, numbered

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ID = UUID("01920000-0000-7000-8000-000000000001")
GOOD = {"v": 1, "id": str(ID), "kind": "k", "recorded": "2026-01-02T03:04:05.000006Z"}


def row_of(entry: Entry) -> Row:
    return Row(entry.id, entry.retention, entry.recorded, entry.body)


def row(body: bytes, *, recorded: datetime | None = AT) -> Row:
    return Row(ID, "d365", recorded, body)


def test_an_entry_is_admitted_with_what_readers_filter_by():
    """The bytes stay as they came; tenant, model, subject and decision stand beside them."""
    body = canonical(GOOD | {"tenant": "a", "model": "m", "subject": "p1:x", "decision_id": "d-1", "purpose": "p"})
    admitted = admit(row(body))

    assert admitted.entry == Entry(ID, "k", "d365", AT, body)
    assert (admitted.tenant, admitted.model, admitted.subject, admitted.decision) == ("a", "m", "p1:x", "d-1")


def test_a_filter_is_never_longer_than_an_index_takes():
    """A value beyond it is cut in the filter alone; one that is no text is none."""
    admitted = admit(row(canonical(GOOD | {"tenant": "\u00e9" * 5000, "model": 5})))

    assert admitted.tenant == "\u00e9" * 512
    assert admitted.model is None


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "canonical"),
        (b"no JSON", "canonical"),
        (b"\xff\xfe", "canonical"),
        (b"[1]", "canonical"),
        (b"null", "canonical"),
        (b"[" * 300 + b"]" * 300, "canonical"),
        (b'{"a":' * 900 + b"1" + b"}" * 900, "canonical"),
        (orjson.dumps(GOOD), "canonical"),  # keys are not sorted
        (canonical(GOOD) + b"\n", "canonical"),
        (canonical(GOOD).replace(b'"v":1', b'"v":1,"v":1'), "canonical"),
        (canonical(GOOD).replace(b'"v":1', b'"v":1.0'), "canonical"),
        (canonical(GOOD | {"x": 1}).replace(b'"x":1', b'"x":9007199254740992'), "canonical"),
        (canonical(GOOD | {"x": 1}).replace(b'"x":1', b'"x":"\\u0000"'), "canonical"),
        (canonical(GOOD | {"x": 1}).replace(b'"x":1', b'"x":"\\ud800"'), "canonical"),
        (canonical(GOOD | {"x": 1}).replace(b'"x":1', '"\u00e9":1'.encode()), "canonical"),
        (canonical({name: value for name, value in GOOD.items() if name != "v"}), "version"),
        (canonical(GOOD | {"v": True}), "version"),
        (canonical(GOOD | {"v": 0}), "version"),
        (canonical(GOOD | {"kind": ""}), "kind"),
        (canonical(GOOD | {"kind": 1}), "kind"),
        (canonical(GOOD | {"kind": "k" * 65}), "kind"),
        (canonical(GOOD | {"id": "01920000-0000-7000-8000-000000000002"}), "id"),
        (canonical(GOOD | {"recorded": "2026-01-02T03:04:05.000007Z"}), "instant"),
    ],
)
def test_what_is_no_entry_is_told_apart(body: bytes, why: str):
    """Bytes that are not canonical, lack a part or contradict their row are no entry."""
    with pytest.raises(Malformed, match=why):
        admit(row(body))


def test_a_time_that_no_shelf_has_is_no_entry():
    """A row whose instant lies outside the years 2000 to 2999 comes without one."""
    with pytest.raises(Malformed, match="instant"):
        admit(row(canonical(GOOD), recorded=None))


def test_an_entry_of_a_future_that_nobody_may_sign_for_is_no_entry():
    """A writer whose clock is years ahead is told apart; up to the last instant of the key its word is taken."""
    assert admit(row(canonical(GOOD)), latest=AT).entry.recorded == AT
    with pytest.raises(Malformed, match="future"):
        admit(row(canonical(GOOD)), latest=AT - timedelta(microseconds=1))


def test_what_is_no_entry_is_kept_byte_for_byte():
    """The entry in its place holds row, bytes and their SM3, and is itself one that is admitted."""
    kept = malformed(row(b"\x00\xffhalf"), "why", recorded=NOW)
    body = orjson.loads(kept.entry.body)

    assert admit(row_of(kept.entry)) == kept
    assert body["row"] == str(ID)
    assert body["why"] == "why"
    assert base64.b64decode(body["base64"]) == b"\x00\xffhalf"
    assert (body["bytes"], body["kept_bytes"], body["retention"]) == (6, 6, "d365")
    assert body["sm3"] == sm3(b"\x00\xffhalf").hex()
    assert kept.entry.recorded == NOW


def test_what_is_too_large_is_cut_and_says_so():
    """Of a megabyte the first 64 KiB stay, with the length and SM3 of all."""
    kept = malformed(row(b"x" * 1_000_000), "why", recorded=NOW)
    body = orjson.loads(kept.entry.body)

    assert (body["bytes"], body["kept_bytes"]) == (1_000_000, 65_536)
    assert base64.b64decode(body["base64"]) == b"x" * MAX_KEPT_BYTES
    assert body["sm3"] == sm3(b"x" * 1_000_000).hex()


@pytest.mark.parametrize(("given_class", "kept_class"), [("d100", "d400"), ("d730", "d730")])
def test_a_forged_class_does_not_shorten_what_is_kept(given_class: str, kept_class: str):
    """What stands for a row stays as long as the row would have, and never shorter than the default."""
    kept = malformed(Row(ID, given_class, AT, b"?"), "why", recorded=NOW)

    assert kept.entry.retention == kept_class


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists).map(repr).map(str.encode)
)
def test_any_bytes_have_a_place(body: bytes):
    """Whatever bytes a writer hands over, they are an entry or stand in one."""
    one = row(body)
    try:
        held = admit(one).entry.body
    except Malformed as error:
        held = base64.b64decode(orjson.loads(malformed(one, str(error), recorded=NOW).entry.body)["base64"])
    assert body == held


def test_what_writers_make_is_admitted():
    """An entry from its builder passes."""
    entry = numbered(1)

    assert admit(row_of(entry)).entry == entry
