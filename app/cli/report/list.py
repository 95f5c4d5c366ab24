"""`sluice report list`: the finished nights, whether they are as they were signed, and what the log has against them.

When down: without the log the shelf is listed as it is, and standard error says so.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from app.cli.options import Config, Overrides, Var, print_table, quiet_settings_of

if TYPE_CHECKING:
    from app.reports.shelf.compared import Made
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

    Those that the log says were made, and that are not on the shelf or are others, are told where the log can be asked.
    """
    from app.reports.checking.shelved import checked_under
    from app.reports.shelf.compared import all_of, contradiction
    from app.reports.shelf.shelf import REPORT_KEYS, Shelf, shelf_folder
    from app.signing.key_files import root_file

    settings = quiet_settings_of(config, var, overrides, "report")
    shelf = Shelf(shelf_folder(settings.report.path, var))
    checked = checked_under(root_file(Path(settings.report.keys or var / REPORT_KEYS)))
    made = _made(settings, var)
    rows = []
    for report in all_of(shelf, made)[:most]:
        state = contradiction(shelf.path / report, made) or checked(shelf.path / report)
        rows.append({"report": report, "verdict": state.verdict, "why": state.why, **_facts(shelf, report)})
    if output == "json":
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    lines = [("REPORT", "STATE", "MADE", "ENTRIES", "DECISIONS", "WHY")]
    print_table([*lines, *((row["report"], row["verdict"], *(_shown(row[name]) for name in FACTS), row["why"]) for row in rows)])


def _made(settings: "Settings", var: Path) -> "Made":
    """What the log says was made; nothing where it cannot be asked, which standard error is told."""
    import asyncio

    from app.access import urls_beside_serve
    from app.clock import SystemClock
    from app.database import create_engine
    from app.errors import ConfigError, DependencyDown
    from app.observability.metrics import Metrics
    from app.reports.shelf.made import manifests_of
    from app.transaction import Transactions

    async def look(url: str) -> "Made":
        engine = create_engine(url, settings.database)
        transactions = Transactions(engine, Metrics(), call="reports", timeout_ms=settings.database.timeout_ms, logs=False)
        try:
            return await manifests_of(transactions, SystemClock().utcnow())
        finally:
            await engine.dispose()

    try:
        return asyncio.run(look(urls_beside_serve(settings, var).log))
    except (ConfigError, DependencyDown) as error:
        typer.echo(f"not compared with the log, so a night that is gone is not told: {error.message}", err=True)
        return {}


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
