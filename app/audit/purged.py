"""Whether bodies that are gone went by the rules: their shelf's time was over, and an entry of the log says that it was emptied. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from app.audit.entry import rfc3339

_SHELF = re.compile(r"d([1-9][0-9]{2,3})-([0-9]{4})-(0[1-9]|1[0-2])")


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
    """Collects purged bodies and purges of a range of the log, in a few values a shelf."""

    def __init__(self) -> None:
        self._gone: dict[str, _Gone] = {}
        self._purges: dict[str, list[_Purge]] = {}

    def body(self, seq: int, shelf: str) -> None:
        """The body of entry `seq` is gone, and is said to have stood on `shelf`."""
        gone = self._gone.get(shelf, _Gone(0, seq, seq))
        self._gone[shelf] = _Gone(gone.count + 1, gone.first, seq)

    def purge(self, seq: int, body: Mapping[str, Any]) -> None:
        """Entry `seq` says that a shelf was emptied."""
        numbers = [body.get(name) for name in ("first", "last", "count")]
        first, last, count = (number if type(number) is int else -1 for number in numbers)
        self._purges.setdefault(str(body.get("shelf")), []).append(_Purge(seq, body["recorded"], first, last, count))

    def faults(self) -> Iterator[tuple[int, int, str]]:
        """First and last entry of each shelf whose bodies are gone against the rules, and why that is so."""
        for shelf, gone in sorted(self._gone.items()):
            why = self._fault(shelf, gone, self._purges.get(shelf, ()))
            if why:
                yield gone.first, gone.last, f"{gone.count} bodies of shelf {shelf!r} are gone: {why}"

    @staticmethod
    def _fault(shelf: str, gone: _Gone, purges: Sequence[_Purge]) -> str | None:
        kept = kept_until(shelf)
        if kept is None:
            return "that is no shelf"
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
    if match is None:
        return None
    days, year, month = (int(number) for number in match.groups())
    try:
        return rfc3339(datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC) + timedelta(days=days))
    except (ValueError, OverflowError):
        return None
