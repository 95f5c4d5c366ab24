"""The least value of the last seconds: "above a line for 3 s" is a minimum over a window that stands above it (B11).

Python publishes the minimum, a rule compares it. A reading that is missing is unknown, never a low one.
"""

import math
from collections import deque

FLOOR_MS = 3000.0
"""A line counts as crossed where the least reading of this time is above it; a moment above it is no pressure (B11)."""
MOST_GAP_RATIO = 1 / 3
"""Share of the window that may pass between two readings: what happened in a longer gap nobody saw, so the window begins anew."""


class Floor:
    """The least value over the last `window_ms`, known once readings span the whole of it.

    Holds at most the readings of one window, and of those only each that is lower than all after it.
    """

    def __init__(self, window_ms: float) -> None:
        self._window_ms = window_ms
        self._since_ms: float | None = None
        self._newest_ms = 0.0
        self._rising: deque[tuple[float, float]] = deque()
        """(instant, value) with both rising: a reading leaves when a lower one follows, since it can't be the least again."""

    def push(self, value: float | None, now_ms: float) -> float | None:
        """Take a reading; answers the least of [now - window, now], None until readings span it without a gap."""
        if value is None or not math.isfinite(value):
            self._begin_anew()
            return None
        if self._since_ms is None or now_ms - self._newest_ms > self._window_ms * MOST_GAP_RATIO:
            self._begin_anew()
            self._since_ms = now_ms
        self._newest_ms = now_ms
        while self._rising and self._rising[-1][1] >= value:
            self._rising.pop()
        self._rising.append((now_ms, value))
        start_ms = now_ms - self._window_ms
        while self._rising[0][0] < start_ms:
            self._rising.popleft()
        return self._rising[0][1] if self._since_ms <= start_ms else None

    def _begin_anew(self) -> None:
        self._since_ms = None
        self._rising.clear()
