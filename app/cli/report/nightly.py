"""`sluice report nightly`: make the reports of a day, or of all days that have none."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.operator import operator
from app.cli.options import Config, Overrides, Var, quiet_settings_of
from app.cli.report import ending

if TYPE_CHECKING:
    from app.reports.making.maker import Maker, Outcome
    from app.reports.making.progress import Progress
    from app.reports.nights.missed import Missing
    from app.reports.nights.night import Night
    from app.settings import Settings

STAGES = {
    "wait": "another process makes it, waiting",
    "export": "taking its entries out of the log",
    "verify": "checking them",
    "gather": "counting",
    "write": "writing the reports",
    "sign": "signing",
}


def nightly(
    *,
    day: Annotated[str | None, typer.Option("--date", help="the day, YYYY-MM-DD; without it yesterday, and missed days before")] = None,
    zone: Annotated[str | None, typer.Option(help="time zone whose day it is; without it report.zone of the settings")] = None,
    until: Annotated[str | None, typer.Option(help="without --date: no day after this one, YYYY-MM-DD")] = None,
    again: Annotated[bool, typer.Option("--again", help="make the reports of --date again, beside those that were made")] = False,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Make the reports of a day that is over: once, whoever asks, on whichever replica. The log records it.

    Without --date, those of all days that have none, from the first entry of the log on, at most 31 in one go. The first night of a log
    makes the report keys; where they are missing later, nothing is made.
    """
    import asyncio

    from app import core_dumps
    from app.clock import SystemClock
    from app.errors import BadRequest
    from app.reports.evidence.readiness import check_over
    from app.reports.nights.night import Night, zone_of

    if again and day is None:
        raise BadRequest("--again: needs --date, the day whose reports are made again", field="again")
    if until and day:
        raise BadRequest("--until: is the last of the missed days, and --date names one day", field="until")
    core_dumps.forbid()
    var = var.absolute()
    ending.clean_up_on_sigterm()
    settings = quiet_settings_of(config, var, overrides, "report")
    zone = zone or settings.report.zone
    zone_of(zone, "--zone")
    night, last = Night.of(day, zone) if day else None, Night.of(until, zone, option="--until") if until else None
    if night:
        check_over(night, SystemClock().utcnow())  # before any key is opened

    async def run() -> None:
        async with _maker(settings, var, progress) as maker:
            if night is not None:
                _tell(await maker.make(night, again=again), night)
            else:
                await make_missing(maker, zone, last)

    with _shown() as progress:
        asyncio.run(run())


async def make_missing(maker: "Maker", zone: str, last: "Night | None" = None) -> None:
    """Make what is missing, nothing after `last`. A night that fails, however, keeps no other from being made: the first failure is raised at the end.

    Raises NightBeforeLog where `last` is.
    """
    from app.reports.evidence.readiness import check_begun
    from app.reports.making.maker import problem_of
    from app.reports.shelf.made import begun_at, not_made

    if last:
        check_begun(last, await begun_at(maker.transactions), "--until")
    missing = await not_made(maker.transactions, maker.source.clock.utcnow(), zone, last)
    if missing.more:
        typer.echo(f"{missing.more} nights before {missing.nights[0].day} are left out; run it again for them", err=True)
    if not missing.nights:
        typer.echo(f"nothing to make: {why_none(missing, zone, last)}")
        await _tell_gone(maker)
    failures: list[Exception] = []
    for night in missing.nights:
        try:
            _tell(await maker.make(night), night)
        except Exception as failure:  # noqa: BLE001 - what one night's entries do to us must not stop the others for ever
            failures.append(failure)
            typer.echo(f"{night.day}: not made: {problem_of(failure)}", err=True)
    if failures:
        raise failures[0]


def why_none(missing: "Missing", zone: str, last: "Night | None") -> str:
    """Why there is nothing to make up to `last`: what was looked at, and no word on what was not."""
    if missing.since is None:
        return "the log is empty"
    since = missing.since.day
    if missing.to:
        return f"the log says that each night of {zone} from {since} to {missing.to.day} was made"
    if last and last.day < since:
        return f"nights before {since} are more than a year ago, and made with --date alone"
    return f"no day of {zone} from {since} on, where the log begins, is over"


