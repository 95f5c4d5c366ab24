"""One process leads the log: it holds an advisory lock for as long as its session with PostgreSQL lives. Others stand by.

When down: DatabaseDown ends the leadership. PostgreSQL gives the lock to another once it sees the session end;
where the old leader still writes by then, both are harmless: whoever adds to the log locks its head first.
"""

import asyncio
from collections.abc import Callable

import structlog

from app.audit.reading.checkpoints import CHANNEL
from app.audit.reading.lag import LEADER_LOCK
from app.audit.sequencing.queries import QUERIES
from app.audit.sequencing.session import Connection, within

STANDBY_S = 0.25
"""Between two tries of who stands by. Waiting inside PostgreSQL would be quicker, but could not end in time there."""
HEARTBEAT_S = 2.0
"""Between two looks at a session that is silent."""

log = structlog.get_logger()


async def take_lead(connection: Connection, stop: asyncio.Event, *, timeout_s: float) -> bool:
    """Wait until this session leads; False where `stop` came first."""
    standing_by = False
    while not stop.is_set():
        if await within(timeout_s, connection, _try_lock(connection)):
            return True
        if not standing_by:
            log.info("standing by", why="another process leads the log")
            standing_by = True
        try:
            await asyncio.wait_for(stop.wait(), STANDBY_S)
        except TimeoutError:
            continue
    return False


async def keep_lead(connection: Connection, asked: Callable[[], None], *, timeout_s: float) -> None:
    """Call `asked` whenever somebody asks for a checkpoint, for as long as this session lives. Raises when it does not."""
    await within(timeout_s, connection, connection.execute(f"LISTEN {CHANNEL}"))
    while True:
        async for _ in connection.notifies(timeout=HEARTBEAT_S):
            asked()
        await within(timeout_s, connection, connection.execute("SELECT"))


async def _try_lock(connection: Connection) -> bool:
    cursor = await connection.execute(QUERIES["try_lead"], {"lock": LEADER_LOCK})
    (leads,) = (await cursor.fetchall())[0]
    return bool(leads)
