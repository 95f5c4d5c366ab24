"""Tells the log who signs reports, before the first report that a new signer signs.

When down: DependencyDown, and no report is made.
"""

from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.intake.intake import Intake
from app.reports.sealing.introduction import KINDS, introductions, known_signers
from app.signing.keys import KeyFolder
from app.transaction import Transactions

_TOLD = text("SELECT body FROM audit.body WHERE kind = ANY(:kinds) ORDER BY seq")


async def introduce(transactions: Transactions, intake: Intake, keys: KeyFolder, now: datetime) -> None:
    """Commit the entries that the log is owed for the signers in `keys`; `transactions` of role sluice_log. Raises DependencyDown."""

    async def look(connection: AsyncConnection) -> list[dict[str, Any]]:
        rows = await connection.execute(_TOLD, {"kinds": list(KINDS)})
        return [body for row in rows if (body := _parsed(bytes(row.body)))]

    owed = introductions(keys, known_signers(await transactions.run(look)), now)
    if owed:
        await intake.commit(*owed)


def _parsed(body: bytes) -> dict[str, Any] | None:
    """None where it was altered to something else."""
    try:
        said = orjson.loads(body)
    except ValueError:
        return None
    return said if isinstance(said, dict) and "key" in said else None
