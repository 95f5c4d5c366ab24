"""Token buckets as GCRA: one number a bucket, the instant at which it would be full again (`tat_ms`).

Pure, and within what a Lua double holds. Inside, amounts are times: a cost in milliseconds is how long the bucket needs
to earn it. As the number is an instant and not a count, a changed limit reads it in its own units at once: the level
never stands above the new capacity, and nothing has to be rewritten.
"""

from dataclasses import dataclass
from math import ceil

TOLERANCE_MS = 1e-3
"""Rounding that a comparison forgives: an exact fit always passes. It never enters the number, so it cannot add up."""

MOST_DEBT = 1.0
"""Capacities a bucket may owe. Reports far over their reservations, or a limit that makes the window shorter, would
otherwise close the bucket for longer than anybody can wait."""

SHOWN_SHORT = 0.01
"""Units by which a remainder may fall short of a whole one and still be shown as it: display only, never a decision."""

OVER_RATIO = 1 + 1e-9
"""A cost is larger than the bucket only above this share of it: weights such as 0.1 don't sum to exact figures."""


LONGEST_MS = 30 * 86_400_000.0
"""30 days. What earns a unit more slowly is read as this slow, and no longer wait is told: all figures stay finite."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How a bucket fills: units it holds, milliseconds to earn one unit, milliseconds from empty to full."""

    capacity: float
    interval_ms: float
    window_ms: float

    @classmethod
    def of(cls, limit: float, burst: float | None, period_ms: float) -> "Rate":
        """`limit` units a period."""
        held = capacity(limit, burst)
        interval_ms = min(period_ms / limit, LONGEST_MS) if limit > 0 else period_ms
        return cls(held, interval_ms, held * interval_ms)


def capacity(limit: float, burst: float | None) -> float:
    """Units that a full bucket holds: `burst`, else one period's limit and at least 1. A limit of 0 holds nothing."""
    if limit <= 0:
        return 0.0
    return max(1.0, limit) if burst is None else burst


def most(capacity: float) -> float:
    """The largest unpriced cost that a full bucket can pay; past it, waiting cannot help."""
    return capacity * OVER_RATIO


def price(cost: float, factor: float, capacity: float) -> float:
    """Units charged for `cost` under a factor > 0: a factor below 1 makes it dearer, but never dearer than a full bucket."""
    priced = cost / factor
    return min(capacity, priced)


def used_ms(tat_ms: float, now_ms: float) -> float:
    """How far the bucket is from full: 0 full, its window empty, more in debt."""
    return tat_ms - now_ms if tat_ms > now_ms else 0.0


def fits(used_ms: float, cost_ms: float, window_ms: float) -> bool:
    """True where the bucket can pay now."""
    return used_ms + cost_ms <= window_ms + TOLERANCE_MS


def wait_ms(used_ms: float, cost_ms: float, window_ms: float) -> int:
    """Whole milliseconds until the bucket can pay; the longest stands for any longer."""
    return max(0, ceil(min(used_ms + cost_ms - window_ms, LONGEST_MS) - TOLERANCE_MS))


def take(tat_ms: float, now_ms: float, cost_ms: float, window_ms: float) -> float:
    """The instant after paying, into debt where it does not fit: what an engine has done must be paid, up to the most debt."""
    start_ms = max(now_ms, tat_ms)
    if fits(start_ms - now_ms, cost_ms, window_ms):
        return start_ms + cost_ms
    return max(start_ms, min(start_ms + cost_ms, _deepest(now_ms, window_ms)))


def clamp(tat_ms: float, now_ms: float, window_ms: float) -> float:
    """The instant under a changed limit: what a longer window let run up counts as the most debt of the new one."""
    return min(tat_ms, _deepest(now_ms, window_ms)) if window_ms > 0 else tat_ms


def remaining(used_ms: float, rate: Rate) -> float:
    """Whole units that the bucket can pay now, 0 in debt."""
    units = (rate.window_ms - used_ms) / rate.interval_ms + SHOWN_SHORT
    return units // 1 if units > 0 else 0.0


def reset_ms(used_ms: float) -> int:
    """Whole milliseconds until the bucket is full; the longest stands for any longer."""
    return ceil(min(used_ms, LONGEST_MS) - TOLERANCE_MS) if used_ms > TOLERANCE_MS else 0


def _deepest(now_ms: float, window_ms: float) -> float:
    return now_ms + window_ms * (1 + MOST_DEBT)
