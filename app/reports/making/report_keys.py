"""The keys of reports, open. They are made by the way only for the first night of a log, by one replica: later, and elsewhere, they are missing.

Whoever checks reports was given one root. A second one that comes to be unasked would leave nights under a root that nobody was told of.
So whoever makes the first keys holds a lock from asking the log until the log has the entry of their signer (`key.created`): another
replica finds it then, and makes none. One that was killed in between may have keys of its own that the log never heard of; where it has
heard of others by then, they sign nothing. Only keys that an operator made or brought take over from others.

When down: DatabaseDown where the log cannot be asked, NightUnfinished where nobody adds to it, KeysBusy; no report is made. Keys that the
log has heard of need no lock.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from pathlib import Path

import orjson
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.clock import Clock
from app.errors import ConfigError
from app.reports.making.lock import keys_locked
from app.reports.making.settled import settled
from app.reports.sealing.introduction import introductions, known_signers
from app.reports.shelf.made import SignedBefore, signed_before
from app.settings import Settings
from app.signing.certificates import Certificate
from app.signing.key_files import newest_signer, read_maker
from app.signing.keys import KeyFolder, keys_folder
from app.signing.passphrase import known_passphrase, passphrase_of
from app.signing.uses import REPORTS
from app.transaction import Transactions

REMEDY = (
    f"Bring the folder back from your backup, copy it from the replica that signs, or name it with {REPORTS.keys_field}.{REPORTS.way_on} "
    "Hand out their root: earlier nights stay checkable under the root.pem in their folders alone."
)
_TOLD = text(
    "SELECT body FROM audit.body WHERE kind IN ('key.created', 'key.rotated')"
    """ AND position('"use":"report"'::bytea IN body) > 0 ORDER BY seq"""
)


async def open_keys(
    settings: Settings,
    var: Path,
    clock: Clock,
    transactions: Transactions,
    writing: AsyncEngine,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> KeyFolder:
    """The keys that the settings name, open, and told of in the log; made where nobody ever signed. Raises ConfigError, DependencyDown.

    `transactions` are of role sluice_log, `writing` is of sluice_intake. Opens private keys: the caller has forbidden dumps of its memory.
    """
    folder = keys_folder(settings, var, REPORTS)
    known_passphrase(settings, var, REPORTS)  # what is wrong with it is told first, and none is made beside keys that are lost
    keys = None
    if newest_signer(folder):
        keys = _opened(settings, var, folder, clock)
        if not _unheard(keys.certificates[1:], await signers_told_of(transactions)):
            return keys
    async with keys_locked(writing, sleep) as lock:
        await settled(transactions, clock.utcnow(), sleep)
        told = await signers_told_of(transactions)
        if keys is None:
            if not newest_signer(folder):
                refuse_lost(folder, told, await signed_before(transactions))
            keys = _opened(settings, var, folder, clock)
        refuse_second(folder, keys.certificates[1:], told)
        now = clock.utcnow()
        if entries := introductions(keys, told, now):
            await lock.commit(*entries)
            await settled(transactions, now, sleep)  # before anybody else looks
    return keys


def _lost(folder: Path, signed: SignedBefore | None) -> str:
    """What is said of missing keys; `signed` is None where there are keys elsewhere that have not made a night yet."""
    if signed is None:
        return f"{REPORTS.keys_field}: {folder} has no keys, and the log says that there are some elsewhere, which sign reports"
    times = "once" if signed.times == 1 else f"{signed.times} times"
    return f"{REPORTS.keys_field}: {folder} has no keys, and the log says that reports were signed {times} since {signed.since:%Y-%m-%d}"


def _opened(settings: Settings, var: Path, folder: Path, clock: Clock) -> KeyFolder:
    keys = KeyFolder(folder, passphrase_of(settings, var, REPORTS), REPORTS)
    keys.open_or_make(clock.utcnow())
    return keys


async def signers_told_of(transactions: Transactions) -> frozenset[str]:
    """Fingerprints of the signers that the log has heard of, whosever they are; what was altered to something else is none. Raises DatabaseDown."""

    async def look(connection: AsyncConnection) -> frozenset[str]:
        told: set[str] = set()
        for row in await connection.execute(_TOLD):
            with contextlib.suppress(ValueError, KeyError, AttributeError):
                told |= known_signers([orjson.loads(bytes(row.body))])
        return frozenset(told)

    return await transactions.run(look)


def refuse_lost(folder: Path, told: Collection[str], signed: SignedBefore | None) -> None:
    """Raises ConfigError where somebody signs, or signed, and there are no keys here."""
    if told or signed:
        raise ConfigError(_lost(folder, signed), hint=REMEDY, field=REPORTS.keys_field)


def refuse_second(folder: Path, signers: Sequence[Certificate], told: Collection[str]) -> None:
    """Raises ConfigError for keys that a start made by the way, and was ended before the log heard of them, where others came first."""
    if told and _unheard(signers, told) and read_maker(folder, 1) is None:
        raise ConfigError(
            f"{REPORTS.keys_field}: {folder} has keys that were made by the way, and the log says that others sign reports",
            hint="Move that folder away: it has signed nothing. Copy the folder and the passphrase of the replica that signs in its place.",
            field=REPORTS.keys_field,
        )


def _unheard(signers: Iterable[Certificate], told: Collection[str]) -> bool:
    """Whether the log has heard of none of these signers."""
    return all(signer.fingerprint.hex() not in told for signer in signers)
