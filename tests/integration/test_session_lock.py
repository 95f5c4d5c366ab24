"""Locks that a session holds, on a real PostgreSQL."""

import pytest
from sqlalchemy import text

from app.database import DatabaseDown, create_engine
from app.session_lock import lock_session
from app.setting_sections import DatabaseSettings
from tests.fixtures.postgres import rows_of

KIND, OTHER_KIND = 0x51_0C_1C_F0, 0x51_0C_1C_F1
WITHIN_S = 10.0


@pytest.fixture
async def engine(database_urls):
    engine = create_engine(database_urls.intake, DatabaseSettings())
    yield engine
    await engine.dispose()


async def test_a_lock_is_one_session_s_until_it_ends(engine):
    """Of one kind and name there is one holder; other names and kinds are other locks."""
    async with lock_session(engine, WITHIN_S) as second:
        async with lock_session(engine, WITHIN_S) as first:
            assert await first.take(KIND, "night")
            assert not await second.take(KIND, "night")
            assert await second.take(KIND, "another")
            assert await second.take(OTHER_KIND, "night")
        assert await second.take(KIND, "night")


async def test_who_lost_the_connection_lost_the_lock_and_can_say_nothing(engine, superuser_url):
    """The server ends the session: its lock is free, and what the holder would still do is DatabaseDown."""
    async with lock_session(engine, WITHIN_S) as lost:
        assert await lost.take(KIND, "night")
        pid = await lost.run(lambda connection: connection.scalar(text("SELECT pg_backend_pid()")))
        await rows_of(superuser_url, "SELECT pg_terminate_backend(%s, 5000)", pid)
        with pytest.raises(DatabaseDown):
            await lost.run(lambda connection: connection.execute(text("SELECT 1")))

        async with lock_session(engine, WITHIN_S) as next_one:
            assert await next_one.take(KIND, "night")
