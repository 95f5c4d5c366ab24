"""A night is one day of a zone, however long its clocks make it, and each entry of a log belongs to exactly one."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from zoneinfo import available_timezones

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.errors import BadRequest
from app.instants import rfc3339
from app.reports.nights.night import LATE, SUMMARY, Night, counts_at

HALF_HOUR = timedelta(minutes=30)
ZONES = sorted(available_timezones())
INSTANTS = st.datetimes(datetime(2001, 1, 1), datetime(2099, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 - bounds have none


def each_half_hour(begin: datetime, end: datetime) -> Iterator[datetime]:
    """One event each 30 minutes."""
    while begin < end:
        yield begin
        begin += HALF_HOUR


def has(night: Night, kind: str, recorded: str, minute: str | None = None) -> bool:
    """Whether such an entry counts in that day, as those who gather ask it."""
    return night.spans(counts_at(kind, recorded, minute))


@pytest.mark.parametrize(
    ("zone", "first", "counts"),
    [
        ("Europe/Berlin", date(2026, 3, 28), [48, 46, 48]),
        ("Europe/Berlin", date(2026, 10, 24), [48, 50, 48]),
        ("UTC", date(2026, 3, 28), [48, 48, 48]),
        ("UTC", date(2026, 10, 24), [48, 48, 48]),
        ("Asia/Shanghai", date(2026, 3, 28), [48, 48, 48]),
        ("Asia/Shanghai", date(2026, 10, 24), [48, 48, 48]),
        ("Pacific/Apia", date(2011, 12, 28), [48, 48, 0, 48]),
        ("America/Sao_Paulo", date(2018, 11, 3), [48, 46, 48]),
        ("America/Sao_Paulo", date(2018, 2, 16), [48, 50, 48]),
        ("America/Havana", date(2026, 3, 7), [48, 46, 48]),
        ("America/Havana", date(2026, 10, 31), [48, 50, 48]),
        ("Australia/Lord_Howe", date(2026, 4, 4), [48, 49, 48]),
        ("America/St_Johns", date(2010, 11, 6), [48, 50, 48]),
    ],
)
def test_a_day_has_the_events_between_its_midnights(zone: str, first: date, counts: list[int]):
    """46 half hours on the day that loses an hour, 50 on the one that gains it, each event on one day, and all on some."""
    nights = [Night(first + timedelta(days=day), zone) for day in range(len(counts))]
    events = list(each_half_hour(nights[0].begin, nights[-1].end))
    found = [[event for event in events if has(night, "key.created", rfc3339(event))] for night in nights]

    assert [len(of_day) for of_day in found] == counts
    assert [event for of_day in found for event in of_day] == events


@given(INSTANTS, st.sampled_from(ZONES), st.integers(0, 3600 * 30))
@example(datetime(2011, 12, 30, 9, 59, 59, 999999, UTC), "Pacific/Apia", 0)
@example(datetime(2011, 12, 30, 10, tzinfo=UTC), "Pacific/Apia", 900)
@example(datetime(2010, 11, 7, 2, 30, tzinfo=UTC), "America/St_Johns", 60)
@example(datetime(2010, 11, 7, 2, 31, tzinfo=UTC), "America/St_Johns", 60)
@example(datetime(2026, 11, 1, 4, 30, tzinfo=UTC), "America/Havana", 60)
def test_each_entry_belongs_to_exactly_one_night(at: datetime, zone: str, after_s: int):
    """Whatever the zone does with its clocks, an entry and a count are of one night and of none beside it."""
    recorded, minute = rfc3339(at), rfc3339(at - timedelta(seconds=after_s))
    nights = [Night(at.date() + timedelta(days=day), zone) for day in range(-4, 4)]

    assert [night for night in nights if has(night, "key.created", recorded)] == [Night.containing(at, zone)]
    assert sum(has(night, SUMMARY, recorded, minute) for night in nights) == 1


@given(INSTANTS, st.sampled_from(ZONES))
def test_a_night_begins_where_the_one_before_ends(at: datetime, zone: str):
    """Nights follow each other without a gap, and the one that contains an instant has it between its edges."""
    night = Night.containing(at, zone)

    assert night.begin <= at < night.end
    assert night.previous().end == night.begin
    assert night.previous().next() == night
    assert night.exists
    assert 0 < night.hours <= 48


@pytest.mark.parametrize(
    ("late", "of_its_minute"),
    [(timedelta(0), True), (LATE, True), (LATE + timedelta(microseconds=1), False), (-timedelta(seconds=1), False)],
)
def test_a_count_belongs_to_its_minute_unless_it_is_late(late: timedelta, of_its_minute: bool):
    """What is written down at once or in 15 minutes is of its minute's day; later, or earlier by a clock that stepped back, of the day of writing."""
    first, second = Night(date(2026, 11, 28), "UTC"), Night(date(2026, 11, 29), "UTC")
    minute = second.begin if late < timedelta(0) else first.end - timedelta(minutes=1)
    recorded = minute + late
    written = first if recorded < first.end else second
    expected = Night.containing(minute, "UTC") if of_its_minute else written

    assert has(expected, SUMMARY, rfc3339(recorded), rfc3339(minute))
    assert Counter(has(night, SUMMARY, rfc3339(recorded), rfc3339(minute)) for night in (first, second)) == {True: 1, False: 1}


