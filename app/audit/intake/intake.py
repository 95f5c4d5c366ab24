"""The intake of the log: entries are handed over here, durably, and sequenced into the tree by another process.

When down: DependencyDown within the time-out. Whoever owes the log an entry refuses what the entry would have recorded; the
first write that succeeds tells the log from when to when that was, and how often.
"""

from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.audit.intake.gaps import Gaps
from app.audit.intake.group_commit import GroupCommit
from app.audit.records.entry import Entry
from app.errors import DependencyDown
from app.observability.metrics import Metrics
from app.transaction import Transactions

# Without a conflict target: naming the column would need the right to read it, and writers cannot read the log.
_INSERT = text("INSERT INTO audit.intake (id, retention, recorded, body) VALUES (:id, :retention, :recorded, :body) ON CONFLICT DO NOTHING")


async def hand_over(connection: AsyncConnection, *entries: Entry) -> None:
    """Add `entries`, at least one, to the caller's transaction, so that a change and its record are one. A repeated id is not doubled."""
    await connection.execute(
        _INSERT, [{"id": entry.id, "retention": entry.retention, "recorded": entry.recorded, "body": entry.body} for entry in entries]
    )


class Intake:
    """Writes entries that belong to no other change, as a role that can only insert; several writers share a transaction."""

    def __init__(self, engine: AsyncEngine, metrics: Metrics, gaps: Gaps, *, timeout_ms: int) -> None:
        self._transactions = Transactions(engine, metrics, call="intake", timeout_ms=timeout_ms)
        self._metrics = metrics
        self._group = GroupCommit(self._commit)
        self.gaps = gaps

    async def write(self, *entries: Entry) -> None:
        """Commit what the caller owes, all or none, before returning; writing the same ids again is safe.

        Raises DependencyDown, and the caller refuses what the entries would have recorded: the next gap counts it.
        """
        with self.gaps.refusing(*entries):
            await self.commit(*entries)

    async def commit(self, *entries: Entry) -> None:
        """Commit entries for which nothing is refused, or none but the gap that the log is owed. Raises DependencyDown."""
        await self._group.write(entries)

    async def _commit(self, entries: Sequence[Entry]) -> None:
        told: tuple[Entry, ...] = ()

        async def work(connection: AsyncConnection) -> None:
            # Closed only now that there is a connection: an outage of any length is one gap, which ends when it ends.
            nonlocal told
            told = self.gaps.close()
            if told or entries:
                await hand_over(connection, *told, *entries)

        try:
            await self._transactions.run(work)
        except DependencyDown:
            self.gaps.failed()
            self._count(entries, "down")
            raise
        self.gaps.committed(*told)
        self._count((*told, *entries), "written")

    def _count(self, entries: Sequence[Entry], result: str) -> None:
        for entry in entries:
            self._metrics.audit_intake.labels(entry.kind, result).inc()
