"""PostgreSQL as Sluice uses it: one role per duty, short time-outs.

Nobody serves with the owner's or a superuser's rights: the registry role cannot change the log, the intake role only inserts.
When down: a statement or a wait for a connection fails within `database.timeout_ms`; the room that called says what that means.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from sqlalchemy import exc
from sqlalchemy.engine import URL, make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from app.errors import ConfigError, DependencyDown
from app.setting_sections import DatabaseSettings
from app.settings import secret_of

OWNER = "sluice_owner"  # owns schemas and tables; migrations alone use it
REGISTRY = "sluice_registry"  # tenants, quotas, keys; inserts into the log's intake
INTAKE = "sluice_intake"  # inserts into the log's intake, and reads nothing
LOG = "sluice_log"  # reads the log, for /audit/* alone
SEQUENCER = "sluice_sequencer"  # moves intake into the tree
ROLES = (OWNER, REGISTRY, INTAKE, LOG, SEQUENCER)

_ROLE = """
SELECT rolname::text, rolsuper, EXISTS (SELECT FROM pg_namespace WHERE nspname = 'audit' AND pg_has_role(nspowner, 'MEMBER'))
FROM pg_roles WHERE rolname = current_user
"""

DISK_FULL = "53100"
"""PostgreSQL's code for it; no setting of ours is wrong then."""
UNKNOWN_OBJECT = ("3F000", "42P01", "42703")
"""Its codes for a schema, table or column that is not there: every statement is ours, so the database is older than we are."""


class DatabaseDown(DependencyDown):
    """PostgreSQL does not answer, refuses the credential, or cannot do what was asked."""

    code = "database_down"
    hint = "Check that the server runs and that database.url and its siblings are right; `sluice doctor` tries them."


class SchemaBehind(DatabaseDown):
    """The database lacks a table or a column that this version of Sluice works with."""

    code = "schema_behind"
    hint = "Start `sluice serve` of this version once: it brings the schema up to date."


def database_down(error: BaseException | None, what: str = "") -> DatabaseDown:
    """What became of a statement that psycopg failed with `error`: told as `what`; in the server's own first line without, where its disk is full and where it is older than we are."""
    code = getattr(error, "sqlstate", None)
    if code in UNKNOWN_OBJECT:
        return SchemaBehind(f"the schema of the database is older than this version of Sluice: {first_line(error)}")
    full = code == DISK_FULL
    said = what if what and not full else first_line(error)
    return DatabaseDown(
        f"PostgreSQL: {said}", hint="Make room on the disk of the database; what waits goes on by itself then." if full else None
    )


def first_line(error: BaseException | None) -> str:
    """What psycopg says of a failure, without details and hints. Of a connection it names host, port and user, never the password."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


@dataclass(frozen=True, slots=True)
class DatabaseUrls:
    """SQLAlchemy URLs (driver postgresql+psycopg, passwords included), one for each duty of serve."""

    owner: str
    registry: str
    intake: str
    log: str

    def __repr__(self) -> str:
        return f"DatabaseUrls({', '.join(f'{f.name}={make_url(getattr(self, f.name))!r}' for f in fields(self))})"


def external_urls(settings: DatabaseSettings) -> DatabaseUrls:
    """The URLs of an operator's own server. Raises ConfigError naming the setting that is missing or wrong."""
    given = {"registry": "url", "owner": "owner_url", "intake": "intake_url", "log": "log_url"}
    return DatabaseUrls(**{duty: _url(f"database.{name}", getattr(settings, name)) for duty, name in given.items()})


def external_sequencer_url(settings: DatabaseSettings) -> str:
    """The URL of the sequencer on an operator's own server; serve never asks for it. Raises ConfigError."""
    return _url("database.sequencer_url", settings.sequencer_url)


