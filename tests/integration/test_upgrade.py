"""An upgrade of a database that an earlier release has written to."""

import asyncio
import uuid
from collections.abc import AsyncIterator

import orjson
import psycopg
import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, pool, text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine
from uuid_utils import uuid7

from app.access import Access
from app.audit.sequencing.sequencer import Sequencer
from app.clock import ManualClock
from app.database import SEQUENCER, SchemaBehind, conninfo, give_database
from app.instants import rfc3339
from app.observability.metrics import Metrics
from app.schema import MIGRATIONS, migrate
from app.transaction import Transactions
from tests.fixtures.postgres import TIMEOUT_MS, Server, rows_of
from tests.fixtures.signing import MADE

HAND_OVER = "INSERT INTO audit.intake (id, retention, recorded, body) VALUES (%s, 'd400', %s, %s)"


def before_the_log(owner_url: str) -> None:
    """The schema of the release that had an intake and no log."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    engine = create_engine(owner_url, poolclass=pool.NullPool)
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")


@pytest.fixture
async def old_database(postgres_server: Server) -> AsyncIterator[str]:
    """The name of a database of the release before the log."""
    name = f"test_{uuid.uuid4().hex}"
    async with await psycopg.AsyncConnection.connect(conninfo(postgres_server.admin_url), autocommit=True) as connection:
        await connection.execute(f"CREATE DATABASE {name}")
        await give_database(connection, name)
        await asyncio.to_thread(before_the_log, within(postgres_server.urls.owner, name))
        yield name
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def within(url: str, database: str) -> str:
    return make_url(url).set(database=database).render_as_string(hide_password=False)


def old_entry(identity: str) -> bytes:
    """An entry as that release wrote it, with members that its kind has no more."""
    envelope = {"v": 1, "id": identity, "kind": "key.created", "recorded": rfc3339(MADE), "operator": "cli:root", "tenant": None}
    return orjson.dumps(envelope | {"outcome": "done", "name": "gateway-1", "roles": ["gateway"]}, option=orjson.OPT_SORT_KEYS)


async def test_a_database_of_an_earlier_release_is_told(postgres_server: Server, old_database: str):
    """What needs tables that are not there yet says so with the remedy."""
    engine = create_async_engine(within(postgres_server.urls.registry, old_database))
    transactions = Transactions(engine, Metrics(), call="test", timeout_ms=TIMEOUT_MS)
    with pytest.raises(SchemaBehind, match=r"older than this version of Sluice: .*registry\.approval") as behind:
        await transactions.run(lambda connection: connection.execute(text("SELECT * FROM registry.approval")))
    await engine.dispose()
    assert "sluice serve" in behind.value.advice


async def test_what_was_handed_over_before_there_was_a_log_comes_first_in_it(postgres_server: Server, old_database: str):
    """Old entries are kept as they were written; a body that is larger than any may be now stops neither the upgrade nor the queue."""
    intake, identity, large = within(postgres_server.urls.intake, old_database), str(uuid7()), b"x" * 1_100_000
    await rows_of(intake, HAND_OVER, identity, MADE, old_entry(identity))
    await rows_of(intake, HAND_OVER, str(uuid7()), MADE, large)
    await migrate(within(postgres_server.urls.owner, old_database))

    with pytest.raises(psycopg.errors.CheckViolation):
        await rows_of(intake, HAND_OVER, str(uuid7()), MADE, large)
    sequencer_url = Access(postgres_server.var / "secrets").url(SEQUENCER, old_database)
    async with await psycopg.AsyncConnection.connect(conninfo(sequencer_url), autocommit=True) as connection:
        batch = await Sequencer(ManualClock()).sequence(connection)
    rows = await rows_of(sequencer_url, "SELECT kind, body FROM audit.body ORDER BY seq")

    assert (batch.size, batch.malformed) == (2, 1)
    assert (rows[0][0], bytes(rows[0][1])) == ("key.created", old_entry(identity))
    assert (rows[1][0], orjson.loads(bytes(rows[1][1]))["bytes"]) == ("audit.malformed", 1_100_000)
