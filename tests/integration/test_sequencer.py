"""The sequencer on a real PostgreSQL: what stands in the log after a batch, whatever stood in the intake."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import orjson
import psycopg
import pytest

from app.audit.intake.gaps import Gaps
from app.audit.intake.intake import Intake
from app.audit.reading.hashes import LogDamaged
from app.audit.sequencing.sequencer import Batch, Sequencer
from app.clock import ManualClock
from app.database import DatabaseUrls, conninfo, create_engine
from app.observability.metrics import Metrics
from app.setting_sections import DatabaseSettings
from tests.fixtures.entries import AT, numbered
from tests.fixtures.postgres import TIMEOUT_MS, rows_of
from tests.fixtures.serve import report
from tests.fixtures.whole_log import size_of_whole_log


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


async def put(url: str, identity: UUID, body: bytes, *, recorded: str = "2026-01-02 03:04:05.000006Z", retention: str = "d365") -> None:
    """Hand over a row as a writer that is broken or in wrong hands would."""
    await rows_of(url, "INSERT INTO audit.intake VALUES (%s, %s, %s, %s)", identity, retention, recorded, body)


async def bodies(url: str) -> list[bytes]:
    return [body for (body,) in await rows_of(url, "SELECT body FROM audit.body ORDER BY seq")]


async def shelves(url: str) -> list[str]:
    return [shelf for (shelf,) in await rows_of(url, "SELECT shelf FROM audit.leaf ORDER BY seq")]


async def test_entries_enter_the_log_in_the_order_in_which_they_were_made(
    sequencer: Sequencer, connection: psycopg.AsyncConnection, intake: Intake, database_urls: DatabaseUrls
):
    """Numbers have no gap, the tree holds every body, and the intake is empty."""
    entries = [numbered(number) for number in range(5)]
    await intake.write(*entries[3:])
    await intake.write(*entries[:3])

    assert await sequencer.sequence(connection) == Batch(size=5, appended=5)

    assert await bodies(database_urls.log) == [one.body for one in entries]
    assert await size_of_whole_log(database_urls.owner) == 5
    assert await rows_of(database_urls.owner, "SELECT count(*) FROM audit.intake") == [(0,)]


async def test_another_sequencer_goes_on_where_the_last_one_ended(
    connection: psycopg.AsyncConnection, intake: Intake, database_urls: DatabaseUrls
):
    """Nothing of the log is in memory alone: each batch is one log's next part, whoever adds it."""
    for number in range(3):
        await intake.write(*(numbered(number * 100 + each) for each in range(100)))
        assert (await Sequencer(ManualClock()).sequence(connection)).size == (number + 1) * 100

    assert await size_of_whole_log(database_urls.owner) == 300


async def test_an_empty_intake_leaves_the_log_alone(sequencer: Sequencer, connection: psycopg.AsyncConnection, database_urls: DatabaseUrls):
    """Without rows nothing is written."""
    before = await rows_of(database_urls.owner, "SELECT xmin, * FROM audit.head")

    assert await sequencer.sequence(connection) == Batch(size=0)
    assert await rows_of(database_urls.owner, "SELECT xmin, * FROM audit.head") == before


async def test_a_batch_is_bounded_and_says_that_more_may_wait(
    connection: psycopg.AsyncConnection, intake: Intake, database_urls: DatabaseUrls
):
    """The oldest rows come first."""
    entries = [numbered(number) for number in range(5)]
    await intake.write(*entries)
    sequencer = Sequencer(ManualClock(), most_rows=3)

    assert await sequencer.sequence(connection) == Batch(size=3, appended=3, full=True)
    assert await sequencer.sequence(connection) == Batch(size=5, appended=2)
    assert await bodies(database_urls.log) == [one.body for one in entries]


async def test_large_rows_make_small_batches(sequencer: Sequencer, connection: psycopg.AsyncConnection, database_urls: DatabaseUrls):
    """Forty rows of a megabyte each do not come into memory at once: 16 MiB a batch."""
    large = (
        "INSERT INTO audit.intake SELECT gen_random_uuid(), 'd365', now(), decode(repeat('78', 1048576), 'hex') FROM generate_series(1, 40)"
    )
    await rows_of(database_urls.intake, large)

    batches = [await sequencer.sequence(connection) for _ in range(3)]
    assert [(batch.appended, batch.full) for batch in batches] == [(16, True), (16, True), (8, False)]
    assert await size_of_whole_log(database_urls.owner) == 40


