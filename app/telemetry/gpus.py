"""Has device memory read all the time: one task for this machine and one for each DCGM exporter.

When down: each source is asked again and again on its own; what its silence means is said in gpu_readings.py.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from urllib.parse import urlsplit

from app.background import Background
from app.clock import Clock
from app.setting_sections import EngineSettings, GpuSettings
from app.telemetry.dcgm import DcgmPages
from app.telemetry.gpu_readings import GpuReadings
from app.telemetry.scrape import place

MACHINE = "GPUs of this machine"


class Gpus:
    """The readings as work beside. `configure` may be called again at any time."""

    def __init__(self, readings: GpuReadings, background: Background, clock: Clock) -> None:
        self._readings = readings
        self._background = background
        self._clock = clock
        self._interval_ms = 0
        self._begun = False
        self._exporters: set[str] = set()

    def configure(self, settings: GpuSettings, engines: Iterable[EngineSettings]) -> None:
        """Read exactly these sources; those that stay are not disturbed."""
        self._interval_ms = settings.interval_ms
        self._readings.configure(settings, engines)
        for url in self._exporters - set(settings.dcgm):
            self._background.end(_name(url))
        for url in set(settings.dcgm) - self._exporters:
            self._background.start(_name(url), partial(self._keep_scraping, url))
        self._exporters = set(settings.dcgm)
        if not self._begun:
            self._background.start(MACHINE, partial(self._every_interval, self._readings.read))
            self._begun = True

    async def close(self) -> None:
        """Let the library go, once the work has ended."""
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


def _name(url: str) -> str:
    return f"GPUs of {place(url)}{urlsplit(url).path}"
