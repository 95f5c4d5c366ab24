"""What is on the shelf, compared with what the log says was made: a night that was taken away or exchanged is told.

When down: a log that cannot be asked is no reason to list nothing: the shelf is told as it is.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from app.errors import DependencyDown
from app.reports.manifest import MANIFEST
from app.reports.shelf.shelf import REPORT, Shelf, order
from app.reports.shelf.states import State

MISSING = State("missing", "the log says that it was made, and it is not here: moved away, on another replica, or deleted")
EXCHANGED = State("tampered", "its manifest is not the one that the log says was made")
Made = Mapping[str, str | None]
"""SM3 of the manifest in hex by id of the report."""


async def made_or_none(made: Callable[[], Awaitable[Made]]) -> Made:
    """What the log says was made; nothing while it cannot be asked."""
    try:
        return await made()
    except DependencyDown:
        return {}


def all_of(shelf: Shelf, made: Made) -> list[str]:
    """Ids of what is on the shelf or was made, the newest first. Raises ShelfDown."""
    return sorted({*shelf.reports(), *(report for report in made if REPORT.fullmatch(report))}, key=order, reverse=True)


def contradiction(folder: Path, made: Made) -> State | None:
    """What the log has against the folder of a report; None where nothing."""
    if folder.name not in made:
        return None
    try:
        if not folder.is_dir():
            return MISSING
        found = hashlib.new("sm3", (folder / MANIFEST).read_bytes()).hexdigest()
    except OSError:
        return None  # checking it says what cannot be read
    return None if made[folder.name] in (None, found) else EXCHANGED
