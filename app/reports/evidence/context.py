"""What the reports of a night need of the log beyond the night itself, read as role sluice_log.

Tenants, what people asked for and approvals of earlier days, accesses that wait for their confirmation, and what is still there.
Columns beside the bodies find the entries, and nothing proves that they find all; what is found is proven. In bounded numbers: of more
the newest are read, and what depends on all of them is unknown.

When down: DatabaseDown; no reports are made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.reading.entries import BODY, COLUMNS, logged
from app.instants import rfc3339
from app.reports.evidence.accesses import ACCESS
from app.reports.evidence.approvals import APPROVAL_KINDS
from app.reports.evidence.facts import Closing, Group, Logged, RetentionClass
from app.reports.evidence.proven import proven
from app.reports.evidence.registers import BREACH_KINDS, REQUEST_KINDS
from app.reports.evidence.retention import kept
from app.reports.nights.night import Night

MOST_OLDER = 2000
"""Entries of earlier days that are read for one purpose."""
MOST_TENANTS = 5000
QUOTA_KINDS = ("quota.in_force", "quota.rolled_back")
"""After which a tenant has a quota."""
PATIENCE_MS = 60_000
"""For each statement: reports wait, decisions do not wait for reports."""

_PATIENCE = text(f"SELECT set_config('statement_timeout', '{PATIENCE_MS}', true)")
_OF_KINDS = text(
    f"SELECT {COLUMNS} FROM audit.leaf JOIN {BODY} WHERE body.kind = ANY(:kinds) AND body.recorded < :before "  # noqa: S608 - constants
    "ORDER BY leaf.seq DESC LIMIT :most"
)
_RULES = text(
    f"SELECT {COLUMNS} FROM audit.leaf JOIN {BODY} WHERE body.kind = 'policy.activated' AND body.recorded < :before "  # noqa: S608 - constants
    "ORDER BY leaf.seq DESC LIMIT 1"
)
# The newest entry about each tenant's quota; one whose quota was deleted has none.
_TENANTS = text(f"""
    SELECT {COLUMNS} FROM (
      SELECT DISTINCT ON (tenant) shelf, seq FROM audit.body
      WHERE kind IN ('quota.in_force', 'quota.rolled_back', 'quota.deleted') AND recorded < :before AND tenant IS NOT NULL
      ORDER BY tenant, seq DESC
    ) AS newest JOIN audit.leaf ON leaf.seq = newest.seq JOIN {BODY}
    WHERE body.kind <> 'quota.deleted' ORDER BY leaf.seq DESC LIMIT :most
""")  # noqa: S608 - constants
# Bodies have one spelling, so that what is looked for in them needs no parser, which a damaged one would stop.
_UNCONFIRMED = text(f"""
    WITH ended AS MATERIALIZED (
      SELECT decision FROM audit.body WHERE recorded >= :begin AND recorded < :closes AND (kind = 'obligation.unmet' OR (
        kind = 'sensitive.access'
        AND position('"outcome":"confirmed"'::bytea IN body) + position('"outcome":"cancelled"'::bytea IN body) > 0
      ))
    )
    SELECT {COLUMNS} FROM audit.leaf JOIN {BODY}
    WHERE body.kind = 'sensitive.access' AND body.recorded >= :begin AND body.recorded < :before
    AND position('"outcome":"unconfirmed"'::bytea IN body.body) > 0
    AND NOT EXISTS (SELECT FROM ended WHERE ended.decision = body.decision)
    ORDER BY leaf.seq DESC LIMIT :most
""")  # noqa: S608 - constants
# Told after the day was over, such as when a serve was killed.
_INCIDENTS = text(f"""
    SELECT {COLUMNS} FROM audit.leaf JOIN {BODY}
    WHERE body.kind = 'obligation.unmet' AND body.recorded >= :closes AND body.decision IN (
      SELECT decision FROM audit.body WHERE kind = 'sensitive.access' AND recorded >= :begin AND recorded < :closes
    )
    ORDER BY leaf.seq DESC LIMIT :most
