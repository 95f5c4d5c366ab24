"""`sluice report request`: what people ask for about themselves, until it is answered (GDPR Art. 12 to 22)."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from app.cli.operator import operator
from app.cli.options import Config, Overrides, Var, print_table
from app.cli.report.rooms import Rooms, with_rooms
from app.cli.report.written import written, written_option

if TYPE_CHECKING:
    from app.reports.evidence.facts import SubjectRequest
    from app.reports.subjects.requests import Requests

app = typer.Typer(help="What people ask for about themselves: open, answer, refuse, list.", no_args_is_help=True)

Which = Annotated[str, typer.Argument(metavar="REQUEST", help="id of the request")]
Note = Annotated[str | None, written_option("more in words, sealed under the person's key")]


@app.command("open")
def open_(
    *,
    article: Annotated[int, typer.Option(help="of the GDPR: 15, 16, 17, 18, 20 or 21")],
    tenant: Annotated[str | None, typer.Option(help="whose subject asks; without --id the tenant itself")] = None,
    id_: Annotated[str | None, typer.Option("--id", help="id of the subject")] = None,
    operator_name: Annotated[str | None, typer.Option("--operator", help="somebody who operates, by the name in the log")] = None,
    received: Annotated[str | None, typer.Option(help="when it came in, RFC 3339; now by default")] = None,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Write down that somebody asked, and print the id of the request. The answer is due within one month."""
    from app.reports.subjects.person import Person

    person = Person.of(tenant, id_, operator_name)
    opened = with_rooms(lambda rooms: _requests(rooms).open(person, article, received, operator=operator()), var, config, overrides)
    typer.echo(opened.id)
    typer.echo(f"due before {opened.due}", err=True)


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
    output: Annotated[Literal["table", "json"], typer.Option(help="for people or for programs")] = "table",
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """List requests, the oldest first. People stand in it as pseudonyms; the log has who looked."""
    from app.clock import SystemClock
    from app.reports.subjects.requests import days_left

    found = with_rooms(lambda rooms: _requests(rooms).listed(operator=operator(), only_open=only_open), var, config, overrides)
    if output == "json":
        typer.echo(json.dumps([asdict(request) for request in found], ensure_ascii=False, indent=2))
        return
    now = SystemClock().utcnow()
    rows = [_row(request, f"{days_left(request, now):.1f}" if request.status == "open" else "-") for request in found]
    print_table([("ID", "ARTICLE", "TENANT", "ASKED", "DUE", "DAYS LEFT", "STATUS", "GROUND"), *rows])


def _requests(rooms: Rooms) -> "Requests":
    from app.reports.subjects.requests import Requests

    return Requests(rooms.entries, rooms.intake, rooms.people, rooms.clock, answering=rooms.answering, zone=rooms.settings.report.zone)


def _row(request: "SubjectRequest", left: str) -> tuple[str, ...]:
    """One line of the table; times to the second."""
    asked, due = (f"{at[:19]}Z" for at in (request.asked, request.due))
    return (request.id, request.article, request.tenant or "-", asked, due, left, request.status, request.ground or "-")
