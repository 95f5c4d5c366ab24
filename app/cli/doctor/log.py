"""Whether the log can be signed here, stands as its process needs it, and the database still refuses to change it."""

import asyncio
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.doctor.finding import Finding
from app.cli.doctor.probe import TIMEOUT_S, nearest
from app.errors import ConfigError, SluiceError

if TYPE_CHECKING:
    from app.settings import Settings
    from app.signing.certificates import Certificate


def signatures() -> Finding:
    """Whether this machine's SM2 gives the standard's answers."""
    from app.signing.sm2 import self_test

    try:
        self_test()
    except ConfigError as error:
        return Finding("sm2", "warn", f"{error.message}; the log cannot be signed or verified here", error.advice)
    return Finding("sm2", "ok", f"{ssl.OPENSSL_VERSION} passes the standard's example")


@dataclass(frozen=True, slots=True)
class Kept:
    """What the database says of the log that it keeps."""

    unguarded: list[str]
    """Triggers that do not do their work."""
    root: "Certificate | None"
    """None where the log has not begun."""
    size: int
    damage: str
    """What is wrong with its head; empty where nothing is."""


def log(settings: "Settings", var: Path) -> Iterator[Finding]:
    """The log's keys, where it is signed with these settings; its triggers and its head, where the database answers."""
    from app.database import DatabaseDown
    from app.setting_sections import EMBEDDED

    try:
        kept, silent = asyncio.run(_look(_url(settings, var))), False
    except (ConfigError, DatabaseDown):
        kept, silent = None, True  # said above: it does not run, or does not answer
    if settings.database.url == EMBEDDED or settings.database.sequencer_url:
        yield _keys(settings, var, kept.root if kept else None)
    if kept:
        yield _triggers(kept.unguarded)
        yield _head(kept)
    elif not silent:
        yield Finding("triggers", "ok", "no log yet: the first start of serve makes its tables")


def _keys(settings: "Settings", var: Path, of_log: "Certificate | None") -> Finding:
    from app import core_dumps
    from app.clock import SystemClock
    from app.signing.key_files import read_root, refuse_another_root
    from app.signing.keys import KeyFolder, keys_folder
    from app.signing.passphrase import known_passphrase

    folder = keys_folder(settings, var).absolute()
    try:
        made = nearest(folder) == folder
        if of_log:
            refuse_another_root(folder, read_root(folder), of_log)
        core_dumps.forbid()
        passphrase = known_passphrase(settings, var)
        if not made:
            return Finding("keys", "ok", f"{folder}, made when the log is first run")
        if passphrase is None:
            return Finding("keys", "ok", f"{folder}, not opened: the passphrase is for the process of the log alone")
        keys = KeyFolder(folder, passphrase)
        keys.check(SystemClock().utcnow())
    except ConfigError as error:
        return Finding("keys", "fail", error.message, error.advice)
    except OSError as error:  # a closed folder on the way there
        return Finding("keys", "fail", f"{error.filename}: {error.strerror}", "Ask as the user that runs the log.")
    return Finding("keys", "ok", f"{folder}: signs as {keys.certificate.subject} until {keys.certificate.not_after:%Y-%m-%d}")


def _triggers(missing: list[str]) -> Finding:
    if not missing:
        return Finding("triggers", "ok", "what stands in the log and in the history is refused any change")
    return Finding(
        "triggers",
        "fail",
        f"not there, or not ALWAYS: {', '.join(missing)}",
        "Somebody who owns the tables could change the log. Export it, `sluice audit verify` it against a checkpoint kept elsewhere; "
        "then ALTER TABLE … ENABLE ALWAYS TRIGGER … for each.",
    )


def _head(kept: Kept) -> Finding:
    from app.audit.reading.hashes import LogDamaged

    if kept.damage:
        return Finding("head", "fail", f"{kept.damage}; nothing is added to the log or signed", LogDamaged.hint)
    return Finding("head", "ok", f"of size {kept.size}, as its hashes and the newest checkpoint say")


def _url(settings: "Settings", var: Path) -> str:
    """Of a role that reads the log."""
    from app.access import sequencer_url_beside_serve, urls_beside_serve

    if settings.database.sequencer_url:
        return sequencer_url_beside_serve(settings, var)
    return urls_beside_serve(settings, var).log


async def _look(url: str) -> Kept | None:
    """None where there is no log yet. Raises DatabaseDown."""
    from app.audit.sequencing.head import check
    from app.audit.sequencing.root import root_of
    from app.audit.sequencing.session import connected
    from app.cli.doctor.triggers import unguarded
    from app.database import DatabaseDown

    async with connected(url, timeout_ms=TIMEOUT_S * 1000) as connection:
        missing = await unguarded(connection)
        if missing is None:
            return None
        try:
            root = await root_of(connection)
            return Kept(missing, root, (await check(connection)).size, "")
        except DatabaseDown:
            raise
        except SluiceError as damaged:  # rows that are no log's
            return Kept(missing, None, 0, damaged.message)
