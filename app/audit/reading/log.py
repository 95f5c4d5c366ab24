"""The log as its readers have it: what they may ask, each read recorded before it leaves.

Reads are entries, proofs of an entry, exports, reports, and reasons of approvals: what shows what somebody did. Checkpoints and proofs between them hold no
entry and are asked for by machines all the time, so they are not recorded: a log of who looked at its root would only grow.

When down: DatabaseDown where the log cannot be read, AuditUnavailable where the read cannot be recorded; nothing is given.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.audit.format.export_file import Header
from app.audit.intake.intake import Intake
from app.audit.people.subject_keys import SubjectKeys
from app.audit.reading import entries, proofs
from app.audit.reading.checkpoints import SignedCheckpoint, certificates, fresh, newest
from app.audit.reading.entries import Filters, Logged, Page
from app.audit.reading.export import Exports, Lines, Wanted
from app.audit.reading.lag import LagWatch
from app.audit.reading.proofs import Extension, Inclusion
from app.audit.reading.unsealed import Unsealed, unseal
from app.audit.records.entry import Entry
from app.audit.records.log import log_read
from app.clock import Clock
from app.errors import DependencyDown
from app.observability.metrics import Metrics
from app.transaction import Transactions


class AuditUnavailable(DependencyDown):
    """Reading the log is itself an entry of the log, which could not be written, so nothing was read."""

    code = "audit_unavailable"
    hint = "See the parts `database` and `log` of /readyz; try again when they are well."


@dataclass(frozen=True, slots=True)
class Certified:
    """A checkpoint and the certificates, as DER, of all who ever signed for the log."""

    checkpoint: SignedCheckpoint
    certificates: list[bytes]


@dataclass(frozen=True, slots=True)
class EntryRead:
    """An entry, and what it has sealed where the reader asked for that."""

    logged: Logged
    unsealed: Unsealed | None = None


@dataclass(frozen=True, slots=True)
class EntriesRead:
    """One page of entries."""

    entries: list[EntryRead]
    next: int | None
    """The cursor of the next page; None where nothing follows."""


@dataclass(frozen=True, slots=True)
class Export:
    """An export that is recorded: its first line, and the whole file in pieces, to be closed where it is not read to its end."""

    header: Header
    lines: AsyncGenerator[Lines]


class Log:
    """Reads with an engine of role sluice_log, and records that with `intake`."""

    def __init__(self, engine: AsyncEngine, intake: Intake, clock: Clock, metrics: Metrics, *, timeout_ms: int) -> None:
        self._transactions = Transactions(engine, metrics, call="log", timeout_ms=timeout_ms)
        # Longer than the time-out of a statement, so that a search that takes too long is told from a server that does not answer.
        self._searches = Transactions(engine, metrics, call="log search", timeout_ms=2 * timeout_ms)
        self._exports = Exports(engine, clock, metrics)
        self._intake = intake
        self._clock = clock
        self.lag = LagWatch(self._transactions, clock)

    async def entries(self, filters: Filters, page: Page, *, operator: str, keys: SubjectKeys | None = None) -> EntriesRead:
        """One page of entries; `keys` open what is sealed. Raises SearchTooLong, DatabaseDown, AuditUnavailable."""
        and_one = replace(page, limit=page.limit + 1)  # whether anything follows
        found = await self._searches.run(lambda connection: entries.entries(connection, filters, and_one))
        shown = found[: page.limit]
        read = await _read(shown, keys)
        numbers = [logged.seq for logged in shown]
        first, end = (min(numbers), max(numbers) + 1) if numbers else (None, None)
        await self._record("entries", filters.as_query | _opening(keys), operator=operator, first=first, end=end, count=len(shown))
        return EntriesRead(read, numbers[-1] if len(found) > len(shown) else None)

    async def entry(self, seq: int, *, operator: str, keys: SubjectKeys | None = None) -> EntryRead:
        """One entry; `keys` open what is sealed. Raises NotInLog, LogDamaged, DatabaseDown, AuditUnavailable."""
        found = await self._transactions.run(lambda connection: entries.entry(connection, seq))
        (read,) = await _read([found], keys)
        await self._record("entry", _opening(keys), operator=operator, first=seq, end=seq + 1, count=1)
        return read

    async def inclusion(self, seq: int, size: int | None, *, operator: str) -> Inclusion:
        """An entry with its proof. Raises NotInLog, NoCheckpoint, LogDamaged, DatabaseDown, AuditUnavailable."""
        proof = await self._transactions.run(lambda connection: proofs.inclusion(connection, seq, size))
        await self._record("proof", {} if size is None else {"size": size}, operator=operator, first=seq, end=seq + 1, count=1)
        return proof

    async def export(self, wanted: Wanted, *, operator: str) -> Export:
        """An export. Raises NoCheckpoint, NothingRecorded, ExportsBusy, DatabaseDown, AuditUnavailable."""
        header, lines = await self._exports.begin(wanted)
        count = header.end - header.first
        try:
            await self._record("export", wanted.as_query, operator=operator, first=header.first, end=header.end, count=count)
        except BaseException:
            await lines.aclose()
            raise
        return Export(header, lines)

    async def checkpoint(self, *, renewed: bool = False) -> Certified:
        """The newest checkpoint; `renewed` has everything signed first that is in the log now.

        Raises NoCheckpoint, SequencerSilent, DatabaseDown.
        """
        if renewed:
            await fresh(self._transactions)

        async def look(connection: AsyncConnection) -> Certified:
            return Certified(await newest(connection), await certificates(connection))

        return await self._transactions.run(look)

    async def consistency(self, old_size: int, new_size: int | None) -> Extension:
        """The proof between two checkpoints. Raises NoCheckpoint, BadRequest, LogDamaged, DatabaseDown."""
        return await self._transactions.run(lambda connection: proofs.consistency(connection, old_size, new_size))

    async def report_read(self, report: str, file: str, *, operator: str) -> None:
        """Commit that `operator` reads `file` of `report`: what is made of the log is read as the log is. Raises AuditUnavailable."""
        await self._commit(log_read(recorded=self._clock.utcnow(), operator=operator, read="report", report=report, file=file))

    async def approvals_read(self, query: Mapping[str, Any], *, operator: str, count: int) -> None:
        """Commit that `operator` reads `count` approvals with their reasons, which the log seals, too. Raises AuditUnavailable."""
        await self._record("approvals", {**query, "open": True}, operator=operator, first=None, end=None, count=count)

    async def _record(self, read: str, query: Mapping[str, Any], *, operator: str, first: int | None, end: int | None, count: int) -> None:
        """Commit that `operator` reads `count` entries, from `first` to before `end`, by `read` with `query`. Raises AuditUnavailable."""
        now = self._clock.utcnow()
        await self._commit(log_read(recorded=now, operator=operator, read=read, query=query, first=first, end=end, count=count))

    async def _commit(self, entry: Entry) -> None:
        try:
            await self._intake.write(entry)
        except DependencyDown as down:
            raise AuditUnavailable(f"the read could not be recorded: {down.message}") from None


async def _read(found: Sequence[Logged], keys: SubjectKeys | None) -> list[EntryRead]:
    if keys is None:
        return [EntryRead(logged) for logged in found]
    return [EntryRead(*both) for both in zip(found, await unseal(keys, found), strict=True)]


def _opening(keys: SubjectKeys | None) -> dict[str, Any]:
    """How the record says that a reader saw what was sealed."""
    return {"open": True} if keys else {}
