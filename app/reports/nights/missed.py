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
    since: Night | None
    """The oldest that was looked at; None of an empty log."""
    to: Night | None
    """The newest that was looked at; None where none is over."""


def missing_nights(
    first: datetime | None, made: Collection[Night], now: datetime, zone: str, *, last: Night | None = None, most: int = MOST_AT_ONCE
) -> Missing:
    """The nights of `zone` that are over at `now` and not among `made`, from the day of the log's `first` entry on, none after `last`.

    Of more than `most` the newest: nobody waits for yesterday's until an old month is made up for. None where `first` is None,
    since a log without any entry has no night.
    """
    if first is None:
        return Missing([], 0, None, None)
    oldest, night = Night.containing(first, zone), Night.containing(now, zone)
    if last and last.day < night.day:
        night = last.next()
    missing: list[Night] = []
    more, newest = 0, None
    while (night := night.previous()).day >= oldest.day:
        if night.closes > now or not night.exists:
            continue
        newest = newest or night
        if night in made:
            continue
        if len(missing) < most:
            missing.append(night)
        else:
            more += 1
    return Missing(missing[::-1], more, oldest, newest)
