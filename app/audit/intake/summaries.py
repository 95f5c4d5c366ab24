"""Decisions counted by minute, tenant, model and outcome. Each closed minute becomes entries of the log that may wait.

A minute is closed by the first decision or the first look after it. A clock that steps back counts on in the newest minute,
so that none is written twice; one that steps forward leaves no empty entries.

When down: counts and closed minutes wait in memory, in bounds; what finds no room is told as lost by the next gap. After a
kill the next start finds by the marker from when on counts may be lost, and tells that.
"""

import asyncio
import itertools
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from app.audit.intake.gaps import gap
from app.audit.intake.pending import Pending
from app.audit.intake.waiting import Marker
from app.audit.records.summary import decisions_minute
from app.clock import Clock

KIND = "decisions.minute"
MINUTE = timedelta(minutes=1)
MAX_COUNTS = 20_000
"""Combinations of tenant, model and outcome in one minute: about 4 MB, and 15 MB as entries that wait."""
AT_ONCE = 50
"""Entries made in one go: under a millisecond, between which decisions get their turn."""
LOOK_EVERY_S = 0.2
MARK_S = 0.05
"""How long the first decision after a quiet time waits for the marker: ten times what a disk needs, and no more than a slow one may cost."""
STOP_S = 1.0
"""How long an orderly stop waits for the database to take what is left: it has 10 s for everything."""

log = structlog.get_logger()

Combination = tuple[str | None, str | None, str]
"""Tenant and model, None where unknown, and outcome."""


@dataclass(slots=True)
class Minute:
    """What was counted in one minute."""

    begins: datetime
    counts: dict[Combination, int] = field(default_factory=dict)
    lost: int = 0
    """Decisions of combinations beyond the bound."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not self.counts and not self.lost


class Summaries:
    """Counts decisions and hands closed minutes on."""

    def __init__(self, pending: Pending, clock: Clock, marker: Path, *, replica: str, max_counts: int = MAX_COUNTS) -> None:
        """`marker`: the file that outlives a kill. `replica`: an id of this process, in each of its entries."""
        self._pending = pending
        self._clock = clock
        self._marker = Marker(marker)
        self._replica = replica
        self._max_counts = max_counts
        self._closed: deque[Minute] = deque()
        self._begin(clock.utcnow())
        self._tell_of_a_kill()

    @property
    def since(self) -> datetime | None:
        """From when on the log lacks something that is in memory; None where nothing is."""
        minutes = [minute.begins for minute in (*self._closed, self._running) if not minute.empty]
        return min(filter(None, (*minutes, self._pending.since)), default=None)

    async def count(self, tenant: str | None, model: str | None, outcome: str) -> None:
        """Count one decision; None stands for a tenant or a model that is not known. Waits only after a quiet time, and shortly."""
        now = self._clock.utcnow()
        if now >= self._ends:
            self._turn(now)
        counts, key = self._running.counts, (tenant, model, outcome)
        if key in counts:
            counts[key] += 1
        elif len(counts) < self._max_counts:
            counts[key] = 1
        else:
            self._running.lost += 1
        if self._marker.wanted is None and not self._marker.failed:
            await asyncio.wait({self._marker.show(self._running.begins)}, timeout=MARK_S)

    async def look(self) -> None:
        """Hand on minutes that have ended, and say since when something waits. Raises ConfigError where the marker cannot be written."""
        now = self._clock.utcnow()
        if now >= self._ends:
            self._turn(now)
        await self._hand_on()
        await asyncio.shield(self._marker.show(self.since))

    async def stop(self) -> None:
        """Write all that is left, the running minute included. Where the database is down it ends in time all the same, and the marker tells."""
        self._turn(self._clock.utcnow())
        await self._hand_on()
        await _briefly(asyncio.create_task(self._pending.flush()))
        await _briefly(self._marker.show(self.since))

    def _turn(self, now: datetime) -> None:
        """Close the running minute and begin that of `now`."""
        if not self._running.empty:
            self._closed.append(self._running)
        self._begin(now)

    def _begin(self, now: datetime) -> None:
        self._running = Minute(now.replace(second=0, microsecond=0))
        self._ends = self._running.begins + MINUTE

    async def _hand_on(self) -> None:
        while self._closed:
            minute = self._closed[0]
            while minute.counts:
                for key in list(itertools.islice(minute.counts, AT_ONCE)):
                    self._add(minute, key, minute.counts[key])
                    del minute.counts[key]
                await asyncio.sleep(0)
            if minute.lost:
                self._pending.lose(KIND, minute.lost)
            self._closed.popleft()

    def _add(self, minute: Minute, key: Combination, count: int) -> None:
        tenant, model, outcome = key
        entry = decisions_minute(
            recorded=self._clock.utcnow(),
            minute=minute.begins,
            replica=self._replica,
            tenant=tenant,
            model=model,
            outcome=outcome,
            count=count,
        )
        self._pending.add(entry, since=minute.begins, events=count)

    def _tell_of_a_kill(self) -> None:
        began, now = self._marker.shown, self._clock.utcnow()
        if began is not None:
            entry = gap(recorded=now, begin=began, end=max(began, now), reason="stopped")
            self._pending.add(entry, since=began)


async def _briefly(task: asyncio.Task[None]) -> None:
    """Wait for `task`, but not for long: where the server or the disk hangs, nobody waits even for its cancellation."""
    await asyncio.wait({task}, timeout=STOP_S)
    if not task.done():
        task.cancel()
    elif (failure := task.exception()) is not None:
        log.warning("audit.not_written_at_stop", problem=str(failure))
