"""The nights on the shelf with their states, and what the log says was made: for the commands that tell of them.

When down: a log that cannot be asked is DependencyDown or ConfigError; who asked goes on without it, and says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.reports.shelf.compared import Manifests
    from app.reports.shelf.made import SignedBefore
    from app.reports.shelf.states import State
    from app.settings import Settings


@dataclass(frozen=True, slots=True)
class LogSays:
    """What the log says of reports."""

    made: "Manifests"
    """Of the last year."""
    signed: "SignedBefore | None"
    """Ever; None where no night was made."""
    signers: frozenset[str]
    """SM3 fingerprints in hex of all signers of reports that it has heard of."""


def ask_log(settings: "Settings", var: Path) -> LogSays:
    """What the log of these settings says. Raises ConfigError, DependencyDown."""
    import asyncio

    from app.access import urls_beside_serve
    from app.clock import SystemClock
    from app.database import create_engine
    from app.observability.metrics import Metrics
    from app.reports.making.report_keys import signers_told_of
    from app.reports.shelf.made import manifests_of, signed_before
    from app.transaction import Transactions

    async def look(url: str) -> LogSays:
        engine = create_engine(url, settings.database)
        transactions = Transactions(engine, Metrics(), call="reports", timeout_ms=settings.database.timeout_ms, logs=False)
        try:
            made = await manifests_of(transactions, SystemClock().utcnow())
            return LogSays(made, await signed_before(transactions), await signers_told_of(transactions))
        finally:
            await engine.dispose()

    return asyncio.run(look(urls_beside_serve(settings, var).log))


def states_of(settings: "Settings", var: Path, made: "Manifests", *, most: int, whole: int) -> "Mapping[str, State]":
    """The newest nights, at most `most`, on the shelf or in `made`: the state of each by its id, the newest first. Raises ShelfDown.

    What `made` has against one comes first. Of the others the newest `whole` are checked, every file under the root certificate of the
    report keys here; those after them have no state.
    """
    from app.reports.checking.shelved import checked_under
    from app.reports.shelf.compared import all_of, contradiction, vouched
    from app.reports.shelf.shelf import REPORT_KEYS, Shelf, shelf_folder
    from app.signing.key_files import root_file

    shelf = Shelf(shelf_folder(settings.report.path, var))
    checked = checked_under(root_file(Path(settings.report.keys or var / REPORT_KEYS)))
    states = {}
    for place, report in enumerate(all_of(shelf, made)[:most]):
        folder = shelf.path / report
        if against := contradiction(folder, made):
            states[report] = against
        elif place < whole:
            states[report] = vouched(report, checked(folder), made)
    return states
