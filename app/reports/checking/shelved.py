"""The state of a finished night on the shelf, as readers of the shelf are told it."""

from collections.abc import Callable
from pathlib import Path

from app.errors import ConfigError
from app.reports.checking.check import check
from app.reports.shelf.states import State
from app.signing.key_files import read_certificate


def checked_under(root: Path) -> Callable[[Path], State]:
    """A function that checks the folder of a night under the root certificate in the file `root`, which is read anew each time."""

    def checked(folder: Path) -> State:
        try:
            certificate = read_certificate(root)
        except ConfigError as error:
            return State("unchecked", f"no root certificate of the report keys here: {error.message}")
        found = check(folder, certificate)
        if found.verdict == "valid" and found.report != folder.name:  # another night's folder under this name
            return State("tampered", f"it is the report {found.report}, as it was signed, and not that of its name")
        return State(found.verdict, "" if found.verdict == "valid" else found.words)

    return checked
