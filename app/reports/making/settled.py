"""Waits until the log has what was handed over to it: who looks sooner misses what another maker has just said.

When down: NightUnfinished where nobody sequences, DatabaseDown.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.instants import rfc3339
from app.reports.evidence.readiness import NightUnfinished
from app.transaction import Transactions

SETTLED_WITHIN_S = 10.0
"""The sequencer needs milliseconds."""
LOOK_EVERY_S = 0.05
_WAITING = text("SELECT backlog.oldest, reports_waiting.entries AS reports FROM audit.backlog, audit.reports_waiting")


async def settled(transactions: Transactions, until: datetime, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
    """Wait until all that was recorded by then is in the log, and all `report.made` entries, whatever the clocks of their makers are.

    `transactions` are of role sluice_log. Raises NightUnfinished, DatabaseDown.
    """

    async def look(connection: AsyncConnection) -> datetime | None:
        waiting = (await connection.execute(_WAITING)).one()
        missing: bool = waiting.oldest is not None and (waiting.oldest <= until or waiting.reports)
        return waiting.oldest if missing else None

    waited_s = 0.0
    while oldest := await transactions.run(look):
        if waited_s >= SETTLED_WITHIN_S:
            raise NightUnfinished(f"an entry that was recorded at {rfc3339(oldest)} is not in the log yet")
        await sleep(LOOK_EVERY_S)
        waited_s += LOOK_EVERY_S
