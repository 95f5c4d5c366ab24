"""Has the reports of a night made when it is over: starts `sluice report nightly` as a child once a day, and where nights are missing.

serve itself opens no key. Replicas that start one at the same time make one night: the child sees to that (app/reports/making).
When down: without the database nothing is known to be missing, and nothing is made; what fails is tried again with growing pauses,
at most an hour, and told once for each reason. Decisions do not wait for reports, and no replica is unready for want of one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, time

import structlog

from app.backoff import Backoff
from app.clock import Clock
from app.errors import SluiceError
from app.observability.metrics import Metrics
from app.reports.nights.missed import Missing
from app.reports.nights.night import Night
from app.reports.shelf.due import due, newest_due
from app.trouble import Trouble

LOOK_EVERY_S = 30.0
"""Between two looks at the clock: by the time of day, so that one that is set or slept through is noticed."""
AGAIN_S = 60.0
"""After a run that ended well: the log says then whether anything is left, such as nights beyond those of one run."""
FIRST_RETRY_S, MOST_RETRY_S = 60.0, 3600.0

log = structlog.get_logger()


@dataclass(slots=True)
class ReportTimer:
    """When the child runs, for days of `zone` at `at`."""

    zone: str
    at: time
    missing: Callable[[datetime], Awaitable[Missing]]
    """Nights that are over and not made. Raises DatabaseDown."""
    run: Callable[[Night], Awaitable[None]]
    """Makes what is missing up to that night, and ends what it began where it is cancelled. Raises ChildFailed."""
    clock: Clock
    metrics: Metrics
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _settled: Night | None = None
    """The newest night up to which nothing is missing."""
    _backoff: Backoff = field(default_factory=lambda: Backoff(FIRST_RETRY_S, MOST_RETRY_S))
    _trouble: Trouble = field(default_factory=Trouble)

    async def keep(self) -> None:
        """Look at the clock for ever."""
        while True:
            await self.sleep(await self.look())

    async def look(self) -> float:
        """Make what is due; how many seconds to wait for the next look."""
        newest = newest_due(self.clock.utcnow(), self.zone, self.at)
        if self._settled == newest:
            return LOOK_EVERY_S
        try:
            if not await self._due():
                self._settled = newest
                return LOOK_EVERY_S
            await self._make(newest)
        except SluiceError as failure:
            if self._trouble.is_news(failure.message):
                log.error("reports.not_made", problem=failure.message, advice=failure.advice)  # noqa: TRY400 - the reason is all there is
            return self._backoff.after()
        self._backoff.reset()
        if reason := self._trouble.over():
            log.info("reports.made_again", after=reason)
        return AGAIN_S

    async def _due(self) -> list[Night]:
        """What the log says is to be made by now. Raises DatabaseDown."""
        now = self.clock.utcnow()
        return [night for night in (await self.missing(now)).nights if due(night, self.at) <= now]

    async def _make(self, newest: Night) -> None:
        """Raises ChildFailed."""
        began_ms = self.clock.monotonic_ms()
        try:
            await self.run(newest)
        except SluiceError:
            self.metrics.report_runs.labels("failed").inc()
            raise
        self.metrics.report_runs.labels("made").inc()
        self.metrics.report_run_seconds.observe((self.clock.monotonic_ms() - began_ms) / 1000)
