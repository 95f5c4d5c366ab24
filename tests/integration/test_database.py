"""Roles have the least rights, pools fail in time, migrations wait for each other."""

import asyncio
import os

import psycopg
import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.database import DatabaseDown, conninfo, create_engine, create_roles
from app.schema import MIGRATIONS, SCHEMA, SchemaAhead, migrate
from app.setting_sections import DatabaseSettings
from tests.fixtures.postgres import rows_of

SERVING = ("registry", "intake", "log")
QUICK = DatabaseSettings(timeout_ms=100, pool_size=1)


async def attempt(url: str, statement: str) -> None:
    async with await psycopg.AsyncConnection.connect(conninfo(url), autocommit=True) as connection:
        await connection.execute(statement)


@pytest.mark.parametrize("duty", [*SERVING, "owner"])
async def test_no_role_has_special_rights(database_urls, duty):
    """No role of ours is a superuser, makes roles or databases, replicates, or passes row security."""
    async with await psycopg.AsyncConnection.connect(conninfo(getattr(database_urls, duty))) as connection:
        rights = await connection.execute(
            "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls FROM pg_roles WHERE rolname = current_user"
        )

        assert await rights.fetchone() == (False, False, False, False, False)


@pytest.mark.parametrize("duty", SERVING)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE public.mine (x int)",
        "CREATE SCHEMA mine",
        "CREATE TEMP TABLE mine (x int)",
        "SET ROLE sluice_owner",
        "SET session_replication_role = replica",
        "ALTER SYSTEM SET fsync = off",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "SELECT pg_read_file('/etc/passwd')",
        "ALTER ROLE sluice_log SUPERUSER",
        "DROP SCHEMA audit CASCADE",
    ],
)
async def test_serving_roles_only_serve(database_urls, duty, statement):
    """What changes structure, rights or the server is refused by the database itself."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        await attempt(getattr(database_urls, duty), statement)


async def test_others_may_not_enter(database_urls, postgres_server):
    """A role that was not given the database is not let in."""
    await create_roles(postgres_server.admin_url, {"sluice_guest": "g"})
    guest = make_url(database_urls.log).set(username="sluice_guest", password="g")

    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        await attempt(guest.render_as_string(hide_password=False), "SELECT 1")


async def test_roles_can_be_made_twice(postgres_server):
    """Making the roles again changes a password and nothing else; the password works."""
    await create_roles(postgres_server.admin_url, {"sluice_probe": "first"})
    await create_roles(postgres_server.admin_url, {"sluice_probe": "second' \\"})
    probe = conninfo(postgres_server.admin_url)

    async with await psycopg.AsyncConnection.connect(probe, user="sluice_probe", password="second' \\") as connection:
        assert connection.info.user == "sluice_probe"


async def test_a_statement_ends_in_time(database_urls):
    """A statement that takes longer than `timeout_ms` is ended by the server, and its parameters stay out of the error."""
    engine = create_engine(database_urls.registry, QUICK)
    async with engine.connect() as connection:
        with pytest.raises(DBAPIError, match="statement timeout") as refused:
            await connection.execute(text("SELECT pg_sleep(60), :secret"), {"secret": "s3cret"})
    await engine.dispose()

    assert "s3cret" not in str(refused.value)


async def test_a_wait_for_a_connection_ends_in_time(database_urls):
    """A pool never grows; who finds it empty waits for `timeout_ms` at most."""
    engine = create_engine(database_urls.registry, QUICK)
    async with engine.connect():
        with pytest.raises(PoolTimeout):
            await engine.connect()
    await engine.dispose()


async def test_migrations_wait_for_each_other(database_urls):
    """Replicas that start at once migrate one after the other, and the rest find nothing to do."""
    await attempt(database_urls.owner, "DROP SCHEMA registry, audit CASCADE")
    await asyncio.gather(*(migrate(database_urls.owner) for _ in range(3)))

    await attempt(database_urls.registry, "SELECT count(*) FROM registry.tenant_quota")


def test_the_schema_that_is_needed_is_the_newest_migration():
    """The version that a start looks for is the head of the migrations."""
    assert ScriptDirectory(os.fspath(MIGRATIONS)).get_heads() == [SCHEMA]


async def test_a_database_of_a_newer_version_is_refused(database_urls):
    """A start on tables that this version does not know says which version they are of, and leaves them alone."""
    await attempt(database_urls.owner, "UPDATE registry.alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaAhead, match=f"schema of the database is 9999; this version of Sluice knows {SCHEMA}"):
        await migrate(database_urls.owner)

    assert await rows_of(database_urls.owner, "SELECT version_num FROM registry.alembic_version") == [("9999",)]


async def test_a_migration_without_a_server_says_so(tmp_path):
    """Without a server, migrating and making roles fail with a DatabaseDown, without the password."""
    url = f"postgresql+psycopg://sluice_owner:s3cret@/sluice?host={tmp_path}"
    for work in (migrate(url), create_roles(url, {"sluice_owner": "s3cret"})):
        with pytest.raises(DatabaseDown) as refused:
            await work
        assert "s3cret" not in str(refused.value)
