"""How an approval stands, by its entries."""

from datetime import timedelta

import pytest

from app.audit.records.entry import Entry
from app.instants import rfc3339
from app.reports.evidence.approvals import approvals_at
from tests.fixtures.night import NIGHT, NOON, approval, as_logged, read

HOUR = timedelta(hours=1)
ASKED = approval("asked", "a", "anna", expires=NOON + 100 * HOUR)
GIVEN = approval("approved", "a", "ben", NOON + HOUR, expires=NOON + 100 * HOUR)
REFUSED = approval("refused", "a", "ben", NOON + HOUR)
REVOKED = approval("revoked", "a", "cleo", NOON + 2 * HOUR)
SHORT = approval("approved", "a", "ben", NOON + HOUR, expires=NOON + 2 * HOUR)


@pytest.mark.parametrize(
    ("entries", "state", "decided_by"),
    [
        ([ASKED], "asked", None),
        ([ASKED, GIVEN], "approved", "ben"),
        ([ASKED, REFUSED], "refused", "ben"),
        ([ASKED, REFUSED, GIVEN], "refused", "ben"),
        ([ASKED, GIVEN, REVOKED], "revoked", "ben"),
        ([ASKED, REVOKED, GIVEN], "revoked", None),
        ([ASKED, SHORT], "expired", "ben"),
        ([GIVEN], "approved", "ben"),
    ],
)
def test_an_approval_stands_as_its_entries_say(entries: list[Entry], state: str, decided_by: str | None):
    """Asked, then approved or refused, perhaps revoked, over when its time is over; the first decision counts."""
    logged = [as_logged(number, entry) for number, entry in enumerate([*entries, read()])]
    (found,) = approvals_at(logged, rfc3339(NIGHT.end))

    assert (found.id, found.state, found.decided_by, found.entries) == ("a", state, decided_by, tuple(range(len(entries))))


@pytest.mark.parametrize(
    ("entries", "hours", "covered"),
    [
        ([ASKED], 5, False),
        ([ASKED, GIVEN], 0.9, False),
        ([ASKED, GIVEN], 1, True),
        ([ASKED, GIVEN], 99, True),
        ([ASKED, GIVEN], 100, False),
        ([ASKED, GIVEN, REVOKED], 1.9, True),
        ([ASKED, GIVEN, REVOKED], 2, False),
        ([ASKED, SHORT], 2, False),
    ],
)
def test_an_approval_covers_from_when_it_was_given_until_it_ends(entries: list[Entry], hours: float, covered: bool):
    """Half-open on the right: at the instant at which it ends it is over."""
    (found,) = approvals_at([as_logged(number, entry) for number, entry in enumerate(entries)], rfc3339(NIGHT.end))

    assert found.covers(rfc3339(NOON + hours * HOUR)) is covered


def test_who_asked_and_approved_is_told_apart():
    """The four-eyes rule is checked from the log, too."""
    own = approval("approved", "a", "anna", NOON + HOUR, expires=NOON + 9 * HOUR)

    assert [found.by_oneself for found in approvals_at([as_logged(0, ASKED), as_logged(1, own)], rfc3339(NOON))] == [True]
    assert [found.by_oneself for found in approvals_at([as_logged(0, ASKED), as_logged(1, GIVEN)], rfc3339(NOON))] == [False]
    assert [found.by_oneself for found in approvals_at([as_logged(0, ASKED)], rfc3339(NOON))] == [False]
