"""Until when answers and notices are due."""

import calendar
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import BadRequest
from app.instants import rfc3339
from app.reports.evidence.facts import Breach, SubjectRequest
from app.reports.subjects.breaches import hours_late, hours_left
from app.reports.subjects.due import answer_due, by_clocks, happened, notice_due
from app.reports.subjects.requests import days_late, days_left

ZONES = ["UTC", "Asia/Shanghai", "Europe/Berlin", "America/New_York", "Pacific/Apia", "Asia/Kathmandu"]
instants = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))  # noqa: DTZ001 - made aware


@pytest.mark.parametrize(
    ("received", "zone", "due"),
    [
        ("2026-01-31T10:00:00+00:00", "UTC", "2026-02-28T10:00:00+00:00"),
        ("2028-01-31T10:00:00+00:00", "UTC", "2028-02-29T10:00:00+00:00"),  # a leap year
        ("2026-01-15T10:00:00+00:00", "UTC", "2026-02-15T10:00:00+00:00"),
        ("2026-12-31T23:59:59+00:00", "UTC", "2027-01-31T23:59:59+00:00"),
        ("2026-03-31T00:00:00+00:00", "UTC", "2026-04-30T00:00:00+00:00"),
        ("2026-01-30T17:00:00+00:00", "Asia/Shanghai", "2026-02-27T17:00:00+00:00"),  # 31 January 01:00 there, due 28 February 01:00
        ("2026-03-10T12:00:00+00:00", "Europe/Berlin", "2026-04-10T11:00:00+00:00"),  # 13:00 before and after the clocks go forward
    ],
)
def test_an_answer_is_due_on_the_same_day_of_next_month(received: str, zone: str, due: str):
    """One month by the calendar of the zone; where the month is shorter, its last day."""
    assert answer_due(datetime.fromisoformat(received), zone) == datetime.fromisoformat(due)


@given(instants, st.sampled_from(ZONES))
def test_a_month_is_never_longer_than_the_law_allows(received: datetime, zone: str):
    """The day it is due lies in the next month and is that of today, or the last of its month; 28 to 31 days, and the clocks' hour."""
    begins, due = received.astimezone(ZoneInfo(zone)), answer_due(received, zone).astimezone(ZoneInfo(zone))
    months = (due.year - begins.year) * 12 + due.month - begins.month

    assert months == 1
    assert due.day == min(begins.day, calendar.monthrange(due.year, due.month)[1])
    assert timedelta(days=27, hours=22) <= due - begins <= timedelta(days=31, hours=2)


def test_a_breach_is_due_after_72_hours():
    """By hours, not by days of the calendar."""
    assert notice_due(datetime(2026, 3, 28, 12, tzinfo=UTC)) == datetime(2026, 3, 31, 12, tzinfo=UTC)


@given(instants, st.integers(0, 300))
def test_hours_left_are_72_less_those_that_passed(known: datetime, hours: int):
    """Down to 0 and below it, whatever the calendar says; none where the authority was told."""
    breach = Breach("b", None, rfc3339(known), rfc3339(notice_due(known)), None)

    assert hours_left(breach, known + timedelta(hours=hours)) == 72 - hours
    assert hours_left(replace(breach, notified={"authority": rfc3339(known)}), known) is None


@given(instants, st.integers(0, 300), st.integers(0, 1000))
def test_a_late_notice_stays_late(known: datetime, told_after: int, looked_after: int):
    """By the hours beyond 72 at which the authority was told, whenever somebody looks; until it is told, by those that have passed."""
    breach = Breach("b", None, rfc3339(known), rfc3339(notice_due(known)), None)
    told = replace(breach, notified={"authority": rfc3339(known + timedelta(hours=told_after))})
    now = known + timedelta(hours=looked_after)

    assert hours_late(told, now) == (told_after - 72 if told_after > 72 else None)
    assert hours_late(breach, now) == (looked_after - 72 if looked_after > 72 else None)


def test_a_late_answer_stays_late():
    """An open request has days left, and days late once they are below 0; one that was answered late is late by what it took, for good."""
    request = SubjectRequest("r", "acme", "p1:x", "GDPR Art. 15", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "open")
    before, after = datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 2, 11, tzinfo=UTC)
    answered = replace(request, status="done", answered="2026-02-03T12:00:00Z")

    assert [(days_left(request, now), days_late(request, now)) for now in (before, after)] == [(1.0, None), (-10.0, 10.0)]
    assert [(days_left(answered, now), days_late(answered, now)) for now in (before, after)] == [(None, 2.5), (None, 2.5)]
    assert days_late(replace(answered, answered=request.due), after) is None


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("Asia/Shanghai", "2027-01-01T02:40:00+08:00"),
        ("UTC", "2026-12-31T18:40:00+00:00"),
        ("America/New_York", "2026-12-31T13:40:00-05:00"),
    ],
)
def test_times_are_shown_by_the_clocks_of_the_zone(zone: str, shown: str):
    """So that the same day of the next month is seen to be that day; the offset says which clocks."""
    assert by_clocks("2026-12-31T18:40:00.987654Z", zone) == shown


def test_nothing_has_happened_in_the_future():
    """A time that has not come is refused by its option; now is not."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    happened(now, now, "received")

    with pytest.raises(BadRequest, match="--received: lies in the future"):
        happened(now + timedelta(microseconds=1), now, "received")


def test_what_lies_too_far_back_is_a_slip():
    """A year that was mistyped is refused by its option, the first of the calendar too, which no zone can tell; ten years ago is not."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    happened(now - timedelta(days=3650), now, "aware")

    for at in (now - timedelta(days=3650, microseconds=1), datetime(1, 1, 1, tzinfo=UTC)):
        with pytest.raises(BadRequest, match="--aware: lies more than 10 years back"):
            happened(at, now, "aware")
