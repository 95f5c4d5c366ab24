"""Texts that an operator writes about people: from a file or standard input, since arguments stand in the list of processes."""

import sys
from pathlib import Path
from typing import Any

import typer

STDIN = "-"


def written_option(what: str) -> Any:
    """The option for such a text; what it takes is read by `written`."""
    return typer.Option(metavar="FILE", help=f"{what}: a file that says it, or {STDIN} for standard input")


def written(file: str | None, option: str) -> str | None:
    """What `file` says, UTF-8, without the line ends after it; None where no file is named. Raises BadRequest naming `option`.

    A message never repeats `file`: whoever forgot how the option works has put the text itself there.
    """
    from app.errors import BadRequest

    if file is None:
        return None
    hint = f"Write the text into a file and name it, or pipe it: `{option} {STDIN}` reads standard input."
    try:
        return _bytes(file).decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise BadRequest(f"{option}: is not UTF-8", hint=hint, field=option.lstrip("-")) from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "no name of a file"
        raise BadRequest(f"{option}: the file cannot be read: {why}", hint=hint, field=option.lstrip("-")) from None


def _bytes(file: str) -> bytes:
    if file != STDIN:
        return Path(file).read_bytes()
    if sys.stdin.isatty():
        typer.echo("Write the text; end it with Ctrl-D on a line of its own.", err=True)
    return sys.stdin.buffer.read()
