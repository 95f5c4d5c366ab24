"""Reading the log while PostgreSQL hangs, goes, or is read by somebody who does not read on."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.api.audit import ExportResponse
from app.audit.reading.entries import Filters, Page, SearchTooLong
from app.audit.reading.export import Wanted
from app.database import DatabaseDown, DatabaseUrls, create_engine
from app.observability.metrics import Metrics
from app.setting_sections import DatabaseSettings
from app.transaction import Transactions
from tests.fixtures.log import GrownLog
from tests.fixtures.proc import frozen

TIMEOUT_MS = 300
QUICK_S = 2.0


@pytest.fixture
async def engine(database_urls: DatabaseUrls) -> AsyncIterator[AsyncEngine]:
    """A pool of one connection: whoever keeps it keeps everybody out."""
    engine = create_engine(database_urls.log, DatabaseSettings(pool_size=1, timeout_ms=TIMEOUT_MS))
    yield engine
    await engine.dispose()


@pytest.fixture
def transactions(engine: AsyncEngine) -> Transactions:
    return Transactions(engine, Metrics(), call="test", timeout_ms=TIMEOUT_MS)


async def pids(connection: AsyncConnection) -> AsyncGenerator[int]:
    """The server's process, again and again."""
    while True:
        yield (await connection.execute(text("SELECT pg_backend_pid()"))).scalar_one()


async def one(transactions: Transactions) -> int:
    """A transaction of another reader."""

    async def look(connection: AsyncConnection) -> int:
        return (await connection.execute(text("SELECT 1"))).scalar_one()

    return await transactions.run(look)


async def test_a_stream_that_is_closed_gives_its_connection_back(transactions: Transactions):
    """Whoever stops reading in the middle keeps nobody else from the pool."""
    async with aclosing(transactions.stream(pids)) as items:
        assert await anext(items) == await anext(items)
        with pytest.raises(DatabaseDown):
            await one(transactions)

    assert await one(transactions) == 1


async def test_a_stream_cannot_write(transactions: Transactions):
    """It reads one state of the database and changes nothing."""

    async def write(connection: AsyncConnection) -> AsyncGenerator[None]:
        await connection.execute(text("CREATE TEMPORARY TABLE t (a int)"))
        yield

    async def shown(connection: AsyncConnection) -> AsyncGenerator[str]:
        yield (await connection.execute(text("SHOW transaction_isolation"))).scalar_one()

    with pytest.raises(Exception, match="read-only"):
        await anext(transactions.stream(write))
    assert [level async for level in transactions.stream(shown)] == ["repeatable read"]


async def test_a_server_that_hangs_in_a_stream_holds_nobody(transactions: Transactions):
    """An item that does not come in time is an outage, the reader goes on at once, and the connection is usable later."""
    items = transactions.stream(pids)
    pid = await anext(items)
    with frozen(pid):
        began = time.perf_counter()
        with pytest.raises(DatabaseDown, match="no answer in time"):
            await anext(items)
        assert time.perf_counter() - began < QUICK_S

    while True:
        try:
            assert await one(transactions) == 1
            break
        except DatabaseDown:
            assert time.perf_counter() - began < 30


async def test_a_reader_that_leaves_ends_its_stream(transactions: Transactions):
    """A cancelled reader's transaction ends with it."""
    arrived = asyncio.Event()

    async def read() -> None:
        async with aclosing(transactions.stream(pids)) as items:
            async for _ in items:
                arrived.set()
                await asyncio.sleep(3600)

    reader = asyncio.create_task(read())
    await arrived.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader

    assert await one(transactions) == 1


async def test_a_reader_that_leaves_in_a_hurry_ends_its_stream(transactions: Transactions):
    """One that is cancelled over and over, as frameworks do, leaves no connection behind, even in the middle of a statement."""

    async def slow(connection: AsyncConnection) -> AsyncGenerator[int]:
        for number in range(100):
            await connection.execute(text("SELECT pg_sleep(0.1)"))
            yield number

    async def read() -> None:
        async with aclosing(transactions.stream(slow)) as items:
            async for _ in items:
                pass

    reader = asyncio.create_task(read())
    await asyncio.sleep(0)
    while not reader.done():
        reader.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await reader

    assert await one(transactions) == 1


async def test_an_answer_that_is_cut_off_does_not_end_well(grown_log: GrownLog):
    """Where the log goes in the middle of an export over HTTP the last message of the answer is not sent, so the caller sees it."""
    await grown_log.grow(600)
    await grown_log.sign()
    response = ExportResponse(await grown_log.log.export(Wanted(), operator="auditor"))
    sent = []

    async def send(message: dict[str, object]) -> None:
        sent.append(message)
        if len(sent) == 3:
            await grown_log.superuser.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'sluice_log'")

    await response.stream_response(send)

    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body", "http.response.body"]
    assert all(message["more_body"] for message in sent[1:])


async def test_a_whole_export_ends_its_answer(grown_log: GrownLog):
    """The last message says that it is the last."""
    await grown_log.grow(3)
    await grown_log.sign()
    response = ExportResponse(await grown_log.log.export(Wanted(), operator="auditor"))
    sent = []

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    await response.stream_response(send)

    assert sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


async def test_a_search_that_takes_too_long_says_so(grown_log: GrownLog):
    """A page that is not found in time is refused with what would narrow it, and is no outage."""
    await grown_log.grow(1)
    async with grown_log.superuser.transaction():
        await grown_log.superuser.execute("LOCK TABLE audit.body")
        with pytest.raises(SearchTooLong, match="tenant: not found in time"):
            await grown_log.log.entries(Filters(tenant="a"), Page(10), operator="auditor")

    assert len((await grown_log.log.entries(Filters(tenant="a"), Page(10), operator="auditor")).entries) == 1
