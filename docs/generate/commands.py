"""docs/reference/cli.md, from the command line itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args, get_origin

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from app.cli import app
from docs.generate.markdown import code, page, table

INTRO = """
`sluice COMMAND --help` says the same on a terminal. Data goes to stdout, everything else to stderr.
Exit codes stand with the [errors](errors.md).
"""

_KINDS: dict[object, str] = {int: "whole number", float: "number", str: "text", bool: "", Path: "path"}


def cli_page() -> str:
    """Every command with its arguments and options."""
    return page("Command line", INTRO.strip(), *(_command(path, command) for path, command in sorted(commands(), key=lambda each: each[0])))


def commands() -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    """Every command that does something by itself, by the words that call it."""
    waiting = [("sluice", get_command(app))]
    while waiting:
        path, command = waiting.pop(0)
        if isinstance(command, TyperGroup):
            waiting += [(f"{path} {name}", child) for name, child in sorted(command.commands.items())]
        if isinstance(command, TyperCommand) or (isinstance(command, TyperGroup) and command.invoke_without_command):
            yield path, command


def _command(path: str, command: TyperCommand | TyperGroup) -> str:
    head = ("argument or option", "value", "default", "meaning")
    rows = [_parameter(parameter) for parameter in command.params if isinstance(parameter, TyperOption | TyperArgument)]
    return "\n\n".join(filter(None, (f"## {path}", command.help, table(head, rows) if rows else "")))


def _parameter(parameter: TyperOption | TyperArgument) -> tuple[str, str, str, str]:
    name = ", ".join(parameter.opts) if isinstance(parameter, TyperOption) else str(parameter.name).upper()
    default = "required" if parameter.required else "" if parameter.default in (None, False) else code(parameter.default)
    return code(name), _kind(parameter.type_descriptor.annotation), default, parameter.help or ""


def _kind(annotation: object) -> str:
    """What may stand there, in a word; of lists and what may be absent, of their parts."""
    if get_origin(annotation) is Literal:
        return " or ".join(map(code, get_args(annotation)))
    parts = [part for part in get_args(annotation) if part is not type(None)]
    return _kind(parts[0]) if parts else _KINDS[annotation]
