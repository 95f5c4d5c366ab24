"""Has device memory read all the time: one task for this machine and one for each DCGM exporter.

When down: each source is asked again and again on its own; what its silence means is said in gpu_readings.py.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from app.clock import Clock
from app.settings import EngineSettings, GpuSettings
from app.telemetry.dcgm import DcgmPages
from app.telemetry.gpu_readings import GpuReadings, place


class Gpus:
    """The tasks. `configure` may be called again at any time; `stop` ends them."""

    def __init__(self, readings: GpuReadings, clock: Clock) -> None:
        self._readings = readings
        self._clock = clock
        self._interval_ms = 0
        self._machine: asyncio.Task[None] | None = None
        self._exporters: dict[str, asyncio.Task[None]] = {}

    def configure(self, settings: GpuSettings, engines: Iterable[EngineSettings]) -> None:
        """Read exactly these sources; those that stay are not disturbed."""
        self._interval_ms = settings.interval_ms
        self._readings.configure(settings, engines)
        for url in [url for url in self._exporters if url not in settings.dcgm]:
            self._exporters.pop(url).cancel()
        for url in settings.dcgm:
            if url not in self._exporters:
                self._exporters[url] = asyncio.create_task(self._keep_scraping(url), name=f"gpus of {place(url)}")
        self._machine = self._machine or asyncio.create_task(self._every_interval(self._readings.read), name="gpus of this machine")

    async def stop(self) -> None:
        """End all readings."""
        tasks = [*self._exporters.values(), *([self._machine] if self._machine else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._readings.close()

    async def _keep_scraping(self, url: str) -> None:
        pages = DcgmPages()
        await self._every_interval(lambda: self._readings.scrape(url, pages))

    async def _every_interval(self, work: Callable[[], Awaitable[None]]) -> None:
        """For ever, one at a time, the next one an interval after the start of the last or when that is over."""
        while True:
            started_ms = self._clock.monotonic_ms()
            await work()
            took_ms = self._clock.monotonic_ms() - started_ms
            await asyncio.sleep(max(0.0, self._interval_ms - took_ms) / 1000)
