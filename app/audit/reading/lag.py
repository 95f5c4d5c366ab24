"""How far the log has come: what waits in the intake, what is sequenced, what is signed. Looked at once a second.

When down: nothing is known until a look succeeds again; there is no older figure that could be taken for the present.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.format.checkpoint import origin_of
from app.clock import Clock
from app.errors import DependencyDown
from app.transaction import Transactions

LOOK_EVERY_S = 1.0
LATE_MS = 10_000
"""Entries that wait this long, or that long without a signature, are nobody's 10 ms of grouping any more."""

LEADER_LOCK = 0x51_0C_1C_E1
"""Any constant but MIGRATION_LOCK: every process of the log on a database asks for the same advisory lock."""
TENDING_LOCK = 0x51_0C_1C_E2
"""What the leader holds beside it while its work goes well."""
_LOOK = text("""
    SELECT head.log, head.size, backlog.entries, backlog.oldest, checkpoint.size AS signed_size, checkpoint.signed, leader.*
    FROM audit.head CROSS JOIN audit.backlog CROSS JOIN (
      SELECT coalesce(bool_or(objid = :leader_lock), false) AS led, coalesce(bool_or(objid = :tending_lock), false) AS tended
      FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = 0
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ) AS leader
    LEFT JOIN (SELECT size, signed FROM audit.checkpoint ORDER BY size DESC LIMIT 1) AS checkpoint ON true
""")


@dataclass(frozen=True, slots=True)
class Lag:
    """How far the log had come at one moment."""

    log: str
    """Its origin."""
    size: int
    backlog: int
    """Entries that wait in the intake; 10 000 stands for any more."""
    oldest: datetime | None
    """When the first of those was recorded."""
    signed_size: int
    """Of the newest checkpoint; 0 without one."""
    signed_at: datetime | None
    led: bool
    """Whether some process is there to sequence and sign it."""
    tended: bool
    """Whether it gets on with that."""


class LagWatch:
    """Keeps the newest lag of the log for whoever asks."""

    def __init__(self, transactions: Transactions, clock: Clock) -> None:
        self._transactions = transactions
        self._clock = clock
        self.newest: Lag | None = None
        """None while it is not known."""
        self.stands_since: datetime | None = None
        """When the log was first seen led and not tended; None where it is not so now."""
        self._unsigned_since_ms: float | None = None

    async def look(self) -> None:
        """Look once; an outage makes it unknown."""
        before = self.newest
        try:
            now = await self._transactions.run(_look)
        except DependencyDown:
            self.newest = None
            return
        except BaseException:
            self.newest = None
            raise
        moved = before is None or before.signed_size < now.signed_size
        if now.size == now.signed_size:
            self._unsigned_since_ms = None
        elif moved or self._unsigned_since_ms is None:
            self._unsigned_since_ms = self._clock.monotonic_ms()
        stands = now.led and not now.tended
        self.stands_since = (self.stands_since or self._clock.utcnow()) if stands else None
        self.newest = now

    def backlog_age_s(self) -> float | None:
        """How long the first entry of the intake has waited: 0 where none waits, None while that is not known."""
        if self.newest is None:
            return None
        return 0.0 if self.newest.oldest is None else self._age_s(self.newest.oldest)

    def checkpoint_age_s(self) -> float | None:
        """Age of the newest checkpoint; None where there is none or that is not known."""
        return None if self.newest is None or self.newest.signed_at is None else self._age_s(self.newest.signed_at)

    @property
    def late(self) -> bool:
        """Whether entries have waited, or been without a signature, for longer than LATE_MS."""
        unsigned_ms = 0.0 if self._unsigned_since_ms is None else self._clock.monotonic_ms() - self._unsigned_since_ms
        return max((self.backlog_age_s() or 0.0) * 1000, unsigned_ms) > LATE_MS

    def _age_s(self, since: datetime) -> float:
        return max(0.0, (self._clock.utcnow() - since).total_seconds())  # the clock that wrote it may be ahead of ours


async def _look(connection: AsyncConnection) -> Lag:
    row = (await connection.execute(_LOOK, {"leader_lock": LEADER_LOCK, "tending_lock": TENDING_LOCK})).one()
    return Lag(origin_of(str(row.log)), row.size, row.entries, row.oldest, row.signed_size or 0, row.signed, row.led, row.tended)