async def test_an_entry_that_is_written_again_is_in_the_log_once(
    sequencer: Sequencer, connection: psycopg.AsyncConnection, intake: Intake, database_urls: DatabaseUrls
):
    """A writer that did not hear our answer repeats its entries, and none is doubled."""
    first, second = numbered(1), numbered(2)
    await intake.write(first)
    await sequencer.sequence(connection)
    await intake.write(first, second)

    assert await sequencer.sequence(connection) == Batch(size=2, appended=1, repeated=1)
    assert await bodies(database_urls.log) == [first.body, second.body]
    assert await size_of_whole_log(database_urls.owner) == 2


async def test_entries_of_the_sequencers_own_come_first(
    sequencer: Sequencer, connection: psycopg.AsyncConnection, intake: Intake, database_urls: DatabaseUrls
):
    """What the process has to say about itself stands in the log like anything else."""
    own, other = numbered(1), numbered(2)
    await intake.write(other)

    assert await sequencer.sequence(connection, [own]) == Batch(size=2, appended=2)
    assert await bodies(database_urls.log) == [own.body, other.body]


async def test_rows_that_are_no_entries_block_nothing_and_are_not_lost(
    sequencer: Sequencer, connection: psycopg.AsyncConnection, intake: Intake, database_urls: DatabaseUrls
):
    """Each stands in the log within an entry of its own, between the good ones before and after it."""
    one, two, three = (numbered(number) for number in range(3))
    wrong = {two.id: b"\x00\xff no JSON", numbered(9).id: two.body, numbered(9).id: b'{"a":' * 900 + b"1" + b"}" * 900}
    await intake.write(one)
    for identity, body in wrong.items():
        await put(database_urls.intake, identity, body)
    await intake.write(three)

    assert await sequencer.sequence(connection) == Batch(size=5, appended=5, malformed=3)

    found = [orjson.loads(body) for body in await bodies(database_urls.log)]
    kept = {UUID(body["row"]): base64.b64decode(body["base64"]) for body in found if body["kind"] == "audit.malformed"}
    assert kept == wrong
    assert {one.body, three.body} <= set(await bodies(database_urls.log))
    assert await size_of_whole_log(database_urls.owner) == 5


@pytest.mark.parametrize("recorded", ["infinity", "-infinity", "1999-12-31 23:59:59Z", "200000-01-01Z", "0044-03-15 BC"])
async def test_a_row_of_an_instant_that_no_calendar_has_is_kept_as_no_entry(
    sequencer: Sequencer, connection: psycopg.AsyncConnection, database_urls: DatabaseUrls, recorded: str
):
    """What has no month has no shelf, and stands on that of today."""
    await put(database_urls.intake, numbered(1).id, b"x", recorded=recorded)

    assert await sequencer.sequence(connection) == Batch(size=1, appended=1, malformed=1)
    assert await shelves(database_urls.log) == ["d400-2026-01"]


async def test_an_id_that_another_entry_has_hides_nothing(
    sequencer: Sequencer, connection: psycopg.AsyncConnection, intake: Intake, database_urls: DatabaseUrls
):
    """Other bytes under an id that the log has are kept as no entry: a forger can neither replace an entry nor drop one unseen."""
    entry = numbered(1)
    await intake.write(entry)
    await sequencer.sequence(connection)
    await put(database_urls.intake, entry.id, numbered(2).body)

    assert await sequencer.sequence(connection) == Batch(size=2, appended=1, malformed=1)
    assert (await bodies(database_urls.log))[0] == entry.body


