"""What running totals tell between two pages: the mean of what was counted meanwhile, and how long nothing moved.

Engines tell latencies (A1, B4) as a sum and a count since their start. Counters begin anew when an engine restarts.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass

MOST = 2.0**53
"""Counts above this are not exact in a page's floats: they are impossible, and their difference would be noise."""


@dataclass(frozen=True, slots=True)
class Total:
    """A running total as a page tells it: the sum of all that was measured, in the page's unit, and how many there were."""

    sum: float
    count: float

    @property
    def possible(self) -> bool:
        """Whether a counter can hold this: NaN, infinity and negative numbers are no totals."""
        return 0 <= self.sum < math.inf and 0 <= self.count <= MOST


def mean_between(before: Total | None, now: Total | None) -> float | None:
    """Mean of what was measured between two pages, in the unit of the sum; never negative, NaN or infinite.

    Unknown where either total is unknown or impossible, where nothing was measured in between, and once when the counters
    began anew: the caller hands in the newest total as `before` of the next page, whatever it was.
    """
    if before is None or now is None or not (before.possible and now.possible):
        return None
    measured, added = now.count - before.count, now.sum - before.sum
    return added / measured if measured >= 1 and added >= 0 else None


class Stillness:
    """How long a page has said the same."""

    def __init__(self) -> None:
        self._fingerprint: Hashable = None
        self._changed_ms: float | None = None

    def push(self, fingerprint: Hashable, now_ms: float) -> float:
        """Take what a page says now; answers for how many milliseconds it has been equal to that (0: it just moved).

        `fingerprint` stands for every gauge and counter whose movement shows that the engine works. NaN is not equal to
        itself, so leave it out or hand in its text.
        """
        if self._changed_ms is None or fingerprint != self._fingerprint:
            self._fingerprint, self._changed_ms = fingerprint, now_ms
        return now_ms - self._changed_ms
