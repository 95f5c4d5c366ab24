"""One transaction against PostgreSQL that ends in time, whatever the server does.

When down: DatabaseDown within the time-out, counted; what the server said stands in this process's log alone. A server that stops answering in the middle of a commit leaves the
outcome open; callers make their statements safe to repeat (versions, ids), so the same call again tells.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import structlog
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.database import UNKNOWN_OBJECT, DatabaseDown, database_down, first_line
from app.observability.metrics import Metrics
from app.tasks import retrieve
from app.trouble import Trouble

T = TypeVar("T")

log = structlog.get_logger()


class Transactions:
    """Runs units of work on one engine, each in a transaction of its own, bounded in time as a whole."""

    def __init__(self, engine: AsyncEngine, metrics: Metrics, *, call: str, timeout_ms: int, logs: bool = True) -> None:
        """`logs`: whether an outage is logged; who only looks tells it in another way."""
        self._engine = engine
        self._metrics = metrics
        self._call = call
        self._logs = logs
        self._timeout_s = timeout_ms / 1000
        self._trouble = Trouble()
        self._running: set[asyncio.Task[object]] = set()

    async def run(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """The result of `work`, committed. Raises what `work` raises (rolled back), or DatabaseDown on an outage.

        The work is a task of its own: when the caller is cancelled it still ends before the cancellation goes on, and a
        server that hangs holds no caller, since even rolling back would wait for it.
        """
        return await self._in_time(self._begin(self._transact(work)))

    async def stream(self, work: Callable[[AsyncConnection], AsyncGenerator[T]]) -> AsyncGenerator[T]:
        """What `work` yields, of one state of the database that it can only read: REPEATABLE READ, each item bounded in time.

        Raises as `run` does. Close it where it is not read to its end, so that its connection is free again.
        """
        items = self._items(work)
        step = self._begin(_next(items))
        try:
            while item := await self._in_time(step):
                yield item[0]
                step = self._begin(_next(items))
        finally:
            closing = self._begin(_close(items, step))
            if step.done():
                await asyncio.wait({closing}, timeout=self._timeout_s)

    async def _in_time(self, task: asyncio.Task[T]) -> T:
        try:
            await asyncio.wait({task}, timeout=self._timeout_s)
        except asyncio.CancelledError:
            await asyncio.wait({task}, timeout=self._timeout_s)
            raise
        if not task.done():
            task.cancel()
            raise self._down("no answer in time")
        try:
            result = task.result()
        except (OperationalError, InterfaceError, NoConnection, OSError) as error:
            raise self._down(type(error).__name__, error) from error
        except DBAPIError as error:
            if error.connection_invalidated:
                raise self._down("the connection was lost", error) from error
            if getattr(error.orig, "sqlstate", None) in UNKNOWN_OBJECT:
                raise self._down("", error) from error
            raise
        if after := self._trouble.over():
            log.info("database.answers", call=self._call, after=after)
        return result

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._forget)
        return task

    async def _transact(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        async with self._engine.begin() as connection:
            return await work(connection)

    async def _items(self, work: Callable[[AsyncConnection], AsyncGenerator[T]]) -> AsyncGenerator[T]:
        async with self._engine.connect() as connection:
            await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            async with contextlib.aclosing(work(connection)) as items:
                async for item in items:
                    yield item

    def _forget(self, task: asyncio.Task[object]) -> None:
        self._running.discard(task)
        retrieve(task)

    def _down(self, what: str, error: Exception | None = None) -> DatabaseDown:
        self._metrics.dependency_errors.labels("postgres", self._call).inc()
        orig = getattr(error, "orig", None)
        problem = first_line(orig or error) if error else what
        if self._logs and self._trouble.is_news(problem):
            log.warning("database.down", call=self._call, problem=problem)
        return database_down(orig, what)


async def _next(items: AsyncGenerator[T]) -> list[T]:
    """The next item alone, or nothing at the end."""
    async for item in items:
        return [item]
    return []


async def _close(items: AsyncGenerator[T], last: asyncio.Task[list[T]]) -> None:
    """Close `items` once its last step has ended, which a server that hangs puts off; whoever read it does not wait for that."""
    await asyncio.wait({last})
    await items.aclose()
