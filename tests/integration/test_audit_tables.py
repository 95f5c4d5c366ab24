"""What stands in the log is refused any change by the database itself, whoever asks."""

import psycopg
import pytest

from app.database import DatabaseUrls, conninfo
from tests.fixtures.append_only import TARGETS, Target, assert_refused, contents, fill

GROWS = "only grows|moves forward"
APPLICATION_ROLES = ("registry", "intake", "log", "sequencer")
ESCAPES = (
    "SET session_replication_role = replica",
    "SET ROLE sluice_owner",
    "SET SESSION AUTHORIZATION sluice_owner",
    "GRANT sluice_owner TO CURRENT_USER",
    "ALTER ROLE CURRENT_USER SUPERUSER",
    "CREATE TABLE audit.x ()",
    "CREATE TABLE registry.x ()",
    "CREATE TABLE public.x ()",
    "CREATE TEMPORARY TABLE leaf ()",
    "CREATE SCHEMA x",
    "DROP SCHEMA audit CASCADE",
    "DROP FUNCTION registry.refuse_change() CASCADE",
    "DROP FUNCTION audit.move_forward() CASCADE",
    "CREATE OR REPLACE FUNCTION audit.move_forward() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "COPY (SELECT 1) TO '/tmp/sluice'",
    "ALTER SYSTEM SET session_replication_role = replica",
)
ALTERATIONS = (
    "ALTER TABLE {table} DISABLE TRIGGER ALL",
    "ALTER TABLE {table} DISABLE TRIGGER USER",
    "ALTER TABLE {table} ENABLE TRIGGER USER",
    "ALTER TABLE {table} ADD COLUMN x int",
    "ALTER TABLE {table} OWNER TO CURRENT_USER",
    "ALTER TABLE {table} RENAME TO x",
    "DROP TABLE {table}",
    "DROP TABLE {table} CASCADE",
    "CREATE TRIGGER t BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION audit.move_forward()",
    "CREATE RULE r AS ON DELETE TO {table} DO INSTEAD NOTHING",
    "COPY {table} TO PROGRAM 'true'",
    "COPY {table} FROM PROGRAM 'true'",
)


@pytest.fixture
async def filled(database_urls: DatabaseUrls, sequencer_url: str) -> DatabaseUrls:
    await fill(sequencer_url)
    return database_urls


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.table)
async def test_what_stands_is_refused_any_change_by_its_owner(filled: DatabaseUrls, target: Target):
    """The owner of the tables can neither change, replace nor remove a row with anything that SQL has for rows."""
    before = await contents(filled.owner)
    async with await psycopg.AsyncConnection.connect(conninfo(filled.owner), autocommit=True) as connection:
        for statement in target.changes():
            await assert_refused(connection, statement, GROWS)

    assert await contents(filled.owner) == before


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.table)
async def test_what_stands_is_refused_any_change_by_replication(filled: DatabaseUrls, superuser_url: str, target: Target):
    """A superuser under session_replication_role = replica, which skips ordinary triggers, is refused the same."""
    before = await contents(filled.owner)
    async with await psycopg.AsyncConnection.connect(conninfo(superuser_url), autocommit=True) as connection:
        await connection.execute("SET session_replication_role = replica")
        for statement in target.changes():
            await assert_refused(connection, statement, GROWS)

    assert await contents(filled.owner) == before


async def test_truncating_several_tables_at_once_is_refused(filled: DatabaseUrls):
    """A list of tables, of which any only grows, is not emptied; a shelf goes with its parent, and stays with it."""
    before = await contents(filled.owner)
    async with await psycopg.AsyncConnection.connect(conninfo(filled.owner), autocommit=True) as connection:
        await assert_refused(connection, "TRUNCATE audit.intake, audit.checkpoint, audit.leaf", GROWS)
        await assert_refused(connection, "TRUNCATE audit.intake, audit.body", GROWS)

    assert await contents(filled.owner) == before


@pytest.mark.parametrize("role", APPLICATION_ROLES)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.table)
async def test_no_role_of_ours_changes_what_stands(filled: DatabaseUrls, sequencer_url: str, role: str, target: Target):
    """To every role that a process of ours has, changing rows, triggers and tables is refused by permission."""
    before = await contents(filled.owner)
    async with await psycopg.AsyncConnection.connect(conninfo(_url(filled, sequencer_url, role)), autocommit=True) as connection:
        for statement in (*target.changes(), *(alteration.format(table=target.table) for alteration in ALTERATIONS)):
            await assert_refused(connection, statement)

    assert await contents(filled.owner) == before


