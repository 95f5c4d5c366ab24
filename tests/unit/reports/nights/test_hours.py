"""The hours of a night, by the clock of its zone."""

import itertools
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.instants import rfc3339
from app.reports.nights.hours import HourOf, hours_of
from app.reports.nights.night import Night
from tests.unit.reports.nights.test_night import INSTANTS, ZONES

ALL = [f"{hour:02}" for hour in range(24)]


@pytest.mark.parametrize(
    ("night", "names"),
    [
        (Night(date(2026, 11, 29), "Asia/Shanghai"), ALL),
        (Night(date(2026, 3, 29), "Europe/Berlin"), ["00", "01", *ALL[3:]]),
        (Night(date(2026, 10, 25), "Europe/Berlin"), ["00", "01", "02", *ALL[2:]]),
        (Night(date(2018, 11, 4), "America/Sao_Paulo"), ALL[1:]),
        (Night(date(2026, 11, 29), "Asia/Kathmandu"), ALL),
        (Night(date(2026, 4, 5), "Australia/Lord_Howe"), ["00", "01", "01", *ALL[2:]]),
    ],
)
def test_a_night_has_the_hours_that_its_clock_shows(night: Night, names: list[str]):
    """23, 24 or 25; one that comes twice has two places, and half an hour is a place of its own."""
    assert [hour.name for hour in hours_of(night)] == names


def test_hours_begin_where_the_clock_of_the_zone_has_them():
    """In Kathmandu, 5 h 45 min before UTC, an hour begins a quarter past one of UTC."""
    hours = hours_of(Night(date(2026, 11, 29), "Asia/Kathmandu"))

    assert [hour.begin for hour in hours[:2]] == [datetime(2026, 11, 28, 18, 15, tzinfo=UTC), datetime(2026, 11, 28, 19, 15, tzinfo=UTC)]


@given(INSTANTS, st.sampled_from(ZONES))
def test_each_instant_of_a_night_is_in_the_hour_that_has_begun_last(at: datetime, zone: str):
    """No gap between hours, whatever the zone does, and none is longer than an hour."""
    night = Night.containing(at, zone)
    hour_of = HourOf(night)
    begins = [*(hour.begin for hour in hour_of.hours), night.end]
    index = hour_of.index(rfc3339(at))

    assert begins[index] <= at < begins[index + 1]
    assert all(0 < (end - begin).total_seconds() <= 3600 for begin, end in itertools.pairwise(begins))
