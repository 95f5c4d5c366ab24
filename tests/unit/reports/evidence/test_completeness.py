"""Whether an entry has what an audit record must have."""

from dataclasses import replace

import orjson
import pytest

from app.audit.records.entry import Entry, canonical
from app.reports.evidence.completeness import is_complete, is_readable
from app.reports.evidence.facts import Logged
from tests.fixtures.night import NOON, NightLog, as_logged, breach, eventful, read, request

WHOLE = dict(as_logged(0, read(NOON)).body)


def test_what_serve_writes_is_complete():
    """Each builder's entry has all five: date and time, user, kind, outcome, and what belongs to its kind."""
    assert [entry.kind for entry in eventful() if not is_complete(as_logged(0, entry))] == []


@pytest.mark.parametrize(
    "changes",
    [{"operator": None}, {"operator": ""}, {"operator": 7}, {"outcome": None}, {"outcome": "perhaps"}, {"read": None}, {"colour": "red"}],
)
def test_what_lacks_a_member_or_has_a_strange_one_is_not(changes: dict[str, object]):
    """None stands for a member that is absent."""
    body = {name: value for name, value in (WHOLE | changes).items() if value is not None}

    assert is_complete(Logged(0, WHOLE, "d400"))
    assert not is_complete(Logged(0, body, "d400"))


def test_a_kind_of_a_later_version_needs_something_beside_the_envelope():
    """It cannot be judged by a table that does not know it."""
    later = WHOLE | {"kind": "moon.landed"}
    bare = {name: value for name, value in later.items() if name not in ("read", "query", "count")}

    assert is_complete(Logged(0, later, "d400"))
    assert not is_complete(Logged(0, bare, "d400"))


@pytest.mark.parametrize("changes", [{"expires": None}, {"tenant": 5}, {"request": ["x"]}, {"from": 7}])
def test_what_is_not_text_says_nothing_to_a_register(changes: dict[str, object]):
    """A null in the place of a date is as little as a number; a tenant may be null."""
    body = dict(as_logged(0, request("request-1")).body)
    assert is_readable(Logged(0, body, "d400"))
    assert is_readable(Logged(0, body | {"tenant": None}, "d400"))
    assert not is_readable(Logged(0, body | changes, "d400"))


def test_an_entry_without_a_member_stops_no_night():
    """Whoever may write to the intake can hand over a request or a breach without a tenant: it is counted as incomplete, and no more."""
    entries = [_without(entry, "tenant") for entry in (request("request-1"), breach("breach-1"))]
    evidence = NightLog.of(*entries).unverified()
    assert (evidence.entries, list(evidence.requests), list(evidence.breaches)) == (2, [], [])


def _without(entry: Entry, name: str) -> Entry:
    body = {member: value for member, value in orjson.loads(entry.body).items() if member != name}
    return replace(entry, body=canonical(body))