@pytest.mark.parametrize("role", APPLICATION_ROLES)
async def test_no_role_of_ours_escapes_its_rights(filled: DatabaseUrls, sequencer_url: str, role: str):
    """No role becomes another, skips triggers, makes anything in any schema, or reaches files and programs of the server."""
    async with await psycopg.AsyncConnection.connect(conninfo(_url(filled, sequencer_url, role)), autocommit=True) as connection:
        for statement in ESCAPES:
            await assert_refused(connection, statement)


async def test_the_head_moves_forward_only(filled: DatabaseUrls, sequencer_url: str, superuser_url: str):
    """The sequencer moves the head on; back and sideways are refused to it, to the owner and to replication."""
    two = "UPDATE audit.head SET size = 2"
    async with await psycopg.AsyncConnection.connect(conninfo(sequencer_url), autocommit=True) as connection:
        assert (await connection.execute(two)).rowcount == 1
    for url in (sequencer_url, filled.owner, superuser_url):
        async with await psycopg.AsyncConnection.connect(conninfo(url), autocommit=True) as connection:
            if url == superuser_url:
                await connection.execute("SET session_replication_role = replica")
            for statement in (two, "UPDATE audit.head SET size = 1", "UPDATE audit.head SET chain = decode(repeat('00', 32), 'hex')"):
                await assert_refused(connection, statement, "moves forward, not to")


async def test_the_log_keeps_its_name(filled: DatabaseUrls, sequencer_url: str):
    """The name of the log is refused any change: to the sequencer by permission, to the owner by the trigger; no second head is made."""
    renamed = "UPDATE audit.head SET log = gen_random_uuid(), size = 4"
    async with await psycopg.AsyncConnection.connect(conninfo(sequencer_url), autocommit=True) as connection:
        await assert_refused(connection, renamed, "permission denied")
        await assert_refused(connection, "INSERT INTO audit.head DEFAULT VALUES", "permission denied")
    async with await psycopg.AsyncConnection.connect(conninfo(filled.owner), autocommit=True) as connection:
        await assert_refused(connection, renamed, "moves forward, not to 4 of log")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await connection.execute("INSERT INTO audit.head DEFAULT VALUES")
        with pytest.raises(psycopg.errors.CheckViolation):
            await connection.execute("INSERT INTO audit.head (one) VALUES (false)")


async def test_a_head_whose_frontier_does_not_fit_is_refused(database_urls: DatabaseUrls, sequencer_url: str):
    """A tree of three leaves has two hashes at its front: one or three are refused."""
    async with await psycopg.AsyncConnection.connect(conninfo(sequencer_url), autocommit=True) as connection:
        for hashes in (0, 1, 3):
            with pytest.raises(psycopg.errors.CheckViolation):
                await connection.execute("UPDATE audit.head SET size = 3, frontier = %s", [bytes(32 * hashes)])
        await connection.execute("UPDATE audit.head SET size = 3, frontier = %s", [bytes(64)])


async def test_only_the_sequencer_takes_from_the_intake(filled: DatabaseUrls, sequencer_url: str):
    """Writers hand over what they can neither read, change nor take back; the sequencer takes it, and cannot add to it."""
    row = "INSERT INTO audit.intake VALUES (gen_random_uuid(), 'd400', now(), 'x')"
    for role in ("registry", "intake", "log"):
        async with await psycopg.AsyncConnection.connect(conninfo(_url(filled, sequencer_url, role)), autocommit=True) as connection:
            for statement in ("SELECT * FROM audit.intake", "DELETE FROM audit.intake", "UPDATE audit.intake SET body = 'y'"):
                await assert_refused(connection, statement, "permission denied")
            if role == "log":
                await assert_refused(connection, row, "permission denied")
            else:
                await connection.execute(row)
    async with await psycopg.AsyncConnection.connect(conninfo(sequencer_url), autocommit=True) as connection:
        await assert_refused(connection, row, "permission denied")
        assert (await connection.execute("DELETE FROM audit.intake RETURNING body")).rowcount == 2


async def test_every_trigger_of_the_log_fires_always(filled: DatabaseUrls):
    """Each table that only grows, shelves of later among them, has its triggers, enabled ALWAYS."""
    query = """
        SELECT c.oid::regclass::text, array_agg(t.tgname::text || ' ' || t.tgenabled::text ORDER BY t.tgname)
        FROM pg_class AS c JOIN pg_trigger AS t ON t.tgrelid = c.oid WHERE c.relnamespace = 'audit'::regnamespace GROUP BY c.oid
    """
    async with await psycopg.AsyncConnection.connect(conninfo(filled.owner)) as connection:
        found = dict(await (await connection.execute(query)).fetchall())

    wanted = {target.table: ["no_change A", "no_truncate A"] for target in TARGETS}
    assert found == wanted | {"audit.head": ["move_forward A", "no_delete A", "no_truncate A"]}


def _url(urls: DatabaseUrls, sequencer_url: str, role: str) -> str:
    return sequencer_url if role == "sequencer" else str(getattr(urls, role))
