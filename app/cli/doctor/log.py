"""Whether the log can be signed here, and whether the database still refuses to change what stands in it."""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.doctor.finding import Finding
from app.cli.doctor.probe import TIMEOUT_S, nearest
from app.errors import ConfigError

if TYPE_CHECKING:
    from app.settings import Settings


def signatures() -> Finding:
    """Whether this machine's SM2 gives the standard's answers."""
    from app.signing.sm2 import self_test

    try:
        self_test()
    except ConfigError as error:
        return Finding("sm2", "warn", f"{error.message}; the log cannot be signed or verified here", error.advice)
    return Finding("sm2", "ok", f"{ssl.OPENSSL_VERSION} passes the standard's example")


def log(settings: "Settings", var: Path) -> Iterator[Finding]:
    """The log's keys, where it is signed with these settings, and the triggers of its tables, where the database answers."""
    from app.settings import EMBEDDED

    if settings.database.url == EMBEDDED or settings.database.sequencer_url:
        yield _keys(settings, var)
    yield from _triggers(settings, var)


def _keys(settings: "Settings", var: Path) -> Finding:
    from app import core_dumps
    from app.clock import SystemClock
    from app.signing.keys import KeyFolder, keys_folder
    from app.signing.passphrase import known_passphrase

    folder = keys_folder(settings, var).absolute()
    made = nearest(folder) == folder
    try:
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


def _triggers(settings: "Settings", var: Path) -> Iterator[Finding]:
    import psycopg

    from app.database import DatabaseDown

    try:
        missing = asyncio.run(_unguarded(_url(settings, var)))
    except (ConfigError, DatabaseDown, psycopg.Error):
        return  # said above: it does not run, or does not answer
    if missing is None:
        yield Finding("triggers", "ok", "no log yet: the first start of serve makes its tables")
    elif missing:
        yield Finding(
            "triggers",
            "fail",
            f"not there, or not ALWAYS: {', '.join(missing)}",
            "Somebody who owns the tables could change the log. Export it, `sluice audit verify` it against a checkpoint kept elsewhere; "
            "then ALTER TABLE … ENABLE ALWAYS TRIGGER … for each.",
        )
    else:
        yield Finding("triggers", "ok", "what stands in the log and in the history is refused any change")


def _url(settings: "Settings", var: Path) -> str:
    """Any role's: all may look at triggers."""
    from app.postgres import sequencer_url_beside_serve, urls_beside_serve

    if settings.database.sequencer_url:
        return sequencer_url_beside_serve(settings, var)
    return urls_beside_serve(settings, var).registry


async def _unguarded(url: str) -> list[str] | None:
    import psycopg

    from app.cli.doctor.triggers import unguarded
    from app.database import conninfo

    async with await psycopg.AsyncConnection.connect(conninfo(url), connect_timeout=TIMEOUT_S) as connection:
        return await unguarded(connection)
