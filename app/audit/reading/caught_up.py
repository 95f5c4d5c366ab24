"""Waiting until what was handed over to the log is in it, so that an answer from it lacks nothing of that.

When down: DatabaseDown; LogBehind where nobody sequences, or not fast enough.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.reading.checkpoints import LOOK_EVERY_S
from app.errors import DependencyDown
from app.instants import rfc3339
from app.transaction import Transactions

_OLDEST = text("SELECT oldest FROM audit.backlog")


class LogBehind(DependencyDown):
    """Entries that were handed over before the question are not in the log yet, so an answer could lack them; nothing was given."""

    code = "log_behind"
    hint = "Start `sluice audit run`, or let it catch up: `sluice doctor` says how far it is behind. Then ask again."


async def caught_up(
    transactions: Transactions, until: datetime | None, within_s: float, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Wait until nothing of what was recorded by `until` is left to be sequenced; None: nothing whatever it says of its time.

    `transactions` are of role sluice_log. Raises LogBehind after `within_s` seconds, DatabaseDown.
    """
    waited_s = 0.0
    while (oldest := await transactions.run(_oldest_waiting)) is not None and (until is None or oldest <= until):
        if waited_s >= within_s:
            raise LogBehind(f"an entry that was recorded at {rfc3339(oldest)} is not in the log yet")
        await sleep(LOOK_EVERY_S)
        waited_s += LOOK_EVERY_S


async def _oldest_waiting(connection: AsyncConnection) -> datetime | None:
    oldest: datetime | None = (await connection.execute(_OLDEST)).scalar()
    return oldest
