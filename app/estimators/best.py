"""The best time that an engine shows of late: what it can do, which a policy's set point can't know."""

import math

FALL_HALF_LIFE_MS = 500.0
"""A lower time is believed within a second, not at once: one odd page is not what an engine can do, and while a fault ends load returns."""
RISE_HALF_LIFE_MS = 60_000.0
"""A higher one in minutes: an engine that became slower for good gets a new best, while a fault of ten seconds moves it by a tenth."""


class Best:
    """A low mean over time: it falls soon, and it begins and rises only by what was measured with next to nothing in flight.

    What is measured under load says nothing of what fewer requests would show. Were it taken for the best, the aim made
    of it would allow more load, and that one more again.
    """

    def __init__(self) -> None:
        self.value_ms: float | None = None
        """None: nothing measured yet."""

    def push(self, value_ms: float, elapsed_ms: float, *, unloaded: bool) -> None:
        """Take what was measured `elapsed_ms` after the last, the first as it is; `unloaded`: while next to nothing was in flight.

        NaN, infinity and less than 0 are no times.
        """
        if not 0 <= value_ms < math.inf:
            return
        before_ms = self.value_ms
        if before_ms is None:
            self.value_ms = value_ms if unloaded else None
        elif unloaded or value_ms < before_ms:
            kept = 0.5 ** (elapsed_ms / (FALL_HALF_LIFE_MS if value_ms < before_ms else RISE_HALF_LIFE_MS))
            self.value_ms = kept * before_ms + (1 - kept) * value_ms
