"""`sluice report list`: the finished nights, whether they are as they were signed, and what the log has against them.

When down: without the log the shelf is listed as it is, standard error says so, and the exit status is no success.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from app.cli.options import Config, Overrides, Var, print_table, quiet_settings_of

if TYPE_CHECKING:
    from app.reports.shelf.compared import Manifests
    from app.settings import Settings


def list_(
    *,
    most: Annotated[int, typer.Option(min=1, help="nights, the newest")] = 31,
    output: Annotated[Literal["table", "json"], typer.Option(help="for people or for programs")] = "table",
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """List the nights on the shelf, the newest first; each is checked under the root certificate of the report keys here.

    Those that the log says were made, and that are not on the shelf or are others, are told where the log can be asked. Exits with 4 where
    a night that is listed is tampered or missing, else with 6 where one could not be checked, or the log could not be asked.
    """
    from app.cli.shelved_nights import states_of
    from app.reports.checking.result import gravest
    from app.reports.shelf.shelf import Shelf, shelf_folder

    settings = quiet_settings_of(config, var, overrides, "report")
    shelf = Shelf(shelf_folder(settings.report.path, var))
    made = _made(settings, var)
    states = states_of(settings, var, made or {}, most=most, whole=most)
    rows = [{"report": report, "verdict": state.verdict, "why": state.why, **_facts(shelf, report)} for report, state in states.items()]
    if output == "json":
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        lines = [("REPORT", "STATE", "MADE", "ENTRIES", "DECISIONS", "WHY")]
        print_table([*lines, *((row["report"], row["verdict"], *(_shown(row[name]) for name in FACTS), row["why"]) for row in rows)])
    raise typer.Exit(gravest(["unchecked" if made is None else "valid", *(state.verdict for state in states.values())]))


def _made(settings: "Settings", var: Path) -> "Manifests | None":
    """What the log says was made; None where it cannot be asked, which standard error is told."""
    from app.cli.shelved_nights import ask_log
    from app.errors import ConfigError, DependencyDown

    try:
        return ask_log(settings, var).made
    except (ConfigError, DependencyDown) as error:
        typer.echo(f"not compared with the log, so a night that is gone is not told: {error.message}", err=True)
        return None


FACTS = ("made", "entries", "decisions")


def _facts(shelf: Any, report: str) -> dict[str, Any]:
    """What the manifest says; unknown where it cannot be read."""
    from app.errors import SluiceError

    try:
        manifest = shelf.manifest(report)
    except SluiceError:
        return dict.fromkeys(FACTS)
    return {"made": manifest.made, **{name: manifest.counts.get(name) for name in FACTS[1:]}}


def _shown(fact: Any) -> str:
    return "unknown" if fact is None else str(fact)
