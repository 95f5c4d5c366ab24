"""What several commands share: the options that say where the settings are, reading these, and printing a table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from app.settings import Settings

Var = Annotated[Path, typer.Option("--var", help="the folder that serve was given: its embedded database, secrets and the log's keys")]
Config = Annotated[Path | None, typer.Option(help="settings file; without it sluice.yaml in --var, where there is one")]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="section.name=value, over file and environment")]

QUIET = "warning"
"""A command that ends answers by what it prints: of its log only what went wrong is shown, unless the settings name a level."""


def settings_of(config: Path | None, var: Path, overrides: list[str] | None) -> "Settings":
    """The settings that the options name. Raises ConfigError."""
    from app.settings import load_settings, settings_file

    return load_settings(settings_file(config, var), tuple(overrides or ()), given=config is not None)


def quiet_settings_of(config: Path | None, var: Path, overrides: list[str] | None, process: str) -> "Settings":
    """The same for a command that ends, with the log of `process` set up. Raises ConfigError."""
    from app.observability.logs import configure_logs

    settings = settings_of(config, var, overrides)
    level = settings.log_level if "log_level" in settings.model_fields_set else QUIET
    configure_logs(level, settings.log_format, process)
    return settings


def counted(number: int, one: str, more: str) -> str:
    """`1 entry`, `2 entries`."""
    return f"{number} {one if number == 1 else more}"


def tenths(number: float | None) -> str:
    """`-0.5`; a dash where there is none."""
    return "-" if number is None else f"{number:.1f}"


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows, the first of which has the headings, in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
