"""The schema of the database: which version this program needs, and bringing a database to it.

Alembic is loaded only where there is something to migrate: most starts find nothing to do.
When down: DatabaseDown; nothing is half migrated, since each migration is one transaction.
"""

import asyncio
import os
from pathlib import Path

from sqlalchemy import Connection, create_engine, exc, pool, text

from app.database import DatabaseDown
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
    await asyncio.to_thread(_migrate, owner_url)


def _migrate(owner_url: str) -> None:
    engine = create_engine(owner_url, poolclass=pool.NullPool, hide_parameters=True)
    try:
        with engine.connect() as connection:
            if not _is_behind(connection):
                return
            connection.execute(text(f"SET lock_timeout = '{_WAIT_S}s'"))
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK})
            connection.commit()  # the lock is the session's; Alembic opens transactions of its own
            if _is_behind(connection):  # and not brought to ours, or beyond it, by another replica meanwhile
                _upgrade(connection)
    except exc.DBAPIError as error:
        raise DatabaseDown(f"the schema was not migrated: {error.orig}") from None


def _is_behind(connection: Connection) -> bool:
    """Whether there is something to migrate. Raises SchemaAhead."""
    noted = connection.scalar(text("SELECT to_regclass('registry.alembic_version')"))
    found = connection.scalar(text("SELECT max(version_num) FROM registry.alembic_version")) if noted else None
    connection.rollback()
    if found and found > SCHEMA:
        raise SchemaAhead(f"the schema of the database is {found}; this version of Sluice knows {SCHEMA}")
    return bool(found != SCHEMA)


def _upgrade(connection: Connection) -> None:
    """`migrations/env.py` finds the locked connection in `config.attributes["connection"]`."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", os.fspath(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
