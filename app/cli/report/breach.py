"""`sluice report breach`: breaches of personal data, and who was told of them in time (GDPR Art. 33 and 34)."""

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

    from app.reports.evidence.facts import Breach
    from app.reports.subjects.breaches import Breaches

app = typer.Typer(help="Breaches of personal data: write down, notify, list.", no_args_is_help=True)

HEADINGS = ("ID", "TENANT", "KNOWN", "DUE", "HOURS LEFT", "HOURS LATE", "PEOPLE", "AUTHORITY", "SUBJECTS")


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
    from app.reports.subjects.due import by_clocks
    from app.reports.subjects.strangers import no_tenant

    text = written(what, "--what") or ""

    async def write_down(rooms: Rooms) -> tuple["Breach", str | None, str]:
        warning = await no_tenant(tenant, rooms.outside)
        said = await _breaches(rooms).known(aware, text, tenant=tenant, people=people, operator=operator())
        return said, warning, by_clocks(said.due, rooms.settings.report.zone)

    said, warning, due = with_rooms(write_down, var, config, overrides)
    typer.echo(said.id)
    warn(warning, "; the breach is written down all the same")
    typer.echo(f"to be notified before {due}", err=True)


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
    """List breaches, with the hours that are left to tell the authority, less than 0 where it is late, and by how many it was told late.

    Times are those of report.zone; JSON has them in UTC. The log has who looked.
    """
    from app.reports.subjects.breaches import hours_late, hours_left

    async def look(rooms: Rooms) -> tuple[list["Breach"], "datetime", str]:
        return await _breaches(rooms).listed(operator=operator()), rooms.clock.utcnow(), rooms.settings.report.zone

    found, now, zone = with_rooms(look, var, config, overrides)
    if output == "json":
        rows = [asdict(breach) | {"hours_left": hours_left(breach, now), "hours_late": hours_late(breach, now)} for breach in found]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    print_table([HEADINGS, *(_row(breach, (hours_left(breach, now), hours_late(breach, now)), zone) for breach in found)])


def _row(breach: "Breach", hours: tuple[float | None, ...], zone: str) -> tuple[str, ...]:
    """One line of the table."""
    from app.reports.subjects.due import by_clocks

    people = "unknown" if breach.people is None else str(breach.people)
    told = [by_clocks(at, zone) if (at := breach.notified.get(whom)) else "-" for whom in ("authority", "subjects")]
    times = [by_clocks(at, zone) for at in (breach.known, breach.due)]
    return (breach.id, breach.tenant or "-", *times, *map(tenths, hours), people, *told)


def _breaches(rooms: Rooms) -> "Breaches":
    from app.reports.subjects.breaches import Breaches

    return Breaches(rooms.entries, rooms.intake, rooms.people, rooms.clock)
