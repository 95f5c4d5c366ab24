"""The schema of the database: which version this program needs, and bringing a database to it.

Alembic is loaded only where there is something to migrate: most starts find nothing to do.
When down: DatabaseDown; nothing is half migrated, since each migration is one transaction.
"""

import asyncio
import os
from pathlib import Path

import psycopg
from sqlalchemy import create_engine, exc, pool, text

from app.database import DatabaseDown, conninfo
from app.errors import SluiceError

MIGRATIONS = Path(__file__).resolve().parents[1] / "migrations"
SCHEMA = "0005"
"""The newest of `migrations/versions`, which are numbered."""

_LOCK = 0x51_0C_1C_E0
"""Any constant: every Sluice on a database asks for the same advisory lock."""
_WAIT_S = 60
"""Another replica's migration ends by then, or something is wrong."""


class SchemaAhead(SluiceError):
    """The database was migrated by a newer version of Sluice, whose tables this one does not know."""

    code = "schema_ahead"
    exit_code = 6
    hint = "Run that version or a newer one; there is no way back but a backup of the database."


async def migrate(owner_url: str) -> None:
    """Bring the schema to SCHEMA; several processes may ask at once. Raises SchemaAhead, DatabaseDown."""
    try:
        found = await _version(owner_url)
    except psycopg.Error as error:
        raise _not_migrated(error) from None
    if found > SCHEMA:
        raise SchemaAhead(f"the schema of the database is {found}; this version of Sluice knows {SCHEMA}")
    if found != SCHEMA:
        await asyncio.to_thread(_upgrade, owner_url)


async def _version(owner_url: str) -> str:
    """What Alembic has noted in the database; empty in one that was never migrated."""
    async with await psycopg.AsyncConnection.connect(conninfo(owner_url)) as connection:
        cursor = await connection.execute("SELECT to_regclass('registry.alembic_version') IS NOT NULL")
        if not (await cursor.fetchall())[0][0]:
            return ""
        cursor = await connection.execute("SELECT coalesce(max(version_num), '') FROM registry.alembic_version")
        return str((await cursor.fetchall())[0][0])


def _upgrade(owner_url: str) -> None:
    """`migrations/env.py` finds the locked connection in `config.attributes["connection"]`."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", os.fspath(MIGRATIONS).replace("%", "%%"))
    engine = create_engine(owner_url, poolclass=pool.NullPool, hide_parameters=True)
    try:
        with engine.connect() as connection:
            connection.execute(text(f"SET lock_timeout = '{_WAIT_S}s'"))
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK})
            connection.commit()  # the lock is the session's; Alembic opens transactions of its own
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except exc.DBAPIError as error:
        raise _not_migrated(error.orig) from None


def _not_migrated(error: BaseException | None) -> DatabaseDown:
    return DatabaseDown(f"the schema was not migrated: {error}")
