"""One maker of a night at a time, and one of the first keys, on whichever replica: a lock of the session that also writes the entry.

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

KIND, KEYS_KIND = 0x51_0C_1C_E3, 0x51_0C_1C_E5
"""Of the locks of nights and of keys: any constants that no other kind of lock in Sluice has."""
TRY_EVERY_S = 1.0
WAIT_S = 600.0
"""For another maker of the same night: several times what one needs."""
KEYS_WAIT_S = 60.0
"""For another maker of the first keys: twice what it waits for the log."""
ANSWER_WITHIN_S = 30.0
"""A server that takes longer for one statement is down."""


class NightBusy(DependencyDown):
    """Another process has been making the reports of this night for longer than they should take."""

    code = "night_busy"
    hint = "Look at that process; try again when it has ended."


class KeysBusy(DependencyDown):
    """Another process has been making the first keys of reports for longer than that should take."""

    code = "report_keys_busy"
    hint = "Look at that process; try again when it has ended."


class Lock:
    """A lock that is held."""

    def __init__(self, session: LockSession) -> None:
        self._session = session

    async def commit(self, *entries: Entry) -> None:
        """Hand `entries`, at least one, over to the log; where that fails nobody knows whether it did. Raises DatabaseDown."""
        await self._session.run(lambda connection: hand_over(connection, *entries))


@contextlib.asynccontextmanager
async def locked(
    engine: AsyncEngine, night: Night, waits: Callable[[], None], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> AsyncIterator[Lock]:
    """The lock of `night` until the end of the block, on an engine of role sluice_intake; `waits` is called where another process has it.

    Raises NightBusy, DatabaseDown.
    """
    busy = NightBusy(f"the reports of {night.day} are being made by another process since {WAIT_S / 60:.0f} minutes")
    async with lock_session(engine, ANSWER_WITHIN_S) as session:
        if not await session.take(KIND, night.name):
            waits()
            await _wait(lambda: session.take(KIND, night.name), WAIT_S, busy, sleep)
        yield Lock(session)


@contextlib.asynccontextmanager
async def keys_locked(engine: AsyncEngine, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> AsyncIterator[Lock]:
    """The lock of whoever makes the first keys, or tells the log of them, until the end of the block; else as `locked`.

    Raises KeysBusy, DatabaseDown.
    """
    busy = KeysBusy(f"the first keys of reports are being made by another process since {KEYS_WAIT_S:.0f} s")
    async with lock_session(engine, ANSWER_WITHIN_S) as session:
        if not await session.take(KEYS_KIND, "report"):
            await _wait(lambda: session.take(KEYS_KIND, "report"), KEYS_WAIT_S, busy, sleep)
        yield Lock(session)


async def _wait(
    take: Callable[[], Awaitable[bool]], within_s: float, busy: DependencyDown, sleep: Callable[[float], Awaitable[None]]
) -> None:
    """Raises `busy` where it is not taken in time."""
    waited_s = 0.0
    while waited_s < within_s:
        await sleep(TRY_EVERY_S)
        waited_s += TRY_EVERY_S
        if await take():
            return
    raise busy
