"""What `sluice report nightly` says where it makes nothing: an auditor may be shown it, so it claims no more than was looked at."""

from datetime import UTC, date, datetime

import pytest

from app.cli.report.nightly import why_none
from app.reports.nights.missed import missing_nights
from app.reports.nights.night import Night

BEGUN = datetime(2026, 11, 1, 12, tzinfo=UTC)


def night(month: int, day: int) -> Night:
    return Night(date(2026, month, day), "UTC")


@pytest.mark.parametrize(
    ("begun", "now", "last", "says"),
    [
        (None, BEGUN, None, "the log is empty"),
        (BEGUN, BEGUN, None, "no day of UTC from 2026-11-01 on, where the log begins, is over"),
        (BEGUN, datetime(2026, 11, 4, 8, tzinfo=UTC), None, "the log says that each night of UTC from 2026-11-01 to 2026-11-03 was made"),
        (
            BEGUN,
            datetime(2026, 11, 4, 8, tzinfo=UTC),
            night(11, 2),
            "the log says that each night of UTC from 2026-11-01 to 2026-11-02 was made",
        ),
        (
            BEGUN,
            datetime(2026, 11, 4, 8, tzinfo=UTC),
            night(10, 31),
            "nights before 2026-11-01 are more than a year ago, and made with --date alone",
        ),
    ],
)
def test_nothing_is_said_of_nights_that_nobody_looked_at(begun: datetime | None, now: datetime, last: Night | None, says: str):
    """An empty log, one that began today, one whose nights are all made, up to yesterday or an earlier one; nights beyond a year."""
    made = {night(11, day) for day in range(1, 4)}
    assert why_none(missing_nights(begun, made, now, "UTC", last=last), "UTC", last) == says
