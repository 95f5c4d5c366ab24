"""When nights are due."""

from datetime import UTC, date, datetime, time

import pytest

from app.reports.nights.night import Night
from app.reports.shelf.due import due, newest_due, time_of


@pytest.mark.parametrize(
    ("day", "zone", "at", "instant"),
    [
        ("2026-11-29", "Asia/Shanghai", "01:00", "2026-11-29T17:00"),
        ("2026-11-29", "UTC", "00:00", "2026-11-30T00:15"),  # not before it is over
        ("2026-03-28", "Europe/Berlin", "02:30", "2026-03-29T01:30"),  # the clocks jump over 02:30
        ("2026-10-24", "Europe/Berlin", "02:30", "2026-10-25T00:30"),  # and here it comes twice
        ("2026-11-29", "Pacific/Apia", "23:59", "2026-11-30T10:59"),
    ],
)
def test_a_night_is_due_at_the_time_of_its_zone(day: str, zone: str, at: str, instant: str):
    """On the day after it, by the clock of its zone, whatever that does."""
    night = Night(date.fromisoformat(day), zone)
    assert due(night, time.fromisoformat(at)) == datetime.fromisoformat(instant).replace(tzinfo=UTC)


def test_the_newest_due_changes_at_that_time():
    """A minute before it is the night before; from that instant on it is the night itself."""
    at = time(1)
    assert newest_due(datetime(2026, 11, 29, 16, 59, tzinfo=UTC), "Asia/Shanghai", at).day == date(2026, 11, 28)
    assert newest_due(datetime(2026, 11, 29, 17, 0, tzinfo=UTC), "Asia/Shanghai", at).day == date(2026, 11, 29)


def test_off_is_no_time():
    """`off` leaves it to somebody else."""
    assert (time_of("off"), time_of("23:59")) == (None, time(23, 59))
