"""What the pages of one engine say over time: latencies between them, the floor of KV, and how long nothing moved.

A scrape that failed adds nothing: means span the gap, the floor's window begins anew after it (A2), and what was still before
it and is so after it was still.
"""

from collections.abc import Mapping
from dataclasses import replace

from app.estimators.counters import Stillness, Total, mean_between
from app.estimators.smoothing import Smoothed
from app.estimators.window import FLOOR_MS, Floor
from app.telemetry.pages import Counted, PageReading
from app.telemetry.snapshot import Reading

HALF_LIFE_MS = 1000.0
"""Ten polls: one slow step moves no limit, and a change is half seen after a second."""
FORGET_MS = 10_000.0
"""An engine that did nothing for this long has no latency any more."""

MOST_ITERATION_MS = 60_000.0
"""No decode step takes a minute: engines give up a step that hangs after some minutes, and then they end."""
MOST_TTFT_MS = 3_600_000.0
"""Nobody waits an hour for a first token: gateways and engines end a call after minutes, and batches after some more."""


class History:
    """What is remembered of each model on one engine."""

    def __init__(self) -> None:
        self._models: dict[str, _Model] = {}

    def push(self, pages: Mapping[str, PageReading], now_ms: float) -> dict[str, Reading]:
        """Take what a page says; answers the readings to publish. A model that the page does not name is forgotten."""
        self._models = {model: self._models.get(model) or _Model() for model in pages}
        return {model: self._models[model].push(page, now_ms) for model, page in pages.items()}


class _Model:
    def __init__(self) -> None:
        self._floor = Floor(FLOOR_MS)
        self._iteration = _Latency(MOST_ITERATION_MS)
        self._ttft = _Latency(MOST_TTFT_MS)
        self._stillness = Stillness()

    def push(self, page: PageReading, now_ms: float) -> Reading:
        return replace(
            page.reading,
            kv_floor=self._floor.push(page.reading.kv_ratio, now_ms),
            iteration_ms=self._iteration.push(page.iteration, now_ms),
            ttft_ms=self._ttft.push(page.ttft, now_ms),
            still_ms=self._stillness.push(page.progress, now_ms),
        )


class _Latency:
    """A mean time between two pages, smoothed, in milliseconds. One above `most_ms` is impossible, and no sample."""

    def __init__(self, most_ms: float) -> None:
        self._most_ms = most_ms
        self._before: Counted | None = None
        self._smoothed = Smoothed(HALF_LIFE_MS, FORGET_MS, falls_by_ratio=True)

    def push(self, now: Counted | None, now_ms: float) -> float | None:
        mean_ms = _mean_ms(self._before, now)
        self._before = now
        if mean_ms is not None and mean_ms > self._most_ms:
            mean_ms = None
        return self._smoothed.push(mean_ms, now_ms)


def _mean_ms(before: Counted | None, now: Counted | None) -> float | None:
    """Mean over all ranks; unknown once where one of them began anew, since the sum over ranks would hide it."""
    if before is None or now is None or before.mean is not now.mean or before.totals.keys() != now.totals.keys():
        return None
    if any(now.totals[rank].count < total.count or now.totals[rank].sum < total.sum for rank, total in before.totals.items()):
        return None
    mean = mean_between(_over_ranks(before), _over_ranks(now))
    return None if mean is None else mean * now.mean.unit_ms


def _over_ranks(counted: Counted) -> Total:
    totals = counted.totals.values()
    return Total(sum(total.sum for total in totals), sum(total.count for total in totals))
