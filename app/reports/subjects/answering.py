"""One answer to a request at a time: an advisory lock of a session of its own, from reading how it stands until the answer is in the log.

When down: DatabaseDown; the server frees the lock of a session that ends, so an answer whose lock was lost can be followed by another one.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.database import database_down
from app.errors import Conflict

LOCKS = 0x51_0C_1C_E4
"""First half of the key of each such lock: any constant that no other lock of Sluice has."""

_TRY = text("SELECT pg_try_advisory_lock(:locks, :request)")


class RequestBusy(Conflict):
    """Somebody else is answering the request at this moment."""

    code = "request_busy"
    hint = "`sluice report request list` says how it stands when that has ended."


class Answering:
    """The locks of requests."""

    def __init__(self, engine: AsyncEngine, *, timeout_ms: int) -> None:
        """`engine`: of any role; a connection of it is held for as long as an answer takes."""
        self._engine = engine
        self._timeout_s = timeout_ms / 1000

    @contextlib.asynccontextmanager
    async def alone(self, request_id: str | None) -> AsyncIterator[None]:
        """Nobody else answers that request during the block; None: nothing is answered. Raises RequestBusy, DatabaseDown."""
        if request_id is None:
            yield
            return
        connection = await self._session(request_id)
        try:
            yield
        finally:
            await connection.invalidate()  # the session ends, and with it the lock
            await connection.close()

    async def _session(self, request_id: str) -> AsyncConnection:
        """A connection that has the lock."""
        try:
            async with asyncio.timeout(self._timeout_s), contextlib.AsyncExitStack() as stack:
                connection = await stack.enter_async_context(self._engine.connect())
                values = {"locks": LOCKS, "request": _number(request_id)}
                if not (await connection.execute(_TRY, values)).scalar():
                    raise RequestBusy(f"request {request_id} is being answered by somebody else", field="request")
                await connection.commit()
                stack.pop_all()
                return connection
        except (DBAPIError, NoConnection, TimeoutError, OSError) as error:
            raise database_down(error.orig if isinstance(error, DBAPIError) else error) from error


def _number(request_id: str) -> int:
    """The second half of the key. Two requests with the same, once in four thousand million, keep each other from being answered at once."""
    return int.from_bytes(hashlib.sha256(request_id.encode()).digest()[:4], signed=True)
