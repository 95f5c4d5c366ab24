"""What a night's reports are made of: the export of its range of the log, checked and gathered.

When down: DatabaseDown, SequencerSilent, NoCheckpoint; no reports are made. A log that does not verify is no reason to make none: the
reports say so.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.audit.format.export_file import Header, lines
from app.audit.reading.checkpoints import NoCheckpoint, certificates
from app.audit.reading.export import Wanted
from app.audit.reading.log import Log
from app.audit.reading.proven import ProvenEntries
from app.clock import Clock
from app.instants import Period
from app.observability.metrics import Metrics
from app.reports.content.csv_files import EntriesCsv
from app.reports.evidence.context import Context, context_of
from app.reports.evidence.facts import Closing, Declared, Evidence, Integrity
from app.reports.evidence.gather import gather
from app.reports.evidence.integrity import closing_of, integrity_of
from app.reports.making.progress import Progress
from app.reports.nights.night import LATE, Night
from app.signing.certificates import Certificate
from app.transaction import Transactions
from app.worker import Worker

TIMEOUT_MS = 10_000
CONTEXT_MS = 300_000
"""For all that is looked up in a large log: some seconds."""
TOLD_EVERY = 1000


@dataclass(frozen=True, slots=True)
class Source:
    """The log as the makers of reports read it: with an engine of role sluice_log, each export an entry by `operator`."""

    log: Log
    reading: AsyncEngine
    clock: Clock
    operator: str
    progress: Progress
    worker: Worker
    """For what blocks: a signal that ends the process does not wait for it."""

    async def export(self, night: Night, out: BinaryIO, joins: int | None) -> Header:
        """Write all that was recorded from the night's begin until it closed, and from entry `joins` on, proven by a fresh checkpoint.

        Raises NoCheckpoint, SequencerSilent, ExportsBusy, AuditUnavailable, DatabaseDown.
        """
        self.progress.stage(night, "export")
        await self.log.checkpoint(renewed=True)
        period = Period(night.begin, night.end + LATE)
        exported = await self.log.export(Wanted(period, or_nothing=True, joins=joins), operator=self.operator)
        header = exported.header
        async with contextlib.aclosing(exported.lines) as pieces:
            async for piece in pieces:
                out.write(piece.lines)
                self.progress.entries(piece.entries, header.end - header.first)
        return header

    async def verified(self, night: Night, export: Path, root: Certificate) -> Integrity:
        """What the verifier says of the export. Raises NotChecked."""
        self.progress.stage(night, "verify")
        return await asyncio.get_running_loop().run_in_executor(self.worker, integrity_of, export, root, self.clock)

    async def evidence(self, night: Night, export: Path, integrity: Integrity, declared: Declared, csv: BinaryIO) -> tuple[Evidence, int]:
        """What the export says of the night, and the number of rows: each of its entries is written to `csv` while it passes."""
        self.progress.stage(night, "gather")
        context = await self._context(night, closing_of(integrity))
        table, total = EntriesCsv(csv), integrity.report.end - integrity.report.first

        def gathered() -> Evidence:
            with export.open("rb") as stream:
                return gather(self._told(lines(stream), total), night, integrity, context, declared=declared, each=table.entry)

        evidence = await asyncio.get_running_loop().run_in_executor(self.worker, gathered)
        return evidence, table.rows

    @property
    def entries(self) -> ProvenEntries:
        """Entries anywhere in the log, each proven."""
        return ProvenEntries(self.reading, self.clock, Metrics(), timeout_ms=TIMEOUT_MS)

    async def root(self) -> Certificate:
        """The root certificate that the log itself keeps: for who has no other. Raises NoCheckpoint before any is signed, CertificateRefused, DatabaseDown."""
        ders = await self._transactions("root").run(certificates)
        if not ders:
            raise NoCheckpoint("nothing of the log is signed yet", field="root")
        return Certificate.load(ders[0])

    def _told(self, passing: Iterator[bytes], total: int) -> Iterator[bytes]:
        for number, line in enumerate(passing):
            if number % TOLD_EVERY == 0:
                self.progress.entries(min(number, total), total)
            yield line

    async def _context(self, night: Night, closing: Closing | None) -> Context:
        async def look(connection: AsyncConnection) -> Context:
            return await context_of(connection, night, closing)

        return await self._transactions("report context", CONTEXT_MS).run(look)

    def _transactions(self, call: str, timeout_ms: int = TIMEOUT_MS) -> Transactions:
        return Transactions(self.reading, Metrics(), call=call, timeout_ms=timeout_ms, logs=False)
