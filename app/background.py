"""Work that goes on beside requests: each piece is started again when it fails, and says so; none takes another with it.

When down: a piece that fails is logged with its traceback, counted, and begun again with growing pauses; what it kept current
stays as it was meanwhile, and /readyz names it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import structlog

from app.clock import Clock
from app.observability.metrics import Metrics
from app.processes import Backoff

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
        backoff = Backoff()
        while True:
            began_ms = self._clock.monotonic_ms()
            try:
                await work()
                log.error("background work ended, and begins again", work=name)
            except Exception:
                log.exception("background work failed, and begins again", work=name)
            now_ms = self._clock.monotonic_ms()
            self._failed_ms[name] = now_ms
            self._metrics.background_failures.labels(name).inc()
            await self._sleep(backoff.after((now_ms - began_ms) / 1000))
