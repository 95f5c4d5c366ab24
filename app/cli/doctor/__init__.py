"""`sluice doctor`: what is missing on this machine, and what to do about it. It changes nothing."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from app.cli.doctor import database, log, machine, programs, reports
from app.cli.doctor.finding import Finding
from app.cli.options import Overrides
from app.errors import ConfigError


def doctor(
    *,
    config: Annotated[Path | None, typer.Option(help="settings file; without it sluice.yaml in --var")] = None,
    var: Annotated[Path, typer.Option(help="the folder that serve is given")] = Path("var"),
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="port of the HTTP API, over the one in the settings")] = None,
    overrides: Overrides = None,
    output: Annotated[Literal["text", "json"], typer.Option(help="for people or for programs")] = "text",
) -> None:
    """Say what is missing and what to do. Exit 0 where nothing is, 2 for wrong settings, 6 for the rest."""
    listen = (f"listen=127.0.0.1:{port}",) if port else ()
    findings = list(_examine(config, var, (*(overrides or ()), *listen)))
    if output == "json":
        typer.echo(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False, indent=2))
    else:
        for finding in findings:
            typer.echo(f"{finding.level:5} {finding.name:9} {finding.message}")
            if finding.remedy:
                typer.echo(f"{'':15} {finding.remedy}")
    failed = {finding.name for finding in findings if finding.level == "fail"}
    raise typer.Exit(0 if not failed else 2 if "settings" in failed else 6)


def _examine(config: Path | None, var: Path, overrides: tuple[str, ...]) -> Iterator[Finding]:
    yield machine.python()
    yield machine.packages()
    yield machine.digest()
    yield log.signatures()
    yield machine.folder(var)
    yield machine.disk(var)
    from app.settings import load_settings, settings_file

    file = settings_file(config, var)
    try:
        settings = load_settings(file, overrides, given=config is not None)
    except ConfigError as error:
        yield Finding("settings", "fail", error.message, error.advice)
        return
    yield Finding("settings", "ok", str(file or "defaults and environment"))
    yield machine.listen(settings.listen, var)
    yield programs.opa(settings.opa)
    yield from database.database(settings, var)
    yield from log.log(settings, var)
    yield from reports.reports(settings, var)
    yield reports.font(settings)
    yield machine.gpus(settings)
