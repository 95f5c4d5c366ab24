"""Whether bodies that are gone went by the rules: their shelf's time was over, and an entry of the log says that it was emptied. Pure.

Which shelf a body stood on is proven by its leaf. When it went is not: the entry of a purge does not prove its own time. So the
time must be over by the clock of whoever verifies.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from app.audit.format.leaf import Leaf
from app.instants import rfc3339

MAX_NUMBER = 2**53 - 1  # of entries' numbers in canonical JSON
_SHELF = re.compile(r"d([1-9][0-9]{2,3})-([0-9]{4})-(0[1-9]|1[0-2])", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Gone:
    """Purged bodies of one shelf: their count, first and last."""

    count: int
    first: int
    last: int


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
        self._gone: dict[str, _Gone] = {}
        self._purges: dict[str, list[_Purge]] = {}

    def body(self, leaf: Leaf) -> None:
        """The body of this entry is gone."""
        gone = self._gone.get(leaf.shelf, _Gone(0, leaf.seq, leaf.seq))
        self._gone[leaf.shelf] = _Gone(gone.count + 1, gone.first, leaf.seq)

    def purge(self, leaf: Leaf, body: Mapping[str, Any]) -> None:
        """An entry says that a shelf was emptied; where it does not say which bodies went, it covers none."""
        shelf, said = body.get("shelf"), [body.get(name) for name in ("first", "last", "count")]
        numbers = [number for number in said if type(number) is int and 0 <= number <= MAX_NUMBER]
        if isinstance(shelf, str) and len(numbers) == len(said):
            self._purges.setdefault(shelf, []).append(_Purge(leaf.seq, leaf.recorded, *numbers))

    def faults(self) -> Iterator[tuple[int, int, str]]:
        """First and last entry of each shelf whose bodies are gone against the rules, and why that is so."""
        for shelf, gone in sorted(self._gone.items()):
            why = self._against(gone, self._purges.get(shelf, ()), kept_until(shelf))
            if why:
                yield gone.first, gone.last, f"{gone.count} bodies of shelf {shelf!r} are gone: {why}"

    def _against(self, gone: _Gone, purges: Sequence[_Purge], kept: str | None) -> str | None:
        if kept is None:
            return "no calendar has the day until which they are to be kept"
        if kept > self._now:
            return f"they are to be kept until {kept}, and it is {self._now} now"
        return _not_said(gone, purges, kept)


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
    """When the youngest body that `shelf` can hold may go, as RFC 3339: the end of its month, and then its days.

    None for no shelf, or where that is after all calendars.
    """
    match = _SHELF.fullmatch(shelf)
    if match is None:
        return None
    days, year, month = (int(number) for number in match.groups())
    try:
        return rfc3339(datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC) + timedelta(days=days))
    except (ValueError, OverflowError):
        return None
