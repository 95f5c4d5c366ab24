"""Entries that may wait: summaries, what became of policies, gaps. They are written soon after, in the order they came.

When down: entries wait in memory, in bounds; writing is tried again with growing pauses, and the first write that succeeds
tells the log of the outage. What finds no room is dropped, counted by kind, and told as lost.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime

import structlog
from sqlalchemy.exc import DataError, IntegrityError

from app.audit.intake.intake import Intake
from app.audit.records.entry import Entry
from app.backoff import Backoff
from app.clock import Clock
from app.errors import DependencyDown
from app.observability.metrics import Metrics
from app.trouble import Trouble

MAX_BYTES = 32 * 1024 * 1024
"""Seven hours of a hundred summaries a minute, or four minutes of ten thousand."""
ENTRY_BYTES = 450
"""What an entry costs beside its body: the objects that hold it, as measured with CPython 3.11."""
WRITE_EVERY_S = 0.2
"""Nobody waits for these entries, and whatever comes within this time shares a commit."""
AT_ONCE = 100
"""Entries of one commit: about 3 ms of work, between whose parts decisions get their turn."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Waiting:
    """An entry that waits."""

    entry: Entry
    since: datetime
    """From when on the log lacks something without it."""
    events: int

    @property
    def size(self) -> int:
        """Estimated bytes."""
        return len(self.entry.body) + ENTRY_BYTES


class Pending:
    """The queue of entries that may wait."""

    def __init__(
        self,
        intake: Intake,
        clock: Clock,
        metrics: Metrics,
        *,
        max_bytes: int = MAX_BYTES,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._intake = intake
        self._clock = clock
        self._metrics = metrics
        self._max_bytes = max_bytes
        self._sleep = sleep
        self._queue: deque[Waiting] = deque()
        self._oldest: datetime | None = None
        self._bytes = 0
        self._at_once = AT_ONCE
        self._writing = asyncio.Lock()

    @property
    def since(self) -> datetime | None:
        """From when on the log lacks something that waits here; None where nothing does."""
        return min(filter(None, (self._oldest, self._intake.gaps.since)), default=None)

    def add(self, entry: Entry, *, since: datetime | None = None, events: int = 1) -> None:
        """Have `entry` written soon. `events` is how many it stands for, `since` when the first of them was (else when recorded)."""
        # Copied: what orjson gives holds a buffer of 4 KiB, however short it is.
        waiting = Waiting(replace(entry, body=bytes(memoryview(entry.body))), since or entry.recorded, events)
        if self._bytes + waiting.size > self._max_bytes:
            self.lose(entry.kind, events)
            return
        self._queue.append(waiting)
        self._oldest = min(self._oldest or waiting.since, waiting.since)
        self._count_bytes(waiting.size)

    def lose(self, kind: str, events: int) -> None:
        """For so many events of a kind there was no room: the metric counts them, and the next gap tells."""
        self._metrics.audit_lost.labels(kind).inc(events)
        self._intake.gaps.lose(events)

    async def run(self) -> None:
        """Write what waits, for ever."""
        backoff, trouble = Backoff(), Trouble()
        while True:
            pause_s = WRITE_EVERY_S
            try:
                await self.flush()
            except DependencyDown as error:
                pause_s = backoff.after()
                if trouble.is_news(error.message):
                    log.warning("audit.pending_not_written", waiting=len(self._queue), problem=error.message, advice=error.advice)
            else:
                backoff.reset()
                if reason := trouble.over():
                    log.info("audit.pending_written", after=reason)
            await self._sleep(pause_s)

    async def flush(self) -> None:
        """Write all that waits now, and the gap that the log is owed. Raises DependencyDown; nothing is lost by that."""
        async with self._writing:
            while self._queue or self._intake.gaps.since:
                await self._write(list(itertools.islice(self._queue, self._at_once)))

    async def _write(self, batch: list[Waiting]) -> None:
        """Commit the head of the queue. An entry that the database itself refuses is found by writing one at a time, and dropped."""
        try:
            await self._intake.commit(*(waiting.entry for waiting in batch))
        except (DataError, IntegrityError):
            if len(batch) > 1:
                self._at_once = 1
                return
            log.exception("audit.entry_refused", id=str(batch[0].entry.id), kind=batch[0].entry.kind)
            self.lose(batch[0].entry.kind, batch[0].events)
            self._at_once = AT_ONCE
        for waiting in batch:
            self._queue.popleft()
            self._count_bytes(-waiting.size)
        if not self._queue:
            self._oldest = None

    def _count_bytes(self, change: int) -> None:
        self._bytes += change
        self._metrics.audit_pending_bytes.set(self._bytes)
