"""Shelves of bodies: made when a body needs one, whatever the date, the session's time zone, and who else makes it."""

import asyncio
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors

from app.audit.format.leaf import HASH_BYTES, Leaf
from app.database import DatabaseUrls, conninfo
from tests.fixtures.waiting import POLL_S

MAKE = "SELECT audit.make_shelf(%s, %s)"
LEAF = "INSERT INTO audit.leaf VALUES (%s, %s, %s, 'd400', %s, %s, %s) RETURNING shelf"
PUT = "INSERT INTO audit.body (shelf, seq, recorded, kind, body) VALUES (%s, %s, %s, 'k', 'x') RETURNING tableoid::regclass::text"
ZONES = ("UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "America/Sao_Paulo")
"""Fourteen hours before UTC, eleven behind, and one whose days have begun at one o'clock."""
MONTHS = (
    ("2026-11-30T23:59:59.999999Z", "audit.body_d400_2026_11"),
    ("2026-12-01T00:00:00Z", "audit.body_d400_2026_12"),
    ("2026-12-31T23:59:59.999999Z", "audit.body_d400_2026_12"),
    ("2027-01-01T00:00:00Z", "audit.body_d400_2027_01"),
    ("2027-12-30T12:00:00Z", "audit.body_d400_2027_12"),  # thirteen months ahead
    ("2028-02-29T23:59:59.999999Z", "audit.body_d400_2028_02"),
    ("2018-11-04T00:30:00Z", "audit.body_d400_2018_11"),  # midnight did not exist in São Paulo
    ("2999-12-31T23:59:59.999999Z", "audit.body_d400_2999_12"),
)


async def connect(url: str, **options: Any) -> psycopg.AsyncConnection:
    return await psycopg.AsyncConnection.connect(conninfo(url), **options)


@pytest.mark.parametrize("zone", ZONES)
async def test_a_body_lies_on_the_shelf_of_its_utc_month(sequencer_url: str, zone: str):
    """From the first to the last microsecond of a month, in any time zone of the session, leaf and body are of the UTC month."""
    async with await connect(sequencer_url, autocommit=True, options=f"-c timezone={zone}") as connection:
        for seq, (text, table) in enumerate(MONTHS):
            recorded = datetime.fromisoformat(text)
            await connection.execute(MAKE, ["d400", recorded.astimezone(UTC).date()])
            leaf = Leaf.of(seq, UUID(int=seq), recorded, "d400", b"x")
            row = await (await connection.execute(PUT, [leaf.shelf, seq, recorded])).fetchone()
            told = await (await connection.execute(LEAF, [seq, UUID(int=seq), recorded, *[bytes(HASH_BYTES)] * 3])).fetchone()

            assert (row, told) == ((table,), (leaf.shelf,)), text


async def test_any_day_names_its_month_and_each_class_has_its_own_shelf(database_urls: DatabaseUrls, sequencer_url: str):
    """The first and the last day make the same shelf once; classes of three and four digits lie apart."""
    async with await connect(sequencer_url, autocommit=True) as connection:
        for retention, month in (
            ("d365", date(2026, 2, 1)),
            ("d365", date(2026, 2, 28)),
            ("d3650", date(2026, 2, 1)),
            ("d100", date(2026, 2, 1)),
        ):
            await connection.execute(MAKE, [retention, month])

    assert await shelves(database_urls) == ["body_d100_2026_02", "body_d3650_2026_02", "body_d365_2026_02"]


async def test_a_body_without_a_shelf_is_refused(sequencer_url: str):
    """A body is put on a shelf that was made for it, or nowhere."""
    async with await connect(sequencer_url, autocommit=True) as connection:
        await connection.execute(MAKE, ["d400", date(2026, 11, 1)])
        with pytest.raises(errors.CheckViolation, match="no partition"):
            await connection.execute(PUT, ["d400-2026-12", 0, datetime(2026, 12, 1, tzinfo=UTC)])


@pytest.mark.parametrize(
    ("retention", "month"),
    [
        *(
            (word, "2026-11-01")
            for word in ("", "d", "d1", "d99", "d0400", "d10000", "400", "D400", "d400 ", "d400\n", "d400-2026", "d4O0")
        ),
        *((word, "2026-11-01") for word in ("d400'; DROP TABLE audit.leaf; --", 'd400"', "d٤٠٠", None)),
        *(("d400", day) for day in ("1999-12-31", "3000-01-01", "infinity", "-infinity", "0044-03-15 BC", None)),
    ],
)
async def test_what_is_no_class_or_no_month_gets_no_shelf(database_urls: DatabaseUrls, sequencer_url: str, retention: Any, month: Any):
    """Anything but a class of days and a day from 2000 to 2999 is refused in plain words, and makes nothing."""
    async with await connect(sequencer_url, autocommit=True) as connection:
        with pytest.raises(errors.InvalidParameterValue, match="no shelf for retention"):
            await connection.execute(MAKE, [retention, month])

    assert await shelves(database_urls) == []


@pytest.mark.parametrize("role", ["registry", "intake", "log"])
async def test_only_the_sequencer_makes_shelves(database_urls: DatabaseUrls, role: str):
    """The function that has the owner's rights is closed to every other role."""
    async with await connect(getattr(database_urls, role), autocommit=True) as connection:
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied for function"):
            await connection.execute(MAKE, ["d400", date(2026, 11, 1)])


@pytest.mark.parametrize("first_commits", [True, False])
async def test_two_who_want_the_same_shelf_get_it(database_urls: DatabaseUrls, sequencer_url: str, first_commits: bool):
    """The second waits for the first, then finds the shelf or makes it itself; both put bodies there, and nobody sees an error."""
    async with await connect(sequencer_url) as first, await connect(sequencer_url) as second, await connect(database_urls.owner) as owner:
        await first.execute(MAKE, ["d400", date(2026, 11, 1)])
        waiting = asyncio.create_task(second.execute(MAKE, ["d400", date(2026, 11, 1)]))
        async with asyncio.timeout(5):
            while not await _is_blocked(owner, second.info.backend_pid):  # noqa: ASYNC110 - a lock's queue sends no event
                await asyncio.sleep(POLL_S)
        await (first.commit() if first_commits else first.rollback())
        await waiting
        await second.execute(PUT, ["d400-2026-11", 1, datetime(2026, 11, 1, tzinfo=UTC)])
        await second.commit()
        await first.execute(PUT, ["d400-2026-11", 0, datetime(2026, 11, 1, tzinfo=UTC)])
        await first.commit()

    assert await shelves(database_urls) == ["body_d400_2026_11"]


async def test_who_makes_a_shelf_keeps_nobody_waiting(database_urls: DatabaseUrls, sequencer_url: str):
    """While a shelf is being made, bodies are read and put on other shelves; and a reader in mid-transaction does not stop it."""
    at_once = "-c lock_timeout=1"
    async with await connect(database_urls.log, options=at_once) as reader, await connect(sequencer_url, options=at_once) as other:
        await other.execute(MAKE, ["d400", date(2026, 11, 1)])
        await other.commit()
        await reader.execute("SELECT count(*) FROM audit.body")
        await other.execute(PUT, ["d400-2026-11", 0, datetime(2026, 11, 1, tzinfo=UTC)])
        async with await connect(sequencer_url, options=at_once) as maker:
            await maker.execute(MAKE, ["d400", date(2026, 12, 1)])
            await reader.execute("SELECT count(*) FROM audit.body")
            await other.execute(PUT, ["d400-2026-11", 1, datetime(2026, 11, 1, tzinfo=UTC)])
            await other.execute(MAKE, ["d400", date(2026, 11, 1)])
            await maker.commit()


async def shelves(urls: DatabaseUrls) -> list[str]:
    """The tables under audit.body."""
    statement = "SELECT relname::text FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'audit.body'::regclass ORDER BY 1"
    async with await connect(urls.owner) as connection:
        return [name for (name,) in await (await connection.execute(statement)).fetchall()]


async def _is_blocked(connection: psycopg.AsyncConnection, pid: int) -> bool:
    row = await (await connection.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [pid])).fetchone()
    await connection.rollback()
    return row == (True,)
