"""The intake of the log: entries are handed over here, durably, and sequenced into the tree by another process.

When down: DependencyDown within the time-out. Whoever owes the log an entry refuses what the entry would have recorded.
"""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.audit.entry import Entry
from app.errors import DependencyDown
from app.observability.metrics import Metrics
from app.transaction import Transactions

# Without a conflict target: naming the column would need the right to read it, and writers cannot read the log.
_INSERT = text("INSERT INTO audit.intake (id, retention, recorded, body) VALUES (:id, :retention, :recorded, :body) ON CONFLICT DO NOTHING")


async def hand_over(connection: AsyncConnection, *entries: Entry) -> None:
    """Add `entries` to the caller's transaction, so that a change and its record are one. A repeated id is not doubled."""
    await connection.execute(
        _INSERT, [{"id": entry.id, "retention": entry.retention, "recorded": entry.recorded, "body": entry.body} for entry in entries]
    )


class Intake:
    """Writes entries that belong to no other change, in transactions of their own, as a role that can only insert."""

    def __init__(self, engine: AsyncEngine, metrics: Metrics, *, timeout_ms: int) -> None:
        self._transactions = Transactions(engine, metrics, call="intake", timeout_ms=timeout_ms)
        self._metrics = metrics

    async def write(self, *entries: Entry) -> None:
        """Commit `entries`, all or none, before returning. Raises DependencyDown; writing the same ids again is safe."""
        try:
            await self._transactions.run(lambda connection: hand_over(connection, *entries))
        except DependencyDown:
            self._count(entries, "down")
            raise
        self._count(entries, "written")

    def _count(self, entries: tuple[Entry, ...], result: str) -> None:
        for entry in entries:
            self._metrics.audit_intake.labels(entry.kind, result).inc()
