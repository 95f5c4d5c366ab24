"""Follows committed changes of one table: woken by NOTIFY, and reading anew every few seconds all the same.

Each row carries the id of the transaction that changed it last. A reader remembers the oldest transaction that was still
open when it looked, and asks next time for all rows of that one and later: nothing that commits late is skipped, which a
counter or a time of change would do.

When down: what was read stays in memory and in force; each failed attempt is counted, the connection is made again with
back-off, and the first read afterwards is a complete one.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psycopg
import structlog
from psycopg import sql
from sqlalchemy import Row, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.backoff import Backoff
from app.clock import Clock
from app.database import DatabaseDown, conninfo
from app.observability.metrics import Metrics
from app.transaction import Transactions

RECONCILE_S = 5.0  # how long a lost notification may stay unnoticed
RETRY_FIRST_S = 0.1
RETRY_MOST_S = 2.0  # an outage ends for us at most this long after it ends for PostgreSQL
LOAD_TIMEOUT_MS = 30_000  # a complete read of 100 000 tenants takes seconds, and nobody waits for it
ROWS_AT_ONCE = 500  # between two portions other work of this process gets its turn

_HORIZON = text("SELECT CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text)")
_FROM_THE_START = "0"


@dataclass(frozen=True, slots=True)
class Feed:
    """What is followed: `query` selects changed rows by `:since`, and writers send NOTIFY on `channel` as they commit."""

    channel: str
    query: str


class Follower:
    """Keeps memory equal to a table by handing every new or changed row to `install`, at least once."""

    def __init__(
        self,
        engine: AsyncEngine,
        feed: Feed,
        install: Callable[[Iterable[Row[tuple[object, ...]]]], None],
        clock: Clock,
        metrics: Metrics,
        *,
        timeout_ms: int,
    ) -> None:
        self._clock = clock
        self._read_at_ms: float | None = None
        self._conninfo = conninfo(engine.url.render_as_string(hide_password=False))
        self._feed = feed
        self._query = text(feed.query)
        self._install = install
        self._metrics = metrics
        self._reads = Transactions(engine, metrics, call=f"read {feed.channel}", timeout_ms=LOAD_TIMEOUT_MS)
        self._timeout_s = timeout_ms / 1000
        self._since = _FROM_THE_START
        self._log = structlog.get_logger(__name__).bind(channel=feed.channel)

    @property
    def age_ms(self) -> float:
        """How long ago the newest complete reading began: what others committed before that is known here. Infinite before the first."""
        return math.inf if self._read_at_ms is None else self._clock.monotonic_ms() - self._read_at_ms

    async def load(self) -> None:
        """Read everything once. Raises DatabaseDown."""
        self._since = _FROM_THE_START
        await self._reads.run(self._read)

    async def follow(self) -> None:
        """Follow for ever; ends only by cancellation."""
        backoff = Backoff(RETRY_FIRST_S, RETRY_MOST_S)
        while True:
            try:
                async with self._listening() as listening:
                    await self.load()
                    backoff.reset()
                    await self._wake_and_read(listening)
            except (psycopg.Error, DBAPIError, OSError, TimeoutError, DatabaseDown) as error:
                retry_s = backoff.after()
                self._metrics.dependency_errors.labels("postgres", f"follow {self._feed.channel}").inc()
                self._log.warning("registry.follow_failed", error=type(error).__name__, retry_s=retry_s)
                await asyncio.sleep(retry_s)

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[psycopg.AsyncConnection]:
        """A connection outside the pool, since it is held for as long as the process lives."""
        async with asyncio.timeout(self._timeout_s):
            connection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
        try:
            async with asyncio.timeout(self._timeout_s):
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._feed.channel)))
            yield connection
        finally:
            await connection.close()  # at once: psycopg's own context manager would first talk to a server that may not answer

    async def _wake_and_read(self, listening: psycopg.AsyncConnection) -> None:
        while True:
            async for _ in listening.notifies(timeout=RECONCILE_S, stop_after=1):
                pass
            await self._reads.run(self._read)
            # A connection that died in silence would never wake us again; asking something on it finds out.
            async with asyncio.timeout(self._timeout_s):
                await listening.execute("SELECT 1")

    async def _read(self, connection: AsyncConnection) -> None:
        began_ms = self._clock.monotonic_ms()
        horizon = str(await connection.scalar(_HORIZON))
        result = await connection.execute(self._query, {"since": self._since})
        for rows in result.partitions(ROWS_AT_ONCE):
            self._install(rows)
            await asyncio.sleep(0)
        self._since = horizon
        self._read_at_ms = began_ms
