"""Whether bodies that are gone went by the rules: their shelf's time was over, and an entry of the log says that it was emptied. Pure.

Of a body that is gone nothing is proven but its hash; which shelf it stood on is what the file says. Nor does the entry of a purge
prove its own time. So the time must be over by the clock of whoever verifies, and the shelf's month must fit the entries around.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from app.instants import rfc3339

LATE = timedelta(days=31)
"""An entry stands where it was handed over, on the shelf of its writer's clock: outages and clocks part the two, but not by a month."""
MAX_NUMBER = 2**53 - 1  # of entries' numbers in canonical JSON
_SHELF = re.compile(r"d([1-9][0-9]{2,3})-([0-9]{4})-(0[1-9]|1[0-2])", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Gone:
    """Purged bodies of one shelf: their count, first and last."""

    count: int
    first: int
    last: int
    after: str
    """The latest that an entry just before one of them was recorded, RFC 3339."""


@dataclass(frozen=True, slots=True)
class _Purge:
    """What an `audit.purge` entry says."""

    seq: int
    recorded: str
    first: int
    last: int
    count: int


class Purged:
    """Collects purged bodies and purges of a range of the log, in a few values a shelf. `now` is the time of whoever verifies."""

    def __init__(self, now: datetime) -> None:
        self._now = rfc3339(now)
        self._before = ""
        self._gone: dict[str, _Gone] = {}
        self._purges: dict[str, list[_Purge]] = {}

    def body(self, seq: int, shelf: str) -> None:
        """The body of entry `seq` is gone, and is said to have stood on `shelf`."""
        gone = self._gone.get(shelf, _Gone(0, seq, seq, ""))
        self._gone[shelf] = _Gone(gone.count + 1, gone.first, seq, max(gone.after, self._before))

    def kept(self, recorded: str) -> None:
        """An entry that still has its body, recorded then, stands before those that come now."""
        self._before = recorded

    def purge(self, seq: int, body: Mapping[str, Any]) -> None:
        """Entry `seq` says that a shelf was emptied; where it does not say which bodies went, it covers none."""
        shelf, said = body.get("shelf"), [body.get(name) for name in ("first", "last", "count")]
        numbers = [number for number in said if type(number) is int and 0 <= number <= MAX_NUMBER]
        if isinstance(shelf, str) and len(numbers) == len(said):
            self._purges.setdefault(shelf, []).append(_Purge(seq, body["recorded"], *numbers))

    def faults(self) -> Iterator[tuple[int, int, str]]:
        """First and last entry of each shelf whose bodies are gone against the rules, and why that is so."""
        for shelf, gone in sorted(self._gone.items()):
            why = self._not_yet(shelf, gone) or _not_said(gone, self._purges.get(shelf, ()), kept_until(shelf) or "")
            if why:
                yield gone.first, gone.last, f"{gone.count} bodies of shelf {shelf!r} are gone: {why}"

    def _not_yet(self, shelf: str, gone: _Gone) -> str | None:
        """Why their time cannot be over."""
        kept, late = kept_until(shelf), _kept_for(shelf, LATE)
        if kept is None or late is None:
            return "that is no shelf"
        if kept > self._now:
            return f"they are to be kept until {kept}, and it is {self._now} now"
        if gone.after > late:
            return f"an entry before one of them was recorded at {gone.after}, so that they cannot be of that month"
        return None


def _not_said(gone: _Gone, purges: Sequence[_Purge], kept: str) -> str | None:
    """Why these purges of their shelf do not account for them."""
    if not purges:
        return "no audit.purge entry of this file names it"
    if early := [purge for purge in purges if purge.recorded < kept]:
        return f"entry {early[0].seq} says so at {early[0].recorded}, but they are to be kept until {kept}"
    if gone.first < min(purge.first for purge in purges) or gone.last > max(purge.last for purge in purges):
        return "not all of them are among those that its audit.purge entry names"
    if gone.count > sum(purge.count for purge in purges):
        return f"its audit.purge entry counts only {sum(purge.count for purge in purges)}"
    return None


def kept_until(shelf: str) -> str | None:
    """When the youngest body that `shelf` can hold may go, as RFC 3339: the end of its month, and then its days. None for no shelf."""
    match = _SHELF.fullmatch(shelf)
    return _kept_for(shelf, timedelta(days=int(match[1]))) if match else None


def _kept_for(shelf: str, time: timedelta) -> str | None:
    """The end of the shelf's month and then `time`, as RFC 3339; None for no shelf."""
    match = _SHELF.fullmatch(shelf)
    if match is None:
        return None
    year, month = int(match[2]), int(match[3])
    try:
        return rfc3339(datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC) + time)
    except (ValueError, OverflowError):
        return None
