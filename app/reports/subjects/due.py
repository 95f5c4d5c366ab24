"""Until when something is to be done: one month by the calendar for an answer, 72 hours for the notice of a breach. Pure."""

import calendar
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from app.errors import BadRequest

NOTICE = timedelta(hours=72)
"""GDPR Art. 33(1)."""


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


def not_later(at: datetime, now: datetime, field: str) -> None:
    """Raises BadRequest naming `field` where `at` has not come yet."""
    if at > now:
        raise BadRequest(f"--{field}: lies in the future", hint="Give the time when it happened, RFC 3339.", field=field)
