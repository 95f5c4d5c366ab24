"""What is wrong with a command line whatever its command is, and where whoever typed it finds what is right. Pure."""

import re
from collections.abc import Sequence

from app.errors import BadRequest, Conflict, NotFound, SluiceError

_NAME = re.compile(r"--?[A-Za-z][A-Za-z0-9-]*")
_OF_HTTP = {
    BadRequest.hint: "Correct what is named; --help behind the command, or docs/reference/cli.md, has all options.",
    Conflict.hint: "Look at what there is, such as with the `list` beside the command.",
    NotFound.hint: "Check the spelling; the `list` beside the command shows what there is.",
}
"""What errors advise whoever sends requests, and what it is for whoever types commands."""


def refuse_empty(arguments: Sequence[str]) -> None:
    """Raises BadRequest for an argument without any character: a variable that was not set, and never a wish.

    It would pass for an option that was not given, or for the folder in which the command runs.
    """
    for before, argument in zip(("", *arguments), arguments, strict=False):
        name, equals, value = argument.partition("=")
        empty_behind = name if equals and not value and _NAME.fullmatch(name) else ""
        if argument and not empty_behind:
            continue
        what = empty_behind or (before if _NAME.fullmatch(before) else "an argument")
        raise BadRequest(f"{what}: is empty", hint="Give it a value, or leave it out. Is a variable not set?")


def advice_of(error: SluiceError) -> str:
    """What whoever typed the command is to do about `error`."""
    return _OF_HTTP.get(error.advice, error.advice)
