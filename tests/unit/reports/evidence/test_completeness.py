"""Whether an entry has what an audit record must have."""

import pytest

from app.reports.evidence.completeness import is_complete
from app.reports.evidence.facts import Logged
from tests.fixtures.night import NOON, as_logged, eventful, read

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
