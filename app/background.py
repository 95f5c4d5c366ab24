"""Work that goes on beside requests: each piece is started again when it fails, and says so; none takes another with it.

When down: a piece that fails is counted and begun again with growing pauses; what it kept current stays as it was meanwhile, and
/readyz names it. Its reason is logged once while it lasts: with the remedy where we know it, else with its traceback.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import structlog

from app.backoff import Backoff
from app.clock import Clock
from app.errors import SluiceError
from app.observability.metrics import Metrics
from app.trouble import Trouble

CALM_S = 60.0
"""A piece that worked this long since it failed counts as well again."""

Work = Callable[[], Coroutine[Any, Any, None]]

log = structlog.get_logger()


class Background:
    """Pieces of endless work, by name."""

    def __init__(self, clock: Clock, metrics: Metrics, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._clock = clock
        self._metrics = metrics
        self._sleep = sleep
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._failed_ms: dict[str, float] = {}

    @property
    def failing(self) -> list[str]:
        """Names of the pieces that failed within the last minute."""
        now_ms = self._clock.monotonic_ms()
        return sorted(name for name, failed_ms in self._failed_ms.items() if now_ms - failed_ms < CALM_S * 1000)

    def start(self, name: str, work: Work) -> None:
        """Do `work` until `stop`, from the beginning each time it fails or ends."""
        self._tasks[name] = asyncio.create_task(self._keep(name, work), name=name)

    def every(self, name: str, pause_s: float, work: Work) -> None:
        """Do `work` again and again until `stop`, with a pause after each time that went well."""
        self._tasks[name] = asyncio.create_task(self._repeat(name, pause_s, work), name=name)

    def end(self, name: str) -> None:
        """End one piece, and forget how it was."""
        self._tasks.pop(name).cancel()
        self._failed_ms.pop(name, None)

    async def stop(self) -> None:
        """End everything."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()

    async def _keep(self, name: str, work: Work) -> None:
        backoff, trouble = Backoff(), Trouble()
        while True:
            began_ms = self._clock.monotonic_ms()
            try:
                await work()
                log.error("background work ended, and begins again", work=name)
            except Exception as error:  # noqa: BLE001 - whatever it is, the work goes on
                lived_s = (self._clock.monotonic_ms() - began_ms) / 1000
                if lived_s >= backoff.calm_s:
                    trouble.over()
                _say(trouble, name, error)
            self._count(name)
            await self._sleep(backoff.after((self._clock.monotonic_ms() - began_ms) / 1000))

    async def _repeat(self, name: str, pause_s: float, work: Work) -> None:
        backoff, trouble = Backoff(), Trouble()
        while True:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - whatever it is, the work goes on
                _say(trouble, name, error)
                self._count(name)
                await self._sleep(backoff.after())
                continue
            if reason := trouble.over():
                log.info("background work goes on", work=name, after=reason)
            backoff.reset()
            await self._sleep(pause_s)

    def _count(self, name: str) -> None:
        self._failed_ms[name] = self._clock.monotonic_ms()
        self._metrics.background_failures.labels(name).inc()


def _say(trouble: Trouble, name: str, error: Exception) -> None:
    if not trouble.is_news(f"{type(error).__name__}: {error}"):
        return
    if isinstance(error, SluiceError):
        log.error("background work failed, and begins again", work=name, reason=error.message, advice=error.advice)
    else:
        log.error("background work failed, and begins again", work=name, exc_info=error)
