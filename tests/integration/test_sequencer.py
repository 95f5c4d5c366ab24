"""The sequencer on a real PostgreSQL: what stands in the log after a batch, whatever stood in the intake."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from app.audit.entry import Entry
from app.audit.gaps import Gaps
from app.audit.intake import Intake
from app.audit.leaf import GENESIS, chain_hash, leaf_bytes, leaf_hash
from app.audit.sequencer import Batch, Sequencer
from app.audit.tree import Frontier
from app.clock import ManualClock
from app.database import DatabaseUrls, conninfo, create_engine
from app.observability.metrics import Metrics
from app.settings import DatabaseSettings
from tests.fixtures.entries import numbered
from tests.fixtures.postgres import TIMEOUT_MS

AT = datetime(2026, 1, 31, 23, 59, 59, 6, tzinfo=UTC)


@pytest.fixture
async def intake(database_urls: DatabaseUrls) -> AsyncIterator[Intake]:
    engine = create_engine(database_urls.intake, DatabaseSettings())
    yield Intake(engine, Metrics(), Gaps(ManualClock()), timeout_ms=TIMEOUT_MS)
    await engine.dispose()


@pytest.fixture
async def connection(sequencer_url: str) -> AsyncIterator[psycopg.AsyncConnection]:
    """As the sequencer has it: its role, autocommit."""
    async with await psycopg.AsyncConnection.connect(conninfo(sequencer_url), autocommit=True) as connection:
        yield connection


@pytest.fixture
def sequencer() -> Sequencer:
    return Sequencer(ManualClock())


def entry(number: int, *, recorded: datetime = AT, tenant: str = "a") -> Entry:
    return numbered(number, recorded=recorded, tenant=tenant)


async def query(connection: psycopg.AsyncConnection, statement: str) -> list[tuple[Any, ...]]:
    return await (await connection.execute(statement)).fetchall()


async def is_whole(connection: psycopg.AsyncConnection) -> int:
    """The size of the log, every hash in it rebuilt from its bodies and compared."""
    rows = await query(
        connection,
        "SELECT seq, leaf_hash, chain_hash, leaf.shelf, body FROM audit.leaf JOIN audit.body USING (seq) ORDER BY seq",
    )
    frontier, chain = Frontier(), GENESIS
    for number, (seq, leaf, link, shelf, body) in enumerate(rows):
        rebuilt = leaf_hash(leaf_bytes(number, shelf.split("-")[0], body))
        chain = chain_hash(chain, rebuilt)
        frontier.append(rebuilt)
        assert (number, rebuilt, chain) == (seq, leaf, link)
    assert [(len(rows), chain, frontier.packed)] == await query(connection, "SELECT size, chain, frontier FROM audit.head")
    return len(rows)


async def test_entries_enter_the_log_in_the_order_in_which_they_were_made(
    sequencer: Sequencer, connection: psycopg.AsyncConnection, intake: Intake
):
    """Numbers have no gap, the tree holds every body, and the intake is empty."""
    entries = [entry(number) for number in range(5)]
    await intake.write(*entries[3:])
    await intake.write(*entries[:3])

    assert await sequencer.sequence(connection) == Batch(size=5, appended=5)

    assert await query(connection, "SELECT body FROM audit.body ORDER BY seq") == [(one.body,) for one in entries]
    assert await is_whole(connection) == 5
    assert await query(connection, "SELECT count(*) FROM audit.intake") == [(0,)]
