"""An advisory lock of PostgreSQL that a session of its own holds: who loses the connection loses the lock, and what that session could still say.

When down: DatabaseDown within the time that was given, and some 10 s later where the server hangs in a statement, which psycopg
tries to cancel first; the server frees the lock of a session that ends.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeVar

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.database import database_down

T = TypeVar("T")

_TRY = text("SELECT pg_try_advisory_lock(:kind, :name)")


class LockSession:
    """A session that asks for locks and keeps what it gets until it ends."""

    def __init__(self, connection: AsyncConnection, within_s: float) -> None:
        self._connection = connection
        self._within_s = within_s

    async def take(self, kind: int, name: str) -> bool:
        """Whether the lock `name` of that kind (a constant of 32 bits that no other kind of lock has) is this session's now. Raises DatabaseDown.

        Two names of a kind that hash alike, once in four thousand million, count as one.
        """
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], signed=True)
        return bool(await self.run(lambda connection: connection.scalar(_TRY, {"kind": kind, "name": number})))

    async def run(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """The result of `work`, in a transaction of this session; where its commit fails nobody knows whether it was done. Raises DatabaseDown."""
        with _outage(self._within_s):
            async with asyncio.timeout(self._within_s), self._connection.begin():
                return await work(self._connection)


@contextlib.asynccontextmanager
async def lock_session(engine: AsyncEngine, within_s: float) -> AsyncIterator[LockSession]:
    """A session of its own on a connection of `engine` until the end of the block; each answer of the server is waited for `within_s`. Raises DatabaseDown."""
    with _outage(within_s):
        async with asyncio.timeout(within_s):
            connection = await engine.connect()
    try:
        yield LockSession(connection, within_s)
    finally:
        await connection.invalidate()  # the session ends, and with it its locks
        await connection.close()


@contextlib.contextmanager
def _outage(within_s: float) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        raise database_down(error.orig) from error
    except NoConnection as error:
        raise database_down(error) from error
    except (TimeoutError, OSError) as error:
        raise database_down(error, f"no answer within {within_s:g} s") from error
