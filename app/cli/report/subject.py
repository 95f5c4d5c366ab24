"""`sluice report subject`: all that the log holds about one person (GDPR Art. 15 and 20, PIPL Art. 45)."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.operator import operator
from app.cli.options import Config, Overrides, Var, counted
from app.cli.report import ending
from app.cli.report.rooms import Rooms, warn, with_rooms

if TYPE_CHECKING:
    from app.reports.subjects.reports import Given, SubjectReports


def subject(
    *,
    out: Annotated[str, typer.Option(metavar="DIR", help="where the files go, each 0600; nothing there is overwritten")],
    tenant: Annotated[str | None, typer.Option(help="whose subject it is; without --id the tenant itself")] = None,
    id_: Annotated[str | None, typer.Option("--id", help="id of the subject, exactly as the gateway sends it")] = None,
    operator_name: Annotated[str | None, typer.Option("--operator", help="somebody who operates, by the name in the log")] = None,
    request: Annotated[str | None, typer.Option(help="id of the request that it answers: `sluice report request open` made it")] = None,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Write what the log holds about one person: a PDF, and JSON and CSV with every entry. Nobody else can be seen in it.

    Each entry is proven under a fresh checkpoint. Where there are report keys all is signed. That it was given is itself in the log first.
    """
    from app import core_dumps
    from app.reports.subjects.person import Person
    from app.reports.subjects.strangers import no_tenant, nothing_held

    core_dumps.forbid()
    ending.clean_up_on_sigterm()
    person = Person.of(tenant, id_, operator_name)

    async def give(rooms: Rooms) -> tuple["Given", str, str | None]:
        unknown = await no_tenant(person.tenant, rooms.outside)
        given = await _reports(rooms, var).give(person, Path(out), operator=operator(), request_id=request)
        for file in given.files:
            typer.echo(str(file))
        return given, await _entry(rooms, given), unknown or nothing_held(person, given.met)

    given, entry, warning = with_rooms(give, var, config, overrides)
    warn(warning)
    typer.echo(f"{counted(given.count, 'entry', 'entries')}; the log has the report as {entry}", err=True)


async def _entry(rooms: Rooms, given: "Given") -> str:
    """The entry of the report, by its number where the log has come so far: the report is given, whoever is down by now."""
    from app.errors import DependencyDown

    try:
        number = await rooms.entries.number(given.id)
    except DependencyDown:
        number = None
    return f"entry {given.id}, not numbered yet" if number is None else f"entry {number}"


def _reports(rooms: Rooms, var: Path) -> "SubjectReports":
    from app.reports.layout.font import Font, font_file
    from app.reports.subjects.answer import Responsible
    from app.reports.subjects.binding import Binder, laid_out
    from app.reports.subjects.reports import SubjectReports
    from app.reports.subjects.requests import Requests
    from app.reports.subjects.signing import signing_of

    settings = rooms.settings
    font = Font(font_file(settings.font))
    requests = Requests(rooms.entries, rooms.intake, rooms.people, rooms.clock, answering=rooms.answering, zone=settings.report.zone)
    return SubjectReports(
        rooms.entries,
        rooms.intake,
        rooms.people,
        requests=requests,
        outside=rooms.outside,
        clock=rooms.clock,
        binder=Binder(lambda document: laid_out(document, font), signing_of(settings, var, rooms.clock.utcnow())),
        by=Responsible(settings.report.organization, settings.report.system),
    )
