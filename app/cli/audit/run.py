"""`sluice audit run`: the one process that moves the intake into the log, and signs it."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import Overrides


def run(
    config: Annotated[Path | None, typer.Option(help="settings file; without it sluice.yaml in --var, where there is one")] = None,
    var: Annotated[Path, typer.Option(help="folder of the serve whose embedded database this is, and of the log's keys")] = Path("var"),
    overrides: Overrides = None,
) -> None:
    """Sequence what is handed over to the log, keep its tree, and sign a checkpoint each second until SIGTERM or SIGINT.

    serve with an embedded database has one as a child. Several may run against a database of your own: one leads, the others
    stand by. The first start makes the log's keys.
    """
    import asyncio

    from app import core_dumps
    from app.audit.sequencing.process import run_until_stopped
    from app.observability.logs import configure_logs
    from app.settings import load_settings, settings_file

    core_dumps.forbid()
    settings = load_settings(settings_file(config, var), tuple(overrides or ()))
    configure_logs(settings.log_level, settings.log_format, "audit")
    asyncio.run(run_until_stopped(settings, var))
