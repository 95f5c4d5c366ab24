"""The embedded server."""

import psycopg

from app.database import conninfo


async def test_each_test_has_a_database(database_urls):
    """A test reads a fresh migrated database."""
    async with await psycopg.AsyncConnection.connect(conninfo(database_urls.registry)) as connection:
        assert await (await connection.execute("SELECT count(*) FROM registry.tenant_quota")).fetchone() == (0,)


async def test_two(database_urls):
    """A test reads a fresh migrated database."""
    async with await psycopg.AsyncConnection.connect(conninfo(database_urls.registry)) as connection:
        assert await (await connection.execute("SELECT count(*) FROM registry.tenant_quota")).fetchone() == (0,)
