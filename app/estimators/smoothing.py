"""A mean that forgets: what latencies are read as, so that one slow step moves no limit (B4)."""

import math


class Smoothed:
    """Exponentially weighted mean over time: after `half_life_ms` a value counts half, however many samples came since.

    After `forget_ms` without a sample it is unknown: an engine that does nothing has no latency, not an old one. With
    `falls_by_ratio` it comes down by its ratio, not by its distance: a latency of 20 s that is 200 ms again would else take
    seven half-lives to be seen, and a limit that follows it would stay down as long.
    """

    def __init__(self, half_life_ms: float, forget_ms: float, *, falls_by_ratio: bool = False) -> None:
        self._half_life_ms = half_life_ms
        self._forget_ms = forget_ms
        self._falls_by_ratio = falls_by_ratio
        self._value: float | None = None
        self._sampled_ms = 0.0

    def push(self, value: float | None, now_ms: float) -> float | None:
        """Take a sample, or None where there was none since the last push; answers the mean, None where it is unknown.

        The first sample is taken as it is. NaN and infinity are no samples.
        """
        elapsed_ms = now_ms - self._sampled_ms
        if self._value is not None and elapsed_ms >= self._forget_ms:
            self._value = None
        if value is None or not math.isfinite(value):
            return self._value
        self._value = value if self._value is None else self._mean(self._value, value, 0.5 ** (elapsed_ms / self._half_life_ms))
        self._sampled_ms = now_ms
        return self._value

    def _mean(self, before: float, value: float, kept: float) -> float:
        if self._falls_by_ratio and 0 < value < before:
            return float(before**kept * value ** (1 - kept))
        # Rounding takes the mean of two large numbers above both, and of the largest to infinity, where it would stay.
        return min(max(before, value), kept * before + (1 - kept) * value)
