"""What the schema itself holds, whatever the code does: each role's least rights, and history that only grows."""

from datetime import UTC, datetime

import psycopg
import pytest
from psycopg import errors

from app.database import DatabaseUrls, conninfo
from app.schema import migrate

HISTORY_LINE = (
    "INSERT INTO registry.quota_history (tenant, version, operation, after, diff, operator, reason, at) "
    "VALUES ('a', 1, 'create', '{}', '[]', 'op', '', now())"
)
INTAKE_ROW = "INSERT INTO audit.intake (id, retention, recorded, body) VALUES (gen_random_uuid(), 'd400', now(), 'x')"
FORBIDDEN = [
    "UPDATE {table} SET {column} = {column}",
    "DELETE FROM {table}",
    "TRUNCATE {table}",
    "ALTER TABLE {table} ADD COLUMN x int",
    "ALTER TABLE {table} DISABLE TRIGGER ALL",
    "DROP TABLE {table}",
    "CREATE TRIGGER t BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION registry.refuse_change()",
]
TABLES = {"registry.quota_history": "reason", "audit.intake": "retention"}


async def run(url: str, *statements: str) -> None:
    async with await psycopg.AsyncConnection.connect(conninfo(url)) as connection:
        for statement in statements:
            await connection.execute(statement)


@pytest.fixture
async def filled(database_urls: DatabaseUrls) -> DatabaseUrls:
    await run(database_urls.registry, HISTORY_LINE, INTAKE_ROW)
    await run(database_urls.intake, INTAKE_ROW)
    return database_urls


async def counts(urls: DatabaseUrls) -> tuple | None:
    query = "SELECT (SELECT count(*) FROM registry.quota_history), (SELECT count(*) FROM audit.intake)"
    async with await psycopg.AsyncConnection.connect(conninfo(urls.owner)) as connection:
        return await (await connection.execute(query)).fetchone()


@pytest.mark.parametrize("role", ["registry", "intake", "log"])
async def test_no_serving_role_can_change_what_is_recorded(filled: DatabaseUrls, role: str):
    """UPDATE, DELETE, TRUNCATE, ALTER, DROP and triggers on history and intake are refused to every role of serve."""
    for table, column in TABLES.items():
        for statement in FORBIDDEN:
            with pytest.raises(errors.InsufficientPrivilege):
                await run(getattr(filled, role), statement.format(table=table, column=column))

    assert await counts(filled) == (1, 2)


@pytest.mark.parametrize("role", ["registry", "intake"])
async def test_writers_cannot_switch_triggers_off(filled: DatabaseUrls, role: str):
    """`session_replication_role`, which would skip triggers, is not theirs to set."""
    with pytest.raises(errors.InsufficientPrivilege):
        await run(getattr(filled, role), "SET session_replication_role = replica")


@pytest.mark.parametrize(
    "statement", ["UPDATE registry.quota_history SET reason = ''", "DELETE FROM registry.quota_history", "TRUNCATE registry.quota_history"]
)
async def test_history_only_grows_even_for_its_owner(filled: DatabaseUrls, statement: str):
    """The owner of the table cannot rewrite history by accident either."""
    with pytest.raises(errors.InsufficientPrivilege, match="only grows"):
        await run(filled.owner, statement)

    assert await counts(filled) == (1, 2)


@pytest.mark.parametrize("role", ["registry", "intake", "log"])
async def test_nobody_of_serve_reads_the_intake(filled: DatabaseUrls, role: str):
    """Writers hand entries over and cannot read them, and the reader of the log reads the log, not its intake."""
    with pytest.raises(errors.InsufficientPrivilege):
        await run(getattr(filled, role), "SELECT * FROM audit.intake")


@pytest.mark.parametrize("role", ["intake", "log"])
async def test_the_registry_is_closed_to_other_roles(filled: DatabaseUrls, role: str):
    """Quotas and keys are read and written by the registry role alone."""
    for table in ("tenant_quota", "quota_history", "api_key", "approval"):
        with pytest.raises(errors.InsufficientPrivilege):
            await run(getattr(filled, role), f"SELECT * FROM registry.{table}")  # noqa: S608 - constants


async def test_no_serving_role_deletes_keys_or_tenants(filled: DatabaseUrls):
    """A tenant or key is marked, never removed, so that what happened stays told."""
    for table in ("tenant_quota", "api_key", "approval"):
        with pytest.raises(errors.InsufficientPrivilege):
            await run(filled.registry, f"DELETE FROM registry.{table}")  # noqa: S608 - constants


@pytest.mark.parametrize("role", ["registry", "intake", "log"])
async def test_no_serving_role_makes_tables(filled: DatabaseUrls, role: str):
    """No role of serve can create anything in any schema."""
    for schema in ("public", "registry", "audit"):
        with pytest.raises(errors.InsufficientPrivilege):
            await run(getattr(filled, role), f"CREATE TABLE {schema}.x ()")


async def test_migrating_again_changes_nothing(database_urls: DatabaseUrls):
    """A second migration finds nothing to do and keeps every row."""
    await run(database_urls.registry, HISTORY_LINE)
    await migrate(database_urls.owner)

    assert await counts(database_urls) == (1, 0)


async def test_always_triggers_stand_on_history(database_urls: DatabaseUrls):
    """The triggers fire whatever the session's replication role is."""
    query = "SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 'registry.quota_history'::regclass ORDER BY tgname"
    async with await psycopg.AsyncConnection.connect(conninfo(database_urls.owner)) as connection:
        triggers = await (await connection.execute(query)).fetchall()

    assert triggers == [("no_change", "A"), ("no_truncate", "A")]


@pytest.mark.parametrize("retention", ["d1", "x", "d0400", "d36500"])
async def test_retention_is_a_class(database_urls: DatabaseUrls, retention: str):
    """The database refuses a retention that is no class of days."""
    with pytest.raises(errors.CheckViolation):
        await run(database_urls.intake, INTAKE_ROW.replace("d400", retention))


async def test_instants_keep_microseconds(database_urls: DatabaseUrls):
    """What is stored as a time comes back to the microsecond."""
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    async with await psycopg.AsyncConnection.connect(conninfo(database_urls.owner)) as connection:
        await connection.execute("INSERT INTO audit.intake VALUES (gen_random_uuid(), 'd400', %s, 'x')", [at])
        row = await (await connection.execute("SELECT recorded FROM audit.intake")).fetchone()

    assert row == (at,)
