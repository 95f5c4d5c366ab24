"""What the log is owed before a night is made: who signs reports, and the incidents that no serve told, because it was killed.

An access that its gateway never confirmed, and of which no serve said how it ended, is an incident (`obligation.unmet`, reason `killed`).
Its id follows from the decision's, so that makers who find it at once tell it once. Accesses of the last hour are left to the next night:
their leases may live yet. One whose lease was renewed for longer is told, too, and confirmed by a `confirmed` access afterwards.

When down: DependencyDown, and no report is made. Of a log that is not what was signed nothing is believed: its open accesses are not told
as incidents, and signers are told of again.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import structlog

from app.audit.reading.hashes import LogDamaged
from app.audit.reading.proven import Proven, ProvenEntries, Search, of_kinds
from app.audit.records.access import RequestFacts, obligation_unmet
from app.audit.records.entry import Entry
from app.reports.nights.night import Night
from app.reports.sealing.introduction import KINDS, introductions, known_signers
from app.signing.keys import KeyFolder

LEASE_ENDED = timedelta(hours=1)
"""The longest life of a lease that nobody renews."""
INCIDENTS = UUID("b0f3f1de-52a8-4c1f-9d4e-6f1f0c7a9e35")
"""The space of names of these ids: any constant."""
_OPEN = """
    body.kind = 'sensitive.access' AND body.recorded >= :begin AND body.recorded < :before
    AND position('"outcome":"unconfirmed"'::bytea IN body.body) > 0
    AND NOT EXISTS (
      SELECT FROM audit.body AS ended WHERE ended.decision = body.decision AND (ended.kind = 'obligation.unmet' OR (
        ended.kind = 'sensitive.access'
        AND position('"outcome":"confirmed"'::bytea IN ended.body) + position('"outcome":"cancelled"'::bytea IN ended.body) > 0
      ))
    )
"""

log = structlog.get_logger()


async def owed(entries: ProvenEntries, keys: KeyFolder, night: Night, now: datetime) -> list[Entry]:
    """The entries that the log is owed before `night` is made with these keys, which are open. Raises DependencyDown."""
    told = await _proven(entries, of_kinds(*KINDS))
    waiting = await _proven(entries, _open(night.previous().begin, min(night.end, now - LEASE_ENDED)))
    return [*introductions(keys, known_signers(entry.body for entry in told), now), *_incidents(waiting, now)]


async def _proven(entries: ProvenEntries, search: Search) -> list[Proven]:
    try:
        return await entries.all(search, (await entries.closing()).checkpoint)
    except LogDamaged as damaged:  # the reports will say so
        log.warning("report.log_damaged", problem=damaged.message)
        return []


def _open(begin: datetime, before: datetime) -> Search:
    def says(body: Mapping[str, Any]) -> bool:
        return (body["kind"], body["outcome"]) == ("sensitive.access", "unconfirmed")

    return Search(_OPEN, {"begin": begin, "before": before}, says)


def _asked(access: Mapping[str, Any]) -> RequestFacts:
    return RequestFacts(**{name: access[name] for name in RequestFacts.__slots__ if name in access})


def _incidents(accesses: Iterable[Proven], now: datetime) -> list[Entry]:
    return [
        obligation_unmet(
            _asked(access.body),
            recorded=now,
            retention_days=int(access.logged.leaf.retention.removeprefix("d")),
            obligations=access.body.get("obligations", ()),
            reason="killed",
            entry_id=uuid5(INCIDENTS, str(access.body["decision_id"])),
        )
        for access in accesses
    ]
