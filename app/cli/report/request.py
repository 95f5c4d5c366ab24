"""`sluice report request`: what people ask for about themselves, until it is answered (GDPR Art. 12 to 22)."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from app.cli.operator import operator
from app.cli.options import Config, Overrides, Var, print_table, tenths
from app.cli.report.rooms import Rooms, warn, with_rooms
from app.cli.report.written import written, written_option

if TYPE_CHECKING:
    from datetime import datetime

    from app.reports.evidence.facts import SubjectRequest
    from app.reports.subjects.requests import Requests

app = typer.Typer(help="What people ask for about themselves: open, answer, refuse, list.", no_args_is_help=True)

HEADINGS = ("ID", "ARTICLE", "TENANT", "PERSON", "ASKED", "DUE", "DAYS LEFT", "DAYS LATE", "STATUS", "GROUND")

Tenant = Annotated[str | None, typer.Option(help="whose subject asks; without --id the tenant itself")]
Id = Annotated[str | None, typer.Option("--id", help="id of the subject, exactly as the gateway sends it")]
OperatorName = Annotated[str | None, typer.Option("--operator", help="somebody who operates, by the name in the log")]
Which = Annotated[str, typer.Argument(metavar="REQUEST", help="id of the request")]
Note = Annotated[str | None, written_option("more in words, sealed under the person's key")]


@app.command("open")
def open_(
    *,
    article: Annotated[int, typer.Option(help="of the GDPR: 15, 16, 17, 18, 20 or 21")],
    tenant: Tenant = None,
    id_: Id = None,
    operator_name: OperatorName = None,
    received: Annotated[str | None, typer.Option(help="when it came in, RFC 3339; now by default")] = None,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Write down that somebody asked, and print the id of the request. The answer is due within one month."""
    from app.reports.subjects.due import by_clocks
    from app.reports.subjects.person import Person
    from app.reports.subjects.strangers import stranger

    person = Person.of(tenant, id_, operator_name)

    async def write_down(rooms: Rooms) -> tuple["SubjectRequest", str | None, str]:
        warning = await stranger(person, rooms.people, rooms.outside)
        opened = await _requests(rooms).open(person, article, received, operator=operator())
        return opened, warning, by_clocks(opened.due, rooms.settings.report.zone)

    opened, warning, due = with_rooms(write_down, var, config, overrides)
    typer.echo(opened.id)
    warn(warning, "; the request is written down all the same")
    typer.echo(f"due before {due}", err=True)


@app.command()
def answer(request: Which, *, note: Note = None, var: Var = Path("var"), config: Config = None, overrides: Overrides = None) -> None:
    """Write down that a request was answered outside of Sluice. `sluice report subject --request` answers one by itself."""
    text = written(note, "--note")
    closed = with_rooms(lambda rooms: _requests(rooms).answer(request, text, operator=operator()), var, config, overrides)
    typer.echo(f"answered {closed.id} ({closed.article})")


@app.command()
def refuse(
    request: Which,
    *,
    ground: Annotated[str, typer.Option(help="the article it is refused on, such as 'Art. 12(5)'")],
    note: Note = None,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Write down that a request was refused, and on what ground."""
    text = written(note, "--note")
    closed = with_rooms(lambda rooms: _requests(rooms).refuse(request, ground, text, operator=operator()), var, config, overrides)
    typer.echo(f"refused {closed.id} ({closed.article})")


@app.command("list")
def list_(
    *,
    only_open: Annotated[bool, typer.Option("--open", help="only those that wait for an answer")] = False,
    tenant: Tenant = None,
    id_: Id = None,
    operator_name: OperatorName = None,
    output: Annotated[Literal["table", "json"], typer.Option(help="for people or for programs")] = "table",
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """List requests, the oldest first: all, or those of one person. People stand in it by the beginnings of their pseudonyms.

    Times are those of report.zone; JSON has them in UTC, and pseudonyms whole. The log has who looked, and for whom.
    """
    from app.reports.subjects.person import Person
    from app.reports.subjects.requests import days_late, days_left
    from app.reports.subjects.strangers import stranger

    anybody = tenant is None and id_ is None and operator_name is None
    person = None if anybody else Person.of(tenant, id_, operator_name)

    async def look(rooms: Rooms) -> tuple[list["SubjectRequest"], "datetime", str]:
        found = await _requests(rooms).listed(operator=operator(), only_open=only_open, person=person)
        if person is not None and not found:
            warn(await stranger(person, rooms.people, rooms.outside))
        return found, rooms.clock.utcnow(), rooms.settings.report.zone

    found, now, zone = with_rooms(look, var, config, overrides)
    if output == "json":
        rows = [asdict(request) | {"days_left": days_left(request, now), "days_late": days_late(request, now)} for request in found]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    print_table([HEADINGS, *(_row(request, (days_left(request, now), days_late(request, now)), zone) for request in found)])


def _requests(rooms: Rooms) -> "Requests":
    from app.reports.subjects.requests import Requests

    return Requests(rooms.entries, rooms.intake, rooms.people, rooms.clock, answering=rooms.answering, zone=rooms.settings.report.zone)


def _row(request: "SubjectRequest", days: tuple[float | None, ...], zone: str) -> tuple[str, ...]:
    """One line of the table; of the pseudonym as much as the nightly reports have."""
    from app.reports.content.parts import PSEUDONYM_SHOWN
    from app.reports.subjects.due import by_clocks

    whose = (request.article, request.tenant or "-", request.subject[:PSEUDONYM_SHOWN])
    times = [by_clocks(at, zone) for at in (request.asked, request.due)]
    return (request.id, *whose, *times, *map(tenths, days), request.status, request.ground or "-")
