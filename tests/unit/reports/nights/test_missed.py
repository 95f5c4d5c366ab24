"""Nights that have no reports yet."""

from datetime import UTC, date, datetime, timedelta

from app.reports.nights.missed import Missing, missing_nights
from app.reports.nights.night import Night

FIRST = datetime(2026, 11, 1, 12, tzinfo=UTC)


def night(day: int, zone: str = "UTC") -> Night:
    return Night(date(2026, 11, day), zone)


def test_all_since_the_first_entry_are_missing_where_none_was_made():
    """From the day of the log's first entry to yesterday, in the order of the calendar."""
    missing = missing_nights(FIRST, set(), datetime(2026, 11, 4, 8, tzinfo=UTC), "UTC")

    assert (missing.nights, missing.more) == ([night(1), night(2), night(3)], 0)


def test_what_is_made_is_not_missing():
    """A hole is found between others, and a night of another zone fills none."""
    made = {night(1), night(3), night(2, "Asia/Shanghai")}

    assert missing_nights(FIRST, made, datetime(2026, 11, 4, 8, tzinfo=UTC), "UTC").nights == [night(2)]


def test_a_night_is_missing_only_when_nothing_can_be_added_to_it():
    """Until a quarter of an hour after midnight yesterday is not over."""
    midnight = datetime(2026, 11, 3, tzinfo=UTC)

    assert missing_nights(FIRST, set(), midnight + timedelta(minutes=14), "UTC").nights == [night(1)]
    assert missing_nights(FIRST, set(), midnight + timedelta(minutes=15), "UTC").nights == [night(1), night(2)]


def test_of_too_many_the_newest_are_made_first_and_the_rest_is_told():
    """31 at once, and how many older ones there are."""
    missing = missing_nights(datetime(2026, 9, 1, tzinfo=UTC), set(), datetime(2026, 11, 30, 8, tzinfo=UTC), "UTC")

    assert len(missing.nights) == 31
    assert (missing.nights[0], missing.nights[-1]) == (Night(date(2026, 10, 30), "UTC"), night(29))
    assert missing.more == 30 + 29  # September, and October until the 29th


def test_none_after_the_last_that_is_wanted_is_missing():
    """The bound on how many counts from there; one that is not over yet bounds nothing."""
    now = datetime(2026, 11, 9, 8, tzinfo=UTC)
    missing = missing_nights(FIRST, set(), now, "UTC", last=night(4), most=2)

    assert (missing.nights, missing.more) == ([night(3), night(4)], 2)
    assert missing_nights(FIRST, set(), now, "UTC", last=night(20)).nights[-1] == night(8)


def test_what_was_looked_at_is_told():
    """From the log's first day to the newest that is over, or is wanted; whether anything is missing or not."""
    now, all_made = datetime(2026, 11, 4, 8, tzinfo=UTC), {night(day) for day in range(1, 4)}

    def looked_at(now: datetime = now, last: Night | None = None) -> tuple[Night | None, Night | None]:
        missing = missing_nights(FIRST, all_made, now, "UTC", last=last)
        return missing.since, missing.to

    assert looked_at() == (night(1), night(3))
    assert looked_at(last=night(2)) == (night(1), night(2))
    assert looked_at(last=Night(date(2026, 10, 31), "UTC")) == (night(1), None)
    assert looked_at(datetime(2026, 11, 2, tzinfo=UTC)) == (night(1), None)


def test_a_log_without_entries_has_no_night():
    """Nothing is missing of it, and nothing was looked at."""
    assert missing_nights(None, set(), FIRST, "UTC") == Missing([], 0, None, None)


def test_the_day_that_a_zone_never_had_is_not_missing():
    """On 30 December 2011 there was no Apia."""
    missing = missing_nights(datetime(2011, 12, 29, 12, tzinfo=UTC), set(), datetime(2012, 1, 1, 12, tzinfo=UTC), "Pacific/Apia")

    assert [str(night.day) for night in missing.nights] == ["2011-12-29", "2011-12-31", "2012-01-01"]
