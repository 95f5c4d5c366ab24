"""`sluice report breach`: breaches of personal data, and who was told of them in time (GDPR Art. 33 and 34)."""

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
    from app.reports.evidence.facts import Breach
    from app.reports.subjects.breaches import Breaches

app = typer.Typer(help="Breaches of personal data: write down, notify, list.", no_args_is_help=True)


@app.command()
def known(
    *,
    aware: Annotated[str, typer.Option(help="when it became known, RFC 3339")],
    what: Annotated[str, written_option("what happened (GDPR Art. 33(3)), sealed under the key of who writes it down")],
    tenant: Annotated[str | None, typer.Option(help="whose data; none where of several or all")] = None,
    people: Annotated[int | None, typer.Option(help="how many persons, where that is known")] = None,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Write down a breach, and print its id. The authority is to be told within 72 hours after it became known."""
    text = written(what, "--what") or ""

    async def write_down(rooms: Rooms) -> tuple["Breach", bool]:
        said = await _breaches(rooms).known(aware, text, tenant=tenant, people=people, operator=operator())
        return said, said.tenant is None or await rooms.outside.has_tenant(said.tenant)

    said, known_tenant = with_rooms(write_down, var, config, overrides)
    typer.echo(said.id)
    if not known_tenant:
        typer.echo(f"warning: no tenant {said.tenant!r} ever had a quota here; the breach is written down all the same", err=True)
    typer.echo(f"to be notified before {said.due}", err=True)


@app.command()
def notified(
    breach: Annotated[str, typer.Argument(metavar="BREACH", help="id of the breach")],
    *,
    whom: Annotated[Literal["authority", "subjects"], typer.Option(help="who was told")],
    at: Annotated[str | None, typer.Option(help="when, RFC 3339; now by default")] = None,
    reason: Annotated[str | None, written_option("why the authority was told later than after 72 hours, sealed")] = None,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Write down that the authority, or the people concerned, were told."""
    text = written(reason, "--reason")
    said = with_rooms(lambda rooms: _breaches(rooms).notified(breach, whom, at, text, operator=operator()), var, config, overrides)
    typer.echo(f"notified {whom} of {said.id}")


@app.command("list")
def list_(
    *,
    output: Annotated[Literal["table", "json"], typer.Option(help="for people or for programs")] = "table",
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """List breaches with the hours that are left to tell the authority; less than 0 is late. The log has who looked."""
    from app.clock import SystemClock
    from app.reports.subjects.breaches import hours_left

    found = with_rooms(lambda rooms: _breaches(rooms).listed(operator=operator()), var, config, overrides)
    now = SystemClock().utcnow()
    left = [hours_left(breach, now) for breach in found]
    if output == "json":
        rows = [asdict(breach) | {"hours_left": hours} for breach, hours in zip(found, left, strict=True)]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    lines: list[tuple[str, ...]] = [("ID", "TENANT", "KNOWN", "DUE", "HOURS LEFT", "PEOPLE", "AUTHORITY", "SUBJECTS")]
    for breach, hours in zip(found, left, strict=True):
        people = "unknown" if breach.people is None else str(breach.people)
        told = [f"{at[:19]}Z" if (at := breach.notified.get(whom)) else "-" for whom in ("authority", "subjects")]
        times = [f"{at[:19]}Z" for at in (breach.known, breach.due)]
        lines.append((breach.id, breach.tenant or "-", *times, "-" if hours is None else f"{hours:.1f}", people, *told))
    print_table(lines)


def _breaches(rooms: Rooms) -> "Breaches":
    from app.reports.subjects.breaches import Breaches

    return Breaches(rooms.entries, rooms.intake, rooms.people, rooms.clock)