""")  # noqa: S608 - constants


@dataclass(frozen=True, slots=True)
class Context:
    """What was found."""

    tenants: Sequence[str] = ()
    """Those that had a quota when the night ended."""
    older: Mapping[str, Sequence[Logged]] = field(default_factory=dict)
    """Entries of earlier days by what they are for: `requests`, `breaches`, `approvals`, `rules`, `unconfirmed`; in the order of the log.

    `incidents` are later ones, of the day's accesses."""
    retention: Sequence[RetentionClass] = ()
    unproven: Sequence[int] = ()
    """Numbers of entries that are not what the closing checkpoint signs."""
    proofs: Mapping[int, str] = field(default_factory=dict)
    """Of each entry that was read, by its number, the proof as text."""
    cut: frozenset[Group] = frozenset()


async def context_of(connection: AsyncConnection, night: Night, closing: Closing | None) -> Context:
    """What the log says beyond `night`, proven by what closes the night's export. Takes seconds in a large log.

    Where nothing closes it nothing is proven: what is found is named as such, and all that depends on it is unknown. For Transactions with
    a time-out of minutes.
    """
    await connection.execute(_PATIENCE)
    looking = _Looking(connection, closing)
    before = {"before": night.begin}
    older = {
        "requests": await looking.find("requests", _OF_KINDS, before | {"kinds": list(REQUEST_KINDS)}),
        "breaches": await looking.find("breaches", _OF_KINDS, before | {"kinds": list(BREACH_KINDS)}),
        "approvals": await looking.find("approvals", _OF_KINDS, before | {"kinds": list(APPROVAL_KINDS)}),
        "rules": await looking.find("rules", _RULES, before),
        "unconfirmed": [
            entry for entry in await looking.find("unconfirmed", _UNCONFIRMED, before | _of(night.previous())) if _waits(entry)
        ],
        "incidents": await looking.find("incidents", _INCIDENTS, _of(night)),
    }
    tenants = await looking.find("tenants", _TENANTS, {"before": night.end}, MOST_TENANTS)
    retention = await looking.kept(night.end)
    return Context(
        tenants=sorted({str(entry.body.get("tenant")) for entry in tenants if entry.kind in QUOTA_KINDS}),
        older=older,
        retention=retention,
        unproven=sorted(set(looking.unproven)),
        proofs=dict(sorted(looking.proofs.items())),
        cut=frozenset(looking.cut),
    )


def _of(day: Night) -> dict[str, datetime]:
    return {"begin": day.begin, "closes": day.closes}


def _waits(entry: Logged) -> bool:
    return (entry.kind, entry.outcome) == (ACCESS, "unconfirmed")


class _Looking:
    """Looks for entries, and proves each."""

    def __init__(self, connection: AsyncConnection, closing: Closing | None) -> None:
        self._connection = connection
        self._closing = closing
        self.unproven: list[int] = []
        self.proofs: dict[int, str] = {}
        self.cut: set[Group] = set()

    async def find(self, group: Group, statement: Any, parameters: Mapping[str, Any], most: int | None = None) -> list[Logged]:
        """The newest that `statement` finds below the checkpoint, at most `most`, by default MOST_OLDER, in the order of the log."""
        most = most or MOST_OLDER
        found = await self._connection.execute(statement, {**parameters, "most": most + 1})
        rows = [logged(row) for row in found]
        if len(rows) > most:
            self.cut.add(group)
        result = await proven(self._connection, [row for row in rows[:most] if self._covers(row.seq)], self._closing)
        self._take(group, result.unproven, result.proofs)
        # What stands beside a body found it; what it says itself counts.
        before = rfc3339(parameters["before"]) if "before" in parameters else None
        return [entry for entry in result.entries[::-1] if before is None or entry.recorded < before]

    async def kept(self, before: datetime) -> Sequence[RetentionClass]:
        """The retention classes."""
        result = await kept(self._connection, before, self._closing)
        self._take("retention", result.unproven, result.proofs)
        if not result.known:
            self.cut.add("retention")
        return result.classes

    def _covers(self, seq: int) -> bool:
        return self._closing is None or seq < self._closing.checkpoint.size

    def _take(self, group: Group, unproven: Sequence[int], proofs: Mapping[int, str]) -> None:
        self.unproven += unproven
        self.proofs |= proofs
        if unproven or self._closing is None:
            self.cut.add(group)
