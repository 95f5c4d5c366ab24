"""`sluice audit run`: the one process that moves the intake into the log, and signs it."""

from pathlib import Path

from app.cli.options import Config, Overrides, Var, settings_of


def run(config: Config = None, var: Var = Path("var"), overrides: Overrides = None) -> None:
    """Sequence what is handed over to the log, keep its tree, and sign a checkpoint each second until SIGTERM or SIGINT.

    serve with an embedded database has one as a child. Several may run against a database of your own: one leads, the others
    stand by. The first start makes the log's keys.
    """
    import asyncio

    from app import core_dumps
    from app.audit.sequencing.process import run_until_stopped
    from app.observability.logs import configure_logs

    core_dumps.forbid()
    settings = settings_of(config, var, overrides)
    configure_logs(settings.log_level, settings.log_format, "audit")
    asyncio.run(run_until_stopped(settings, var))