@pytest.mark.parametrize("minute", ["", "soon", "2026-11-28", "2026-13-28T00:00:00.000000Z", "9999-12-31T23:59:00.000000Z"])
def test_a_count_of_no_minute_belongs_to_the_day_of_its_writing(minute: str):
    """A forged minute moves nothing to another day."""
    assert has(Night(date(2026, 11, 28), "UTC"), SUMMARY, "2026-11-28T12:00:00.000000Z", minute)


@pytest.mark.parametrize(
    ("day", "zone", "said"),
    [
        ("2026-02-30", "UTC", "--date: '2026-02-30' is no day"),
        ("26-01-01", "UTC", "--date: '26-01-01' is no day"),
        ("1999-12-31", "UTC", "--date: '1999-12-31' is no day"),
        ("9999-12-31", "UTC", "--date: '9999-12-31' is no day"),
        ("2026-01-01", "Mars/Base", "--zone: 'Mars/Base' is no time zone"),
        ("2026-01-01", "../etc/passwd", "--zone: '../etc/passwd' is no time zone"),
        ("2011-12-30", "Pacific/Apia", "--date: Pacific/Apia had no 2011-12-30: its clocks went over it"),
    ],
)
def test_what_is_no_day_of_a_zone_is_refused(day: str, zone: str, said: str):
    """The error names the option and what is wrong."""
    with pytest.raises(BadRequest) as refused:
        Night.of(day, zone)
    assert refused.value.message == said


def test_a_day_that_is_none_is_told_by_its_option_with_the_form_to_write():
    """Not as an order to take the day of the example."""
    with pytest.raises(BadRequest) as refused:
        Night.of("2026-11-31", "UTC", option="--until")
    assert (refused.value.message, refused.value.field) == ("--until: '2026-11-31' is no day", "until")
    assert refused.value.advice == "Write the day as YYYY-MM-DD, such as 2026-01-31."


def test_a_night_has_a_name_for_folders():
    """Its name has no character that a path or a URL treats otherwise."""
    night = Night.of("2026-10-25", "America/Argentina/Buenos_Aires")

    assert night.name == "2026-10-25-america-argentina-buenos-aires"
    assert Night.of("2026-10-25", "Europe/Berlin").hours == 25
    assert Night.of("2026-10-25", "Europe/Berlin").closes == datetime(2026, 10, 25, 23, 15, tzinfo=UTC)


def test_no_two_zones_have_one_name():
    """Names of folders tell zones apart that differ in a sign alone."""
    names = Counter(Night(date(2026, 1, 1), zone).name for zone in ZONES)
    assert max(names.values()) == 1
    assert Night(date(2026, 1, 1), "Etc/GMT+5").name == "2026-01-01-etc-gmt-plus-5"
