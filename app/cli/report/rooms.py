"""What the commands about people and breaches work with: the log to read, the intake to write to, the keys of people."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from app.audit.intake.intake import Intake
    from app.audit.people.people import People
    from app.audit.reading.proven import ProvenEntries
    from app.clock import SystemClock
    from app.reports.subjects.answering import Answering
    from app.reports.subjects.outside import Outside
    from app.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rooms:
    """Each on the connections of its own role."""

    entries: "ProvenEntries"
    answering: "Answering"
    intake: "Intake"
    people: "People"
    outside: "Outside"
    clock: "SystemClock"
    settings: "Settings"


def with_rooms(work: Callable[[Rooms], Awaitable[T]], var: Path, config: Path | None, overrides: list[str] | None) -> T:
    """The result of `work` on the database that the settings name. Raises what it raises, ConfigError, DatabaseDown."""
    import asyncio

    from app.access import secrets_folder, urls_beside_serve
    from app.cli.options import quiet_settings_of
    from app.database import create_engine

    settings = quiet_settings_of(config, var, overrides, "report")
    urls, secrets = urls_beside_serve(settings, var), secrets_folder(settings, var)
    _check_secrets(secrets)

    async def run() -> T:
        engines = [create_engine(url, settings.database) for url in (urls.log, urls.intake, urls.registry)]
        try:
            rooms = _rooms(settings, secrets, *engines)
            await rooms.people.check()
            return await work(rooms)
        finally:
            for engine in engines:
                await engine.dispose()

    return asyncio.run(run())


def warn(warning: str | None, after: str = "") -> None:
    """Say on standard error what speaks against what was typed, with what becomes of it; nothing where nothing does."""
    if warning:
        typer.echo(f"warning: {warning}{after}", err=True)


def _rooms(settings: "Settings", secrets: Path, reading: "AsyncEngine", writing: "AsyncEngine", registry: "AsyncEngine") -> Rooms:
    from app.audit.intake.gaps import Gaps
    from app.audit.intake.intake import Intake
    from app.audit.people.people import People
    from app.audit.reading.proven import ProvenEntries
    from app.clock import SystemClock
    from app.observability.metrics import Metrics
    from app.reports.subjects.answering import Answering
    from app.reports.subjects.outside import Outside

    clock, metrics, timeout_ms = SystemClock(), Metrics(), settings.database.timeout_ms
    return Rooms(
        entries=ProvenEntries(reading, clock, metrics, timeout_ms=timeout_ms),
        answering=Answering(reading, timeout_ms=timeout_ms),
        intake=Intake(writing, metrics, Gaps(clock), timeout_ms=timeout_ms),
        people=People(registry, secrets, clock, metrics, timeout_ms=timeout_ms),
        outside=Outside(registry, metrics, timeout_ms=timeout_ms),
        clock=clock,
        settings=settings,
    )


def _check_secrets(secrets: Path) -> None:
    """Raise ConfigError where the secrets of serve are not there: new ones would find nobody, and the answer would be that nothing is held."""
    from app.audit.people import pseudonyms, subject_keys
    from app.errors import ConfigError

    for name in (pseudonyms.MASTER_FILE, subject_keys.MASTER_FILE):
        if not (secrets / name).is_file():
            raise ConfigError(
                f"{secrets / name}: missing, so nobody is found in the log",
                hint="Name serve's folder with --var DIR or secrets.path; its first start makes the file.",
            )
