"""One maker of a night at a time, on whichever replica: an advisory lock of the session that also writes the night's entry.

Whoever lost the lock, with its connection, can no longer say that the night is made: both are the same session.
When down: DatabaseDown; the server frees the lock of a session that ends.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.audit.intake.intake import hand_over
from app.audit.records.entry import Entry
from app.database import database_down
from app.errors import DependencyDown
from app.reports.nights.night import Night

LOCKS = 0x51_0C_1C_E3
"""First half of the key of each such lock: any constant that no other lock of Sluice has."""
TRY_EVERY_S = 1.0
WAIT_S = 600.0
"""For another maker of the same night: several times what one needs."""
ANSWER_WITHIN_S = 30.0
"""A server that takes longer for one statement is down."""

_TRY = text("SELECT pg_try_advisory_lock(:locks, :night)")


class NightBusy(DependencyDown):
    """Another process has been making the reports of this night for longer than they should take."""

    code = "night_busy"
    hint = "Look at that process; try again when it has ended."


class Lock:
    """A lock that is held."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def commit(self, entry: Entry) -> None:
        """Hand `entry` over to the log; where that fails nobody knows whether it did. Raises DatabaseDown."""
        with _outage():
            async with asyncio.timeout(ANSWER_WITHIN_S), self._connection.begin():
                await hand_over(self._connection, entry)


@contextlib.asynccontextmanager
async def locked(
    engine: AsyncEngine, night: Night, waits: Callable[[], None], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> AsyncIterator[Lock]:
    """The lock of `night` until the end of the block, on an engine of role sluice_intake; `waits` is called where another process has it.

    Raises NightBusy, DatabaseDown.
    """
    with _outage():
        connection = await engine.connect()
    try:
        await _acquire(connection, night, waits, sleep)
        yield Lock(connection)
    finally:
        await connection.invalidate()  # the session ends, and with it the lock
        await connection.close()


async def _acquire(connection: AsyncConnection, night: Night, waits: Callable[[], None], sleep: Callable[[float], Awaitable[None]]) -> None:
    waited_s = 0.0
    while not await _try(connection, night):
        if not waited_s:
            waits()
        if waited_s >= WAIT_S:
            raise NightBusy(f"the reports of {night.day} are being made by another process since {WAIT_S / 60:.0f} minutes")
        await sleep(TRY_EVERY_S)
        waited_s += TRY_EVERY_S


async def _try(connection: AsyncConnection, night: Night) -> bool:
    with _outage():
        async with asyncio.timeout(ANSWER_WITHIN_S), connection.begin():
            return bool((await connection.execute(_TRY, {"locks": LOCKS, "night": _number(night)})).scalar())


def _number(night: Night) -> int:
    """The second half of the key. Two nights with the same, once in four thousand million, wait for each other."""
    return int.from_bytes(hashlib.sha256(night.name.encode()).digest()[:4], signed=True)


@contextlib.contextmanager
def _outage() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        raise database_down(error.orig) from error
    except NoConnection as error:
        raise database_down(error) from error
    except (TimeoutError, OSError) as error:
        raise database_down(error, f"no answer within {ANSWER_WITHIN_S:.0f} s") from error
