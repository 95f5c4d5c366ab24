"""A night's report tells of one day of a zone: from its midnight to the next, in instants of UTC, half-open.

A day has 23, 24 or 25 hours. Where the clocks jump over midnight the day begins with the first instant that there is.
"""

import functools
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from app.errors import BadRequest
from app.instants import Period, instant, rfc3339

LATE = timedelta(minutes=15)
"""A count that is written down later than this after its minute belongs to the day on which it is written down: a day whose report
is made must not grow any more. Until as long after midnight a day is not over."""

SUMMARY = "decisions.minute"
YEARS = range(2000, 3000)
"""Those whose entries the log has shelves for."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Night:
    """One day of one zone."""

    day: date
    zone: str
    """Name in the IANA database, such as Asia/Shanghai."""

    @classmethod
    def of(cls, day: str, zone: str, *, option: str = "--date") -> "Night":
        """The day as its user writes it behind `option`: YYYY-MM-DD, and a zone. Raises BadRequest naming the option."""
        zone_of(zone, "--zone")
        field = option.lstrip("-")
        try:
            parsed = date.fromisoformat(day) if _DAY.fullmatch(day) else None
        except ValueError:
            parsed = None  # the form is right, but no calendar has it
        if parsed is None or parsed.year not in YEARS:
            raise BadRequest(f"{option}: {day!r} is no day", hint="Write the day as YYYY-MM-DD, such as 2026-01-31.", field=field)
        night = cls(parsed, zone)
        if not night.exists:
            raise BadRequest(f"{option}: {zone} had no {day}: its clocks went over it", hint="Name the day before or after.", field=field)
        return night

    @classmethod
    def containing(cls, at: datetime, zone: str) -> "Night":
        """The day of `zone` in which the instant `at` lies."""
        night = cls(at.astimezone(ZoneInfo(zone)).date(), zone)
        # Where the clocks go back from just after midnight, the last minutes of a date come again when the next has begun.
        return night.next() if night.end <= at else night

    @property
    def period(self) -> Period:
        """Its instants, in UTC."""
        return Period(self.begin, self.end)

    @property
    def begin(self) -> datetime:
        """Its first instant."""
        return _midnight(self.day, self.zone)

    @property
    def end(self) -> datetime:
        """The first instant that is no longer its own."""
        return _midnight(self.day + timedelta(days=1), self.zone)

    @property
    def closes(self) -> datetime:
        """From when on nothing can be added to it any more."""
        return self.end + LATE

    @property
    def hours(self) -> float:
        """How long it is: 24, on two days of a year often 23 and 25."""
        return (self.end - self.begin).total_seconds() / 3600

    @property
    def exists(self) -> bool:
        """Whether the zone has such a day: a zone that changed sides of the date line has one less, or lived it twice as long."""
        return self.begin < self.end

    @property
    def name(self) -> str:
        """Day and zone as a name for folders and paths: 2026-11-29-asia-shanghai. No two zones have one: Etc/GMT+5 is etc-gmt-plus-5."""
        return f"{self.day.isoformat()}-{_NOT_IN_NAMES.sub('-', self.zone.lower().replace('+', '-plus-')).strip('-')}"

    def previous(self) -> "Night":
        """The day before."""
        return Night(self.day - timedelta(days=1), self.zone)

    def next(self) -> "Night":
        """The day after."""
        return Night(self.day + timedelta(days=1), self.zone)

    def spans(self, at: str) -> bool:
        """Whether the instant `at`, as entries write it, lies in it."""
        begin, end = _edges(self)
        return begin <= at < end


def counts_at(kind: str, recorded: str, minute: str | None = None) -> str:
    """The instant whose day an entry belongs to: when it was recorded, of a count that came in time its minute."""
    return minute if kind == SUMMARY and minute is not None and in_time(recorded, minute) else recorded


def in_time(recorded: str, minute: str) -> bool:
    """Whether a count that was written down at `recorded` belongs to the day of its `minute`: it came after it, and not later than LATE.

    A clock that stepped back writes one down before its minute; that belongs to the day of writing, among whose entries it is looked for.
    """
    first, last = _in_time_for(minute)
    return first == minute and first <= recorded <= last


@functools.lru_cache(maxsize=4096)
def _in_time_for(minute: str) -> tuple[str, str]:
    """From when until when a count of this minute is written down in time; a day has 1440 to 1500 of them. Of what is no instant never."""
    try:
        at = instant(minute, "minute")
        return rfc3339(at), rfc3339(at + LATE)
    except (BadRequest, OverflowError):
        return "", ""


@functools.lru_cache(maxsize=64)
def _edges(night: Night) -> tuple[str, str]:
    """Its first instant, and that of the next day, as entries write them."""
    return rfc3339(night.begin), rfc3339(night.end)


def zone_of(zone: str, field: str) -> ZoneInfo:
    """The zone with this name. Raises BadRequest naming `field`."""
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadRequest(f"{field}: {zone!r} is no time zone", hint="Write one such as Asia/Shanghai or UTC.", field=field) from None


def _midnight(day: date, zone: str) -> datetime:
    """The first instant of `day`. A local time that the clocks jump over is read by the offset before the jump, which leads beyond it."""
    return datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)
