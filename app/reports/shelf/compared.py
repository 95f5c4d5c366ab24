"""What is on the shelf, compared with what the log says was made: a night that was taken away, exchanged or invented is told.

When down: a log that cannot be asked is no reason to list nothing: the shelf is told as it is, and nothing vouches for a night under another
root than the one here.
"""

import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

from app.errors import DependencyDown
from app.reports.shelf.shelf import REPORT, Shelf, UnknownReport, is_night, manifest_text, order
from app.reports.shelf.states import State

MISSING = State("missing", "the log says that it was made, and it is not here: moved away, on another replica, or deleted")
EXCHANGED = State("tampered", "its manifest is not the one that the log says was made")
Manifests = Mapping[str, str | None]
"""What the log says was made: SM3 of the manifest in hex by id of the report."""


async def made_or_none(made: Callable[[], Awaitable[Manifests]]) -> Manifests:
    """What the log says was made; nothing while it cannot be asked."""
    try:
        return await made()
    except DependencyDown:
        return {}


def all_of(shelf: Shelf, made: Manifests) -> list[str]:
    """Ids of what is on the shelf or was made, the newest first. Raises ShelfDown."""
    return sorted({*shelf.reports(), *(report for report in made if REPORT.fullmatch(report))}, key=order, reverse=True)


def contradiction(folder: Path, made: Manifests) -> State | None:
    """What the log has against the folder of a report; None where nothing."""
    if folder.name not in made:
        return None
    try:
        if not is_night(folder):
            return MISSING
        found = hashlib.new("sm3", manifest_text(folder)).hexdigest()
    except OSError:
        return None  # checking it says what cannot be read
    return None if made[folder.name] in (None, found) else EXCHANGED


def vouched(report: str, state: State, made: Manifests) -> State:
    """The state that checking found, for readers: a night that is good only under another root is as good as the log's word for it.

    Its manifest is the one in `made`, where this has one: else `contradiction` speaks first.
    """
    if not state.other_root or made.get(report):
        return state
    return State("tampered", f"{state.why}; no entry of the log was found that vouches for its manifest")


@contextlib.contextmanager
def telling_missing(report: str, made: Manifests) -> Iterator[None]:
    """Let an UnknownReport of the block say so where `report` was made, and its folder is not here."""
    try:
        yield
    except UnknownReport as error:
        if report not in made or error.field != "report":
            raise
        raise UnknownReport(
            f"report: the log says that {report} was made, and it is not on this shelf",
            hint="Look where report.path of the other replicas leads, or bring its folder back from a backup; `sluice report nightly "
            "--date DAY --again` makes the reports of its day again, beside it.",
            field="report",
        ) from None
