"""Attempts to read the log by callers who may not: each is told to the log, and nobody waits for that.

Only who is known by a key stands there: what comes without one, or with one that is not in force, is nobody's attempt, and could
fill the log from outside.

When down: they wait in memory with whatever else may wait (app/audit/intake/pending.py), in its bounds; the caller is refused at once.
"""

from collections.abc import Mapping
from typing import Any

from app.audit.intake.pending import Pending
from app.audit.records.log import log_read
from app.clock import Clock


class Refusals:
    """Tells the log who was refused to read it."""

    def __init__(self, pending: Pending, clock: Clock) -> None:
        self._pending = pending
        self._clock = clock

    def add(
        self,
        read: str,
        *,
        operator: str,
        query: Mapping[str, Any] | None = None,
        seq: int | None = None,
        report: str | None = None,
        file: str | None = None,
    ) -> None:
        """`operator` was refused what `read` names: with `query`, the entry `seq`, or `file` of `report`."""
        end = None if seq is None else seq + 1
        now = self._clock.utcnow()
        entry = log_read(
            recorded=now,
            operator=operator,
            read=read,
            outcome="refused",
            query=query,
            first=seq,
            end=end,
            report=report,
            file=file,
        )
        self._pending.add(entry)
