"""Connections of the log's own process to PostgreSQL, on which every wait ends.

When down: DatabaseDown for whatever the driver fails with, and once the time for an answer is over; the connection is closed by then,
and what it was in the middle of is rolled back or, where the server was committing, done.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import make_conninfo

from app.database import DatabaseDown, conninfo, database_down
from app.tasks import retrieve

T = TypeVar("T")
Connection = psycopg.AsyncConnection[Any]

KEEPALIVE = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
"""Seconds and tries: a machine that vanished is noticed by either side within 11 s, so that another may lead."""


@contextlib.asynccontextmanager
async def connected(url: str, *, timeout_ms: int) -> AsyncIterator[Connection]:
    """A connection in autocommit mode whose statements end after `timeout_ms`. Raises DatabaseDown, also for what fails in the block."""
    options = {
        "synchronous_commit": "on",
        "statement_timeout": timeout_ms,
        "idle_in_transaction_session_timeout": timeout_ms,
        **{f"tcp_{name}": value for name, value in KEEPALIVE.items()},
    }
    parameters: dict[str, str | int] = {
        **KEEPALIVE,
        "connect_timeout": max(2, -(-timeout_ms // 1000)),  # whole seconds, and libpq knows none below 2
        "tcp_user_timeout": timeout_ms,
        "options": " ".join(f"-c {name}={value}" for name, value in options.items()),
        "application_name": "sluice-audit",
    }
    with _translated():
        connection = await psycopg.AsyncConnection.connect(make_conninfo(conninfo(url), **parameters), autocommit=True)
        try:
            yield connection
        finally:
            await connection.close()  # at once; what it was in the middle of is rolled back


async def within(timeout_s: float, connection: Connection, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, all of whose statements go to `connection`. Raises DatabaseDown, and what `work` raises.

    A server that hangs would hold whoever cancels a statement, since that asks the server, too: so the connection goes first.
    """
    task = asyncio.create_task(work)
    task.add_done_callback(retrieve)
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout_s)
    finally:
        if not task.done():
            await connection.close()
            task.cancel()
            await asyncio.wait({task})
    if not done:
        raise DatabaseDown(f"PostgreSQL: no answer within {timeout_s:g} s")
    with _translated():
        return task.result()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Beyond this room's connections nobody knows the driver."""
    try:
        yield
    except psycopg.Error as error:
        raise database_down(error) from error