async def _tell_gone(maker: "Maker") -> None:
    from app.reports.shelf.compared import MISSING, all_of, contradiction
    from app.reports.shelf.made import manifests_of
    from app.reports.shelf.shelf import Shelf

    made = await manifests_of(maker.transactions, maker.source.clock.utcnow())
    if gone := sum(contradiction(maker.shelf / report, made) == MISSING for report in all_of(Shelf(maker.shelf), made)):
        typer.echo(f"{gone} of what was made in the last year is not in {maker.shelf}: `sluice report list` names it", err=True)


def _tell(outcome: "Outcome", night: "Night") -> None:
    if outcome.fresh:
        typer.echo(f"{outcome.folder}: made")
    elif outcome.here:
        typer.echo(f"{outcome.folder}: made before; --date {night.day} --again makes it again beside it")
    else:
        typer.echo(
            f"{outcome.report}: made before, says the log; it is not in {outcome.folder.parent}. --date {night.day} --again makes it again"
        )


@contextlib.asynccontextmanager
async def _maker(settings: "Settings", var: Path, progress: "Progress") -> "AsyncIterator[Maker]":
    """Everything that nights are made with. Raises ConfigError, DatabaseDown."""
    from app.access import urls_beside_serve
    from app.audit.intake.gaps import Gaps
    from app.audit.intake.intake import Intake
    from app.audit.reading.log import Log
    from app.clock import SystemClock
    from app.database import create_engine
    from app.observability.metrics import Metrics
    from app.reports.making.maker import Maker
    from app.reports.making.materials import load_materials
    from app.reports.making.source import Source
    from app.reports.shelf.shelf import shelf_folder
    from app.transaction import Transactions
    from app.worker import Worker

    urls = urls_beside_serve(settings, var)
    clock, metrics, timeout_ms = SystemClock(), Metrics(), settings.database.timeout_ms
    reading, writing = (create_engine(url, settings.database) for url in (urls.log, urls.intake))
    transactions = Transactions(reading, metrics, call="reports", timeout_ms=timeout_ms)
    intake = Intake(writing, metrics, Gaps(clock), timeout_ms=timeout_ms)
    log = Log(reading, intake, clock, metrics, timeout_ms=timeout_ms)
    try:
        materials = await load_materials(settings, var, clock, transactions, writing)
        yield Maker(
            source=Source(log, reading, clock, operator(), progress, Worker("report")),
            writing=writing,
            intake=intake,
            transactions=transactions,
            materials=materials,
            shelf=shelf_folder(settings.report.path, var),
        )
    finally:
        await reading.dispose()
        await writing.dispose()


@contextlib.contextmanager
def _shown() -> "Iterator[Progress]":
    """The stages and a bar on a terminal; nothing where standard error is none."""
    import sys

    from app.reports.making.progress import Unwatched

    if not sys.stderr.isatty():
        yield Unwatched()
        return
    bars = _Bars(sys.stderr)
    try:
        yield bars
    finally:
        bars.end()


class _Bars:
    """One line for each stage, with a bar where entries are counted."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal
        self._bar: Any = None
        self._label, self._done = "", 0

    def stage(self, night: "Night", name: str) -> None:
        """End the line of the stage before, and begin that of the next."""
        self.end()
        self._label = f"{night.day} {STAGES.get(name, name)}"
        typer.echo(self._label, file=self._terminal)

    def entries(self, done: int, total: int) -> None:
        """Move the bar."""
        if self._bar is None:
            self._bar, self._done = typer.progressbar(length=total, label="entries", file=self._terminal).__enter__(), 0
        self._bar.update(max(0, done - self._done))
        self._done = done

    def end(self) -> None:
        """End the bar, where there is one."""
        if self._bar is not None:
            self._bar.render_finish()
            self._bar = None
