"""The hours of a night by the clock of its zone: 24, on two days of a year often 23 or 25. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from app.instants import rfc3339
from app.reports.nights.night import Night


@dataclass(frozen=True, slots=True)
class Hour:
    """One hour, or the rest of one where the clocks are put forward or back in the middle of it."""

    begin: datetime
    """In UTC."""
    name: str
    """As the zone's clock has it, 00 to 23. Where the clocks go back one comes twice."""


def hours_of(night: Night) -> Sequence[Hour]:
    """The hours of `night` in order, without a gap between them."""
    zone, hours, at = ZoneInfo(night.zone), [], night.begin
    while at < night.end:
        local = at.astimezone(zone)
        hours.append(Hour(at, f"{local.hour:02}"))
        at += timedelta(hours=1) - timedelta(minutes=local.minute, seconds=local.second)
    return hours


class HourOf:
    """Finds the hour of an instant that is given as text (app/instants.py), quickly for many."""

    def __init__(self, night: Night) -> None:
        self.hours = hours_of(night)
        self._begins = [rfc3339(hour.begin) for hour in self.hours]

    def index(self, at: str) -> int:
        """The index in `hours` of the one in which `at` lies; -1 before the night, the last one after it."""
        return bisect_right(self._begins, at) - 1
