"""Which nights have no reports yet. Pure."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from app.reports.nights.night import Night

MOST_AT_ONCE = 31
"""A month of reports takes an hour at the very most; who was away for longer starts again."""


@dataclass(frozen=True, slots=True)
class Missing:
    """What is to be made."""

    nights: list[Night]
    """In the order of the calendar."""
    more: int
    """How many still older ones there are beyond the bound."""


def missing_nights(first: datetime | None, made: Collection[Night], now: datetime, zone: str, most: int = MOST_AT_ONCE) -> Missing:
    """The nights of `zone` that are over at `now` and not among `made`, from the day of the log's `first` entry on.

    Of more than `most` the newest: nobody waits for yesterday's until an old month is made up for. None where `first` is None,
    since a log without any entry has no night.
    """
    if first is None:
        return Missing([], 0)
    oldest, night = Night.containing(first, zone), Night.containing(now, zone)
    missing: list[Night] = []
    more = 0
    while (night := night.previous()).day >= oldest.day:
        if night.closes > now or not night.exists or night in made:
            continue
        if len(missing) < most:
            missing.append(night)
        else:
            more += 1
    return Missing(missing[::-1], more)
