"""One maker of a night at a time, on whichever replica: a lock of the session that also writes the night's entry.

Whoever lost the lock, with its connection, can no longer say that the night is made: both are the same session.
When down: DatabaseDown; the server frees the lock of a session that ends.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from sqlalchemy.ext.asyncio import AsyncEngine

from app.audit.intake.intake import hand_over
from app.audit.records.entry import Entry
from app.errors import DependencyDown
from app.reports.nights.night import Night
from app.session_lock import LockSession, lock_session

KIND = 0x51_0C_1C_E3
"""Of these locks: any constant that no other kind of lock in Sluice has."""
TRY_EVERY_S = 1.0
WAIT_S = 600.0
"""For another maker of the same night: several times what one needs."""
ANSWER_WITHIN_S = 30.0
"""A server that takes longer for one statement is down."""


class NightBusy(DependencyDown):
    """Another process has been making the reports of this night for longer than they should take."""

    code = "night_busy"
    hint = "Look at that process; try again when it has ended."


class Lock:
    """A lock that is held."""

    def __init__(self, session: LockSession) -> None:
        self._session = session

    async def commit(self, entry: Entry) -> None:
        """Hand `entry` over to the log; where that fails nobody knows whether it did. Raises DatabaseDown."""
        await self._session.run(lambda connection: hand_over(connection, entry))


@contextlib.asynccontextmanager
async def locked(
    engine: AsyncEngine, night: Night, waits: Callable[[], None], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> AsyncIterator[Lock]:
    """The lock of `night` until the end of the block, on an engine of role sluice_intake; `waits` is called where another process has it.

    Raises NightBusy, DatabaseDown.
    """
    async with lock_session(engine, ANSWER_WITHIN_S) as session:
        waited_s = 0.0
        while not await session.take(KIND, night.name):
            if not waited_s:
                waits()
            if waited_s >= WAIT_S:
                raise NightBusy(f"the reports of {night.day} are being made by another process since {WAIT_S / 60:.0f} minutes")
            await sleep(TRY_EVERY_S)
            waited_s += TRY_EVERY_S
        yield Lock(session)
