"""`sluice report list`: the finished nights, and whether they are as they were signed."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from app.cli.options import Config, Overrides, Var, print_table, quiet_settings_of


def list_(
    *,
    most: Annotated[int, typer.Option(min=1, help="nights, the newest")] = 31,
    output: Annotated[Literal["table", "json"], typer.Option(help="for people or for programs")] = "table",
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """List the nights on the shelf, the newest first; each is checked under the root certificate of the report keys here."""
    from app.reports.checking.shelved import checked_under
    from app.reports.shelf.shelf import REPORT_KEYS, Shelf, shelf_folder
    from app.signing.key_files import root_file

    settings = quiet_settings_of(config, var, overrides, "report")
    shelf = Shelf(shelf_folder(settings.report.path, var))
    checked = checked_under(root_file(Path(settings.report.keys or var / REPORT_KEYS)))
    rows = []
    for report in shelf.reports()[:most]:
        state = checked(shelf.path / report)
        rows.append({"report": report, "verdict": state.verdict, "why": state.why, **_facts(shelf, report)})
    if output == "json":
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    lines = [("REPORT", "STATE", "MADE", "ENTRIES", "DECISIONS", "WHY")]
    print_table([*lines, *((row["report"], row["verdict"], *(_shown(row[name]) for name in FACTS), row["why"]) for row in rows)])


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
