"""Makes the reports of a night: once, whoever asks, on whichever replica; again where that is asked for.

The order, so that neither a folder without an entry nor an entry without a folder stays unseen, wherever the process is killed:

1. The lock of the night. What another maker told the log before is awaited, so that its entry is seen, however far its clock is ahead.
2. The folder is filled under its draft's name, and brought to the disk.
3. `report.made`, with the SM3 of the manifest, is committed by the session that holds the lock.
4. The folder takes its name.

Killed before 3 the draft is removed by whoever makes the night next. Killed between 3 and 4, that one finds the entry, and the draft whose
manifest it names, and lets it take its name; the same where nobody knows whether 3 was committed. A folder on the shelf is always told of
in the log.

When down: DatabaseDown, NightBusy, NightUnfinished, ShelfUnwritable, ConfigError; the log is told of a failure before 3 as far as it can be,
and nothing half made stays. From 3 on the night is made, or nobody knows, and no entry says that it failed.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app.audit.intake.intake import Intake
from app.audit.records.report import report_failed, report_made
from app.errors import DependencyDown, SluiceError
from app.reports.evidence.facts import RootFrom
from app.reports.evidence.readiness import check_begun, check_over
from app.reports.making.draft import Draft, drafts_of
from app.reports.making.earlier import end_before
from app.reports.making.folder import Filling, file_line
from app.reports.making.lock import Lock, locked
from app.reports.making.log_root import trust_in
from app.reports.making.materials import Materials
from app.reports.making.owed import owed
from app.reports.making.settled import settled
from app.reports.making.source import Source
from app.reports.manifest import ENTRIES, LOG, MANIFEST, Manifest
from app.reports.nights.night import Night
from app.reports.shelf.made import Made, begun_at, made_of
from app.reports.shelf.shelf import REPORT, Shelf
from app.signing.certificates import Certificate
from app.transaction import Transactions

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What there is of a night now."""

    report: str
    folder: Path
    fresh: bool
    """Whether it was made now, rather than before."""

    @property
    def here(self) -> bool:
        """Whether its folder is on this shelf."""
        return self.folder.is_dir()


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes nights on the shelf `shelf`, with engines of the roles sluice_log (in `source`) and sluice_intake (`writing`)."""

    source: Source
    writing: AsyncEngine
    intake: Intake
    transactions: Transactions
    """Of role sluice_log."""
    materials: Materials
    shelf: Path
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def make(self, night: Night, *, again: bool = False) -> Outcome:
        """The reports of `night`; where they were made before, these, unless they are wanted `again`.

        Raises NightNotOver, NightBeforeLog, NightBusy, NightUnfinished, NotChecked, NotSealed, FontRefused, ShelfUnwritable, DatabaseDown and
        what else reading the log raises.
        """
        check_over(night, self.source.clock.utcnow())
        check_begun(night, await begun_at(self.transactions))
        async with self._lock(night) as lock:
            now = self.source.clock.utcnow()
            made: list[Made] = []
            try:
                await self._settled(max(now, night.closes))
                made = await self._made(night)
                self._finish(night, made)
                if made and not again:
                    return Outcome(made[-1].report, self.shelf / made[-1].report, fresh=False)
                draft = Draft(self.shelf, f"{night.name}-{self._number(night, made)}")
                manifest = await self._drafted(night, now, draft)
            except Exception as error:
                await self._tell(night, self._number(night, made), error)
                raise
            return await self._commit(night, lock, draft, manifest)

    @contextlib.asynccontextmanager
    async def _lock(self, night: Night) -> AsyncIterator[Lock]:
        """The lock of the night. Raises NightBusy and DatabaseDown, which the log is told of."""
        waiting = locked(self.writing, night, lambda: self.source.progress.stage(night, "wait"), self.sleep)
        async with contextlib.AsyncExitStack() as held:
            try:
                lock = await held.enter_async_context(waiting)
            except DependencyDown as down:
                await self._tell(night, self._number(night, []), down)
                raise
            yield lock

    async def _drafted(self, night: Night, at: datetime, draft: Draft) -> Manifest:
        """Fill the draft; nothing of it stays where that fails."""
        draft.begin()
        try:
            return await self._fill(night, at, draft)
        except BaseException:  # a signal that ends the process leaves nothing behind, either
            draft.remove()
            raise

    async def _commit(self, night: Night, lock: Lock, draft: Draft, manifest: Manifest) -> Outcome:
        """Tell the log that the night is made, and let it take its name."""
        period = night.period
        files = [(MANIFEST, file_line(draft.path / MANIFEST).sm3), *((line.name, line.sm3) for line in manifest.files)]
        entry = report_made(
            recorded=self.source.clock.utcnow(),
            operator=self.source.operator,
            report=draft.report,
            period=period,
            zone=night.zone,
            files=files,
            count=manifest.counts["entries"],
        )
        await lock.commit(entry)  # where nobody knows whether it is, the draft stays for who finds out
        return Outcome(draft.report, draft.publish(), fresh=True)

    async def _fill(self, night: Night, at: datetime, draft: Draft) -> Manifest:
        source, materials = self.source, self.materials
        if entries := await owed(source.entries, materials.keys, night, at):
            await self.intake.commit(*entries)
            await self._settled(at)  # so that this night's reports have them
        root, root_from = await self._root()
        joins = await asyncio.to_thread(end_before, night, Shelf(self.shelf), materials.keys.root, root)
        with draft.writing(LOG) as file:
            header = await source.export(night, file, joins)
        integrity = replace(await source.verified(night, draft.path / LOG, root), root_from=root_from, joins=joins)
        with draft.writing(ENTRIES) as file:
            evidence, rows = await source.evidence(night, draft.path / LOG, integrity, materials.declared, file)
        filling = Filling(draft, materials, materials.sealer(), at, source.operator, source.progress)
        return await asyncio.get_running_loop().run_in_executor(source.worker, filling.fill, evidence, header, rows)

    async def _root(self) -> tuple[Certificate, RootFrom]:
        """The root that the log is checked under, and where it comes from."""
        materials = self.materials
        if materials.log_root:
            return materials.log_root, "given"
        root = await self.source.root()
        return root, await asyncio.to_thread(trust_in, root, Shelf(self.shelf), materials.keys.root)

    async def _settled(self, until: datetime) -> None:
        await settled(self.transactions, until, self.sleep)

    async def _made(self, night: Night) -> list[Made]:
        return await self.transactions.run(lambda connection: made_of(connection, night))

    def _finish(self, night: Night, made: list[Made]) -> None:
        """Let what the log says was made take its name where a kill came before that, and remove what else a kill left."""
        entries = {one.report: one for one in made}
        for draft in drafts_of(self.shelf, night):
            one = entries.get(draft.report)
            if one and not draft.place.exists() and _manifest_sm3(draft) == one.files.get(MANIFEST):
                draft.publish()
                log.warning("report.finished", report=draft.report, why="its maker was ended before the folder took its name")
            else:
                draft.remove()

    def _number(self, night: Night, made: list[Made]) -> int:
        """The next one, by the log and by the shelf."""
        taken = [one.report for one in made]
        with contextlib.suppress(OSError):
            taken += [entry.name for entry in self.shelf.iterdir()]
        prefix = f"{night.name}-"
        numbers = [
            int(rest) for name in taken if REPORT.fullmatch(name) and (rest := name.removeprefix(prefix)) != name and rest.isdecimal()
        ]
        return max(numbers, default=0) + 1

    async def _tell(self, night: Night, number: int, error: Exception) -> None:
        """Tell the log that the night could not be made, as far as it can be told."""
        entry = report_failed(
            recorded=self.source.clock.utcnow(),
            operator=self.source.operator,
            report=f"{night.name}-{number}",
            period=night.period,
            zone=night.zone,
            problem=problem_of(error),
        )
        with contextlib.suppress(DependencyDown):
            await self.intake.commit(entry)


def problem_of(error: Exception) -> str:
    """What is said of a failure: our own message, or of any other its type, too."""
    return error.message if isinstance(error, SluiceError) else f"{type(error).__name__}: {error}"


def _manifest_sm3(draft: Draft) -> str | None:
    try:
        return hashlib.new("sm3", (draft.path / MANIFEST).read_bytes()).hexdigest()
    except OSError:
        return None
