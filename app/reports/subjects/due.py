"""Until when something is to be done: one month by the calendar for an answer, 72 hours for the notice of a breach. Pure."""

import calendar
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from app.errors import BadRequest
from app.instants import instant

NOTICE = timedelta(hours=72)
"""GDPR Art. 33(1)."""
LONGEST_AGO = timedelta(days=10 * 365)
"""Older than that is no request that waits for an answer, and no breach that anybody hears of only now."""


def answer_due(received: datetime, zone: str) -> datetime:
    """When a request that came in at `received` must be answered, in UTC (GDPR Art. 12(3): within one month).

    The same day of the next month at the same time of the clocks of `zone`; where that month is shorter, its last day: what comes on
    31 January is due on 28 or 29 February. Regulation 1182/71 Art. 3 would allow until the end of that day, and until the next
    working day: this is never later. A time that the clocks jump over on that day is read by the offset before the jump.
    """
    local = received.astimezone(ZoneInfo(zone))
    year, month = local.year + local.month // 12, local.month % 12 + 1
    day = min(local.day, calendar.monthrange(year, month)[1])
    return local.replace(year=year, month=month, day=day).astimezone(UTC)


def notice_due(aware: datetime) -> datetime:
    """When the authority must have been told of a breach that became known at `aware`."""
    return aware + NOTICE


def by_clocks(at: str, zone: str) -> str:
    """An instant of the log as the clocks of `zone` show it, to the second, with their offset: `2026-12-31T02:40:00+08:00`."""
    return instant(at, "at").astimezone(ZoneInfo(zone)).isoformat(timespec="seconds")


def happened(at: datetime, now: datetime, field: str) -> None:
    """Raises BadRequest naming `field` where `at` has not come yet, or is so long ago that it is a slip of the keyboard."""
    if at > now:
        raise BadRequest(f"--{field}: lies in the future", hint="Give the time when it happened, RFC 3339.", field=field)
    if at < now - LONGEST_AGO:
        years = LONGEST_AGO.days // 365
        raise BadRequest(f"--{field}: lies more than {years} years back", hint="Check the year.", field=field)
