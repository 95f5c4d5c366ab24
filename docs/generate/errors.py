"""docs/reference/errors.md, from every subclass of SluiceError."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import app
import app.cli
from app.errors import SluiceError
from docs.generate.markdown import code, page, table

INTRO = """
An error says what is wrong with a call, or what is wrong here. A refused request is not an error: it is a decision,
answered with HTTP 200 and [reasons](reasons.md).

Over HTTP an error is `application/problem+json` (RFC 9457) with `type`, `title`, `status`, `detail`, `code`, `hint`, and
`field` where one field is to blame. On the command line it is two lines on stderr and the exit code.
`code` is stable; texts are for people and may change.
A 503 carries `Retry-After: 3`.
"""


def errors_page() -> str:
    """Every error that has a code of its own."""
    rows = [
        (code(error.code), str(error.status), str(error.exit_code), inspect.getdoc(error) or "", error.hint)
        for error in sorted(error_classes(), key=lambda error: (error.status, error.code))
    ]
    exits = f"## Exit codes of the command line\n\n{(inspect.getdoc(app.cli) or '').split('Exit codes: ')[1]}"
    return page("Errors", INTRO.strip(), table(("code", "HTTP status", "exit code", "meaning", "what to do"), rows), exits)


def error_classes() -> Iterator[type[SluiceError]]:
    """Every class of error that has a code of its own and leaves its room, after importing all of Sluice."""
    for module in pkgutil.walk_packages(app.__path__, "app."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    waiting = [SluiceError]
    while waiting:
        children = waiting.pop().__subclasses__()
        waiting += children
        yield from (child for child in children if "code" in vars(child) and not child.__name__.startswith("_"))
