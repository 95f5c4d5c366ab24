"""One answer to a request at a time: a lock from reading how it stands until the answer is in the log.

When down: DatabaseDown; the server frees the lock of a session that ends, so an answer whose lock was lost can be followed by another one.
"""

import contextlib
from collections.abc import AsyncIterator

from sqlalchemy.ext.asyncio import AsyncEngine

from app.errors import Conflict
from app.session_lock import lock_session

KIND = 0x51_0C_1C_E4
"""Of these locks: any constant that no other kind of lock in Sluice has."""


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
        async with lock_session(self._engine, self._timeout_s) as session:
            if not await session.take(KIND, request_id):
                raise RequestBusy(f"request {request_id} is being answered by somebody else", field="request")
            yield
