"""`sluice telemetry`: the process that polls the engines, for one serve or shared by several."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import Overrides

app = typer.Typer(help="Poll the engines and answer snapshots.")


@app.callback(invoke_without_command=True)
def telemetry(
    config: Annotated[Path, typer.Option(help="settings file with engines and models")],
    listen: Annotated[str, typer.Option(help="unix:/path or HOST:PORT")] = "127.0.0.1:8081",
    overrides: Overrides = None,
) -> None:
    """Poll every engine of the configuration file. `telemetry.token`, where set, is what readers must send."""
    from app.clock import SystemClock
    from app.observability.logs import configure_logs
    from app.observability.metrics import Metrics
    from app.telemetry.configuration import load, token_of
    from app.telemetry.server import run

    configuration = load(config, tuple(overrides or ()))
    settings = configuration.settings
    configure_logs(settings.log_level, settings.log_format, "telemetry")
    run(config, configuration, listen, clock=SystemClock(), metrics=Metrics(), token=token_of(settings))
