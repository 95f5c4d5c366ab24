"""Each role's rights, as the catalog has them: a right more or less than this table is a finding."""

import psycopg
import pytest

from app.database import ROLES, DatabaseUrls, conninfo

RIGHTS = {
    "registry.tenant_quota": {"sluice_registry": "SELECT INSERT UPDATE"},
    "registry.quota_history": {"sluice_registry": "SELECT INSERT"},
    "registry.api_key": {"sluice_registry": "SELECT INSERT UPDATE"},
    "registry.approval": {
        "sluice_registry": "SELECT INSERT "
        "UPDATE(state) UPDATE(answered) UPDATE(answered_by) UPDATE(answered_key) UPDATE(answered_reason) "
        "UPDATE(revoked) UPDATE(revoked_by) UPDATE(revoked_key) UPDATE(revoked_reason) UPDATE(changed)"
    },
    "registry.subject_key": {"sluice_registry": "SELECT INSERT"},
    "registry.alembic_version": {},
    "audit.intake": {"sluice_registry": "INSERT", "sluice_intake": "INSERT", "sluice_sequencer": "SELECT DELETE"},
    "audit.head": {"sluice_log": "SELECT", "sluice_sequencer": "SELECT UPDATE(size) UPDATE(chain) UPDATE(frontier)"},
    "audit.leaf": {"sluice_log": "SELECT", "sluice_sequencer": "SELECT INSERT"},
    "audit.subtree": {"sluice_log": "SELECT", "sluice_sequencer": "SELECT INSERT"},
    "audit.body": {"sluice_log": "SELECT", "sluice_sequencer": "SELECT INSERT"},
    "audit.body_d400_2026_11": {},
    "audit.checkpoint": {"sluice_log": "SELECT", "sluice_sequencer": "SELECT INSERT"},
    "audit.certificate": {"sluice_log": "SELECT", "sluice_sequencer": "SELECT INSERT"},
    "audit.backlog": {"sluice_log": "SELECT"},
    "audit.reports_waiting": {"sluice_log": "SELECT"},
}
"""Relation -> role -> what it may; the owner, who migrates, may everything. Whoever is not named may nothing."""

TABLE_PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN")
COLUMN_PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "REFERENCES")
GRANTEES = (*(role for role in ROLES if role != "sluice_owner"), "public")
SCHEMAS = {
    ("sluice_registry", "registry", "USAGE"),
    ("sluice_registry", "audit", "USAGE"),
    ("sluice_intake", "audit", "USAGE"),
    ("sluice_log", "audit", "USAGE"),
    ("sluice_sequencer", "audit", "USAGE"),
}

# A privilege on a column that does not follow from one on the table stands as PRIVILEGE(column).
TABLES = """
WITH relation AS (SELECT oid, oid::regclass::text AS name FROM pg_class
                  WHERE relnamespace::regnamespace::text IN ('audit', 'registry') AND relkind NOT IN ('i', 'I'))
SELECT name, grantee, privilege FROM relation, unnest(%s::text[]) AS grantee, unnest(%s::text[]) AS privilege
WHERE has_table_privilege(grantee, oid, privilege)
UNION ALL
SELECT name, grantee, format('%%s(%%s)', privilege, attname)
FROM relation JOIN pg_attribute ON attrelid = relation.oid AND attnum > 0, unnest(%s::text[]) AS grantee, unnest(%s::text[]) AS privilege
WHERE has_column_privilege(grantee, relation.oid, attnum, privilege) AND NOT has_table_privilege(grantee, relation.oid, privilege)
"""
NAMES = (
    "SELECT oid::regclass::text FROM pg_class WHERE relnamespace::regnamespace::text IN ('audit', 'registry') AND relkind NOT IN ('i', 'I')"
)


async def query(url: str, statement: str, *parameters: object) -> set[tuple]:
    async with await psycopg.AsyncConnection.connect(conninfo(url)) as connection:
        return set(await (await connection.execute(statement, parameters or None)).fetchall())


@pytest.fixture
async def owner(database_urls: DatabaseUrls, sequencer_url: str) -> str:
    """The owner's URL of a database in which a shelf was made."""
    await query(sequencer_url, "SELECT audit.make_shelf('d400', '2026-11-30')")
    return database_urls.owner


async def test_each_role_has_these_rights_on_tables_and_no_other(owner: str):
    """What each role, and everybody, may do with each table, view, sequence and shelf is exactly what stands above."""
    found = await query(owner, TABLES, list(GRANTEES), list(TABLE_PRIVILEGES), list(GRANTEES), list(COLUMN_PRIVILEGES))
    wanted = {(name, role, right) for name, rights in RIGHTS.items() for role, words in rights.items() for right in words.split()}

    assert found == wanted
    assert {name for (name,) in await query(owner, NAMES)} == set(RIGHTS)


async def test_each_role_has_these_rights_on_schemas_and_no_other(owner: str):
    """Nobody makes anything in a schema or in the database, not even for a while, and only the registry's role enters `registry`."""
    statement = """
        SELECT grantee, nspname, privilege
        FROM pg_namespace, unnest(%s::text[]) AS grantee, unnest(ARRAY['CREATE', 'USAGE']) AS privilege
        WHERE nspname IN ('audit', 'registry', 'public') AND has_schema_privilege(grantee, oid, privilege)
    """
    on_database = """
        SELECT grantee, privilege FROM unnest(%s::text[]) AS grantee, unnest(ARRAY['CREATE', 'TEMPORARY']) AS privilege
        WHERE has_database_privilege(grantee, current_database(), privilege)
    """

    assert await query(owner, statement, list(GRANTEES)) == SCHEMAS
    assert await query(owner, on_database, list(GRANTEES)) == set()


async def test_functions_are_run_by_whom_they_are_for(owner: str):
    """Functions with the owner's rights are the sequencer's alone, and find names where nobody else can put any."""
    statement = """
        SELECT proname::text, grantee, proconfig FROM pg_proc, unnest(%s::text[]) AS grantee
        WHERE pronamespace::regnamespace::text IN ('audit', 'registry') AND prosecdef AND has_function_privilege(grantee, oid, 'EXECUTE')
    """
    async with await psycopg.AsyncConnection.connect(conninfo(owner)) as connection:
        found = await (await connection.execute(statement, [list(GRANTEES)])).fetchall()

    assert found == [("make_shelf", "sluice_sequencer", ["search_path=pg_catalog, pg_temp"])]


async def test_roles_are_ordinary_and_of_no_group(owner: str):
    """No role of ours is a superuser, makes roles or databases, replicates, passes row security, or belongs to another role."""
    statement = """
        SELECT rolname::text, rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls,
               EXISTS (SELECT FROM pg_auth_members WHERE member = pg_roles.oid)
        FROM pg_roles WHERE rolname = ANY (%s)
    """

    assert await query(owner, statement, list(ROLES)) == {(role, False, False) for role in ROLES}
