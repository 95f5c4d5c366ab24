"""Minute summaries over a real PostgreSQL that stops, freezes and comes back."""

import asyncio
import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from app.audit.intake.writers import Writers
from app.audit.records.policy import policy_activated
from app.background import Background
from app.clock import ManualClock, SystemClock
from app.database import conninfo, create_engine
from app.errors import DependencyDown
from app.observability.metrics import Metrics
from app.postgres import EmbeddedPostgres
from app.processes import Launcher
from app.schema import migrate
from app.setting_sections import DatabaseSettings
from tests.fixtures.proc import children_of, frozen
from tests.fixtures.waiting import until

NOON = datetime(2026, 1, 2, 12, 0, 30, tzinfo=UTC)
SETTINGS = DatabaseSettings(timeout_ms=400)
STOPS_WITHIN_S = 2.5
"""Two bounded waits of a second, and what busy cores add."""


@dataclass(frozen=True, slots=True)
class Log:
    """The writers of one process, the server below them, and the clock they go by."""

    server: EmbeddedPostgres
    writers: Writers
    clock: ManualClock

    async def bodies(self, kind: str) -> list[dict[str, Any]]:
        """What stands in the intake of this kind, in order."""
        async with await psycopg.AsyncConnection.connect(conninfo(self.server.urls.owner)) as connection:
            rows = await (await connection.execute("SELECT body FROM audit.intake ORDER BY id")).fetchall()
        return [body for body in map(json.loads, (bytes(row[0]) for row in rows)) if body["kind"] == kind]

    async def decide(self, decisions: int) -> None:
        """Count that many decisions of one tenant."""
        for _ in range(decisions):
            await self.writers.summaries.count("a", "m", "allow")


@pytest.fixture
async def log() -> AsyncIterator[Log]:
    """With the work beside requests going on, as in serve."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-fault-"))
    launcher = Launcher(SystemClock())
    server = EmbeddedPostgres(folder, launcher, folder / "secrets")
    await server.start()
    await migrate(server.urls.owner)
    engine, clock = create_engine(server.urls.intake, SETTINGS), ManualClock(NOON)
    writers = Writers.of(engine, clock, Metrics(), marker=folder / "waiting.json", timeout_ms=SETTINGS.timeout_ms)
    background = Background(clock, Metrics())
    writers.begin(background)
    yield Log(server, writers, clock)
    await background.stop()
    await engine.dispose()
    await launcher.stop_all()
    await server.stop()
    shutil.rmtree(folder)


async def refused(log: Log) -> None:
    """One write that its caller owes, while the server is away."""
    with pytest.raises(DependencyDown):
        await log.writers.intake.write(policy_activated(recorded=log.clock.utcnow(), revision="r2", previous="r1"))


async def test_counts_outlive_a_server_that_is_stopped_for_three_minutes(log: Log):
    """Ten decisions in each of three minutes without a server, and two refused changes: all counts are there afterwards, behind one gap."""
    await log.server.stop()
    for _ in range(3):
        await log.decide(10)
        log.clock.advance(60_000)
    await refused(log)
    await refused(log)
    await log.server.start()

    await until(lambda: log.writers.summaries.since is None, within_s=20)
    summaries = await log.bodies("decisions.minute")
    assert [(one["minute"][11:16], one["count"]) for one in summaries] == [("12:00", 10), ("12:01", 10), ("12:02", 10)]
    [gap] = await log.bodies("audit.gap")
    assert (gap["reason"], gap["refused"], gap["lost"]) == ("database_down", 2, 0)
    assert gap["from"] <= gap["to"] == "2026-01-02T12:03:30.000000Z"


async def test_a_frozen_server_loses_no_count_and_doubles_none(log: Log):
    """Frozen in the middle of writing for longer than any time-out, and thawed: each minute is there once."""
    await log.decide(5)
    with frozen(log.server.pid, *children_of(log.server.pid)):
        log.clock.advance(60_000)
        await log.decide(7)
        log.clock.advance(60_000)
        await refused(log)

    await until(lambda: log.writers.summaries.since is None, within_s=20)
    assert [(one["minute"][11:16], one["count"]) for one in await log.bodies("decisions.minute")] == [("12:00", 5), ("12:01", 7)]
    gaps = await log.bodies("audit.gap")
    assert sum(gap["refused"] for gap in gaps) == 1
    assert sum(gap["lost"] for gap in gaps) == 0


async def test_an_orderly_stop_ends_in_time_where_the_server_is_frozen(log: Log):
    """What could not be written is not waited for, and the marker tells the next start of it."""
    await log.decide(5)
    with frozen(log.server.pid, *children_of(log.server.pid)):
        begun = asyncio.get_running_loop().time()
        await log.writers.summaries.stop()
        took_s = asyncio.get_running_loop().time() - begun
        assert log.writers.summaries.since is not None

    assert took_s < STOPS_WITHIN_S


async def test_an_orderly_stop_writes_the_running_minute(log: Log):
    """The counts of half a minute are committed when the stop is over."""
    await log.decide(5)
    await log.writers.summaries.stop()

    assert [one["count"] for one in await log.bodies("decisions.minute")] == [5]
    assert log.writers.summaries.since is None
