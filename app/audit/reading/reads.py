"""Whoever reads the log stands in it: the record of a read is committed before what was read leaves.

When down: AuditUnavailable, and what was read is not given.
"""

from collections.abc import Mapping
from typing import Any

from app.audit.intake.intake import Intake
from app.audit.records.log import log_read
from app.clock import Clock
from app.errors import DependencyDown


class AuditUnavailable(DependencyDown):
    """Reading the log is itself an entry of the log, which could not be written, so nothing was read."""

    code = "audit_unavailable"
    hint = "See the parts `database` and `log` of /readyz; try again when they are well."


class Reads:
    """Records reads of the log."""

    def __init__(self, intake: Intake, clock: Clock) -> None:
        self._intake = intake
        self._clock = clock

    async def record(
        self, read: str, *, operator: str, query: Mapping[str, Any], first: int | None = None, end: int | None = None, count: int
    ) -> None:
        """Commit that `operator` reads `count` entries, from `first` to before `end`, by `read` with `query`. Raises AuditUnavailable."""
        said = dict(query)
        tenant, subject = said.get("tenant"), said.pop("subject", None)  # these are columns that a later search looks at
        entry = log_read(
            recorded=self._clock.utcnow(),
            operator=operator,
            read=read,
            tenant=tenant,
            query=said,
            first=first,
            end=end,
            count=count,
            subject=subject,
        )
        try:
            await self._intake.write(entry)
        except DependencyDown as down:
            raise AuditUnavailable(f"the read could not be recorded: {down.message}") from None