def _url(field: str, value: str) -> str:
    if not value:
        raise ConfigError(
            f"{field}: missing; with a server of your own each duty has its own role",
            hint=f"Set it to postgresql://ROLE:PASSWORD@HOST/DATABASE or to file:PATH of a file that holds this, or SLUICE_{field.upper().replace('.', '__')}.",
            field=field,
        )
    try:
        url = make_url(secret_of(field, value))
    except exc.ArgumentError:
        raise ConfigError(f"{field}: not a URL; expected postgresql://ROLE:PASSWORD@HOST/DATABASE", field=field) from None
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise ConfigError(f"{field}: {url.get_backend_name()} is not supported; expected postgresql://", field=field)
    return url.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def conninfo(url: str) -> str:
    """`url` as psycopg itself takes it, for a connection outside the pools (LISTEN, administration)."""
    parsed = make_url(url)
    _, parts = parsed.get_dialect()().create_connect_args(parsed)
    return make_conninfo(**parts)


def create_engine(url: str, settings: DatabaseSettings) -> AsyncEngine:
    """A pool of `pool_size` connections that never grows; waits and statements end after `timeout_ms`.

    Parameters never appear in an error's text: they hold keys and people's ids.
    """
    timeout_ms = settings.timeout_ms
    return create_async_engine(
        url,
        pool_size=settings.pool_size,
        max_overflow=0,
        pool_timeout=timeout_ms / 1000,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={
            "connect_timeout": max(2, -(-timeout_ms // 1000)),  # whole seconds, and libpq knows none below 2
            "tcp_user_timeout": timeout_ms,
            # A commit that was answered is on the disk, whatever the server's own setting says.
            "options": "-c synchronous_commit=on "
            f"-c statement_timeout={timeout_ms} -c idle_in_transaction_session_timeout={timeout_ms * 5}",
            "application_name": "sluice",
        },
    )


@dataclass(frozen=True, slots=True)
class Role:
    """Who a connection is to PostgreSQL."""

    name: str
    superuser: bool
    owns_log: bool
    """Whether it could undo what the triggers on the log refuse, by what it is or may become."""


async def role_of(connection: psycopg.AsyncConnection[Any]) -> Role:
    """The role of `connection`. Raises psycopg.Error."""
    cursor = await connection.execute(_ROLE)
    return Role(*(await cursor.fetchall())[0])


async def create_roles(admin_url: str, passwords: Mapping[str, str]) -> None:
    """Make the roles of `passwords` and give them the database of `admin_url`; run again, it changes passwords only.

    Passwords leave this process as SCRAM verifiers, never in clear. Raises DatabaseDown.
    """
    try:
        async with await psycopg.AsyncConnection.connect(conninfo(admin_url)) as connection:
            for role, password in passwords.items():
                await _create_role(connection, role, password)
            await give_database(connection, connection.info.dbname, passwords)
            await connection.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
    except psycopg.Error as error:
        raise DatabaseDown(f"roles were not made: {error}") from None


async def give_database(connection: psycopg.AsyncConnection, name: str, roles: Iterable[str] = ROLES) -> None:
    """Let `roles`, and nobody else, enter the database `name`; sluice_owner becomes its owner."""
    database = sql.Identifier(name)
    entering = sql.SQL(", ").join(map(sql.Identifier, roles))
    await connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database))
    await connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, entering))
    await connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(database, sql.Identifier(OWNER)))


async def _create_role(connection: psycopg.AsyncConnection, role: str, password: str) -> None:
    known = await (await connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])).fetchone()
    verifier = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
    rights = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD {}"
    statement = sql.SQL(f"{'ALTER' if known else 'CREATE'} ROLE {{}} {rights}")
    await connection.execute(statement.format(sql.Identifier(role), sql.Literal(verifier)))


def url_of(role: str, password: str, database: str, socket_dir: Path) -> str:
    """The URL of a role on a server that listens on the unix socket in `socket_dir`."""
    url = URL.create("postgresql+psycopg", role, password, database=database, port=5432, query={"host": os.fspath(socket_dir)})
    return url.render_as_string(hide_password=False)
