"""`sluice serve`: one replica with everything it needs, from nothing but this checkout."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import Overrides


def serve(
    *,
    config: Annotated[Path | None, typer.Option(help="settings file; without it the examples are laid down in --var and used")] = None,
    var: Annotated[Path, typer.Option(help="folder of everything that is written: data, secrets, sockets")] = Path("var"),
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="port of the HTTP API, over the one in the settings")] = None,
    overrides: Overrides = None,
) -> None:
    """Serve decisions until SIGTERM or Ctrl-C."""
    import asyncio

    import uvloop

    from app.examples import lay_down_settings
    from app.folders import working_folder
    from app.observability.logs import configure_logs
    from app.serving import serve_until_stopped
    from app.telemetry.configuration import load

    folder = working_folder(var).absolute()
    file = config or lay_down_settings(var)
    configuration = load(file, tuple(overrides or ()))
    settings = configuration.settings
    if port is not None:
        settings = settings.model_copy(update={"listen": f"{settings.listen.rpartition(':')[0]}:{port}"})
    configure_logs(settings.log_level, settings.log_format)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve_until_stopped(settings, file, folder, configuration.overrides))