async def test_every_body_is_on_the_shelf_of_its_class_and_month(
    sequencer: Sequencer, connection: psycopg.AsyncConnection, intake: Intake, database_urls: DatabaseUrls
):
    """Shelves are made when they are needed; a writer whose clock steps back or runs a year ahead changes shelves, never the order."""
    instants = [
        datetime(2026, 1, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2026, 2, 1, tzinfo=UTC),
        datetime(2026, 1, 31, tzinfo=UTC),  # its clock stepped back
        datetime(2027, 2, 28, tzinfo=UTC),  # 13 months ahead
        datetime(2026, 2, 1, 1, tzinfo=UTC).astimezone(tz=None),
    ]
    entries = [numbered(number, recorded=instant) for number, instant in enumerate(instants)]
    await intake.write(*entries[:3])
    await sequencer.sequence(connection)
    await intake.write(*entries[3:], numbered(5, recorded=instants[0], retention_days=730))
    await sequencer.sequence(connection)

    expected = ["d365-2026-01", "d365-2026-02", "d365-2026-01", "d365-2027-02", "d365-2026-02", "d730-2026-01"]
    assert await shelves(database_urls.log) == expected
    assert await size_of_whole_log(database_urls.owner) == 6


async def test_a_shelf_that_was_taken_back_is_made_again(
    sequencer: Sequencer, connection: psycopg.AsyncConnection, intake: Intake, database_urls: DatabaseUrls
):
    """A transaction that is rolled back leaves no false memory of what it made."""
    await intake.write(numbered(1))
    async with connection.transaction(force_rollback=True):
        await sequencer.sequence(connection)

    with pytest.raises(psycopg.errors.CheckViolation):
        await sequencer.sequence(connection)
    assert await sequencer.sequence(connection) == Batch(size=1, appended=1)


async def test_two_sequencers_at_once_make_one_log(
    connection: psycopg.AsyncConnection, sequencer_url: str, intake: Intake, database_urls: DatabaseUrls
):
    """Whoever comes second waits for the head, and sees what the first one added: no number and no entry twice."""
    async with await psycopg.AsyncConnection.connect(conninfo(sequencer_url), autocommit=True) as other:
        both = [(Sequencer(ManualClock(), most_rows=20), one) for one in (connection, other)]
        for begin in range(0, 250, 50):
            await intake.write(*(numbered(begin + number) for number in range(50)))
            for _ in range(2):
                await asyncio.gather(*(sequencer.sequence(one) for sequencer, one in both))

    assert await size_of_whole_log(database_urls.owner) == 250


async def test_a_head_that_is_none_of_a_tree_is_not_added_to(
    sequencer: Sequencer, connection: psycopg.AsyncConnection, intake: Intake, database_urls: DatabaseUrls
):
    """Somebody who owns the table can damage it; the entries stay in the intake until that is looked into."""
    await rows_of(database_urls.owner, "ALTER TABLE audit.head DROP CONSTRAINT head_check")
    await rows_of(database_urls.owner, "UPDATE audit.head SET size = 3")
    await intake.write(numbered(1))

    with pytest.raises(LogDamaged, match="head"):
        await sequencer.sequence(connection)
    assert await rows_of(database_urls.owner, "SELECT count(*) FROM audit.intake") == [(1,)]


async def test_a_filled_intake_is_sequenced_in_one_go(
    sequencer: Sequencer, connection: psycopg.AsyncConnection, database_urls: DatabaseUrls
):
    """5 000 rows that came at once are in order a moment later."""
    entries = [numbered(number, recorded=AT + timedelta(seconds=number)) for number in range(5000)]
    async with (
        await psycopg.AsyncConnection.connect(conninfo(database_urls.owner), autocommit=True) as owner,
        owner.cursor().copy("COPY audit.intake (id, retention, recorded, body) FROM STDIN") as copy,
    ):
        for entry in entries:
            await copy.write_row((entry.id, entry.retention, entry.recorded, entry.body))
    begun, cpu = time.perf_counter(), time.process_time()
    while (await sequencer.sequence(connection)).full:
        pass
    took_s, cpu_s = time.perf_counter() - begun, time.process_time() - cpu
    report(f"{len(entries) / took_s:.0f} entries/s; {cpu_s / len(entries) * 1e6:.0f} us of our own time for each")

    assert await bodies(database_urls.log) == [entry.body for entry in entries]
    assert await size_of_whole_log(database_urls.owner) == 5000
