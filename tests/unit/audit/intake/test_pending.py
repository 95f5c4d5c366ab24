"""Entries that may wait: order, outages, bounds, and what the log is told of them."""

import tracemalloc
from datetime import timedelta

import pytest

from app.audit.intake.pending import ENTRY_BYTES, Pending
from app.audit.records.entry import Entry
from app.clock import ManualClock
from app.errors import DependencyDown
from app.instants import rfc3339
from app.observability.metrics import Metrics
from tests.fixtures.entries import numbered
from tests.fixtures.outage import FakeEngine, fake_intake


class Stopped(Exception):
    """Ends the endless work of a test."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def pending(engine: FakeEngine, clock: ManualClock, metrics: Metrics) -> Pending:
    return Pending(fake_intake(engine, clock, metrics), clock, metrics)


def entry(clock: ManualClock, number: int, kind: str = "decisions.minute") -> Entry:
    return numbered(number, kind=kind, recorded=clock.utcnow())


def told(engine: FakeEngine) -> list:
    """What was written: numbers of entries, and (reason, refused, lost) of gaps."""
    return [body["count"] if "count" in body else (body["reason"], body["refused"], body["lost"]) for body in engine.bodies]


async def test_entries_are_written_in_the_order_they_came(pending: Pending, engine: FakeEngine, clock: ManualClock):
    """Two hundred and fifty entries make three commits and keep their order; nothing waits afterwards."""
    for number in range(250):
        pending.add(entry(clock, number))
    assert pending.since == clock.utcnow()
    await pending.flush()

    assert [len(commit) for commit in engine.commits] == [100, 100, 50]
    assert list(range(250)) == told(engine)
    assert pending.since is None


async def test_after_an_outage_the_gap_comes_first_and_nothing_twice(
    pending: Pending, engine: FakeEngine, clock: ManualClock, metrics: Metrics
):
    """Three tries fail over an hour; the first commit afterwards begins with one gap of that hour, in which nothing was lost."""
    began = clock.utcnow()
    pending.add(entry(clock, 1))
    engine.health = "down"
    for _ in range(3):
        with pytest.raises(DependencyDown):
            await pending.flush()
        clock.advance(20 * 60_000)
    pending.add(entry(clock, 2))
    engine.health = "up"
    await pending.flush()
    await pending.flush()

    assert told(engine) == [("database_down", 0, 0), 1, 2]
    gap = engine.bodies[0]
    assert (rfc3339(began), rfc3339(began + timedelta(hours=1))) == (gap["from"], gap["to"])
    assert metrics.registry.get_sample_value("sluice_audit_intake_total", {"kind": "audit.gap", "result": "written"}) == 1


async def test_whoever_writes_first_tells_the_gap(engine: FakeEngine, clock: ManualClock, metrics: Metrics):
    """Two refused writes are counted, and the third, which succeeds, commits the gap before its own entry."""
    intake = fake_intake(engine, clock, metrics)
    engine.health = "down"
    for number in (1, 2):
        with pytest.raises(DependencyDown):
            await intake.write(entry(clock, number))
    engine.health = "up"
    await intake.write(entry(clock, 3))

    assert [told(engine)] == [[("database_down", 2, 0), 3]]


async def test_a_commit_without_an_answer_is_not_counted_twice(pending: Pending, engine: FakeEngine, clock: ManualClock):
    """The server commits gap and entry, and dies before it says so: the same ids come again, and a second gap tells of the second failure."""
    engine.health = "down"
    pending.add(entry(clock, 1))
    with pytest.raises(DependencyDown):
        await pending.flush()
    engine.health = "silent"
    with pytest.raises(DependencyDown):
        await pending.flush()
    engine.health = "up"
    await pending.flush()

    assert told(engine) == [("database_down", 0, 0), 1, ("database_down", 0, 0)]


async def test_what_finds_no_room_is_counted_and_told(engine: FakeEngine, clock: ManualClock, metrics: Metrics):
    """With room for two entries the third is dropped, and metric and gap tell the seven events that it stood for."""
    size = len(entry(clock, 1).body) + ENTRY_BYTES
    pending = Pending(fake_intake(engine, clock, metrics), clock, metrics, max_bytes=2 * size)
    for number in (1, 2, 3):
        pending.add(entry(clock, number), events=7)
    assert metrics.registry.get_sample_value("sluice_audit_pending_bytes") == 2 * size
    await pending.flush()
    pending.add(entry(clock, 4))
    await pending.flush()

    assert told(engine) == [("full", 0, 7), 1, 2, 4]
    assert metrics.registry.get_sample_value("sluice_audit_lost_total", {"kind": "decisions.minute"}) == 7
    assert metrics.registry.get_sample_value("sluice_audit_pending_bytes") == 0


def test_what_waits_takes_the_memory_that_is_said(pending: Pending, clock: ManualClock, metrics: Metrics):
    """A thousand entries take the estimated bytes within a fifth, whatever room their bytes had while they were made."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(1000):
        pending.add(entry(clock, number), since=clock.utcnow() + timedelta(seconds=number))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert after - before == pytest.approx(metrics.registry.get_sample_value("sluice_audit_pending_bytes"), rel=0.2)


async def test_an_entry_that_the_database_refuses_does_not_block_the_others(pending: Pending, engine: FakeEngine, clock: ManualClock):
    """Of three entries the database refuses the second: the others are written, it is dropped and told as lost."""
    engine.refused_kinds = {"audit.purge"}
    for number, kind in enumerate(["decisions.minute", "audit.purge", "decisions.minute"], 1):
        pending.add(entry(clock, number, kind))
    await pending.flush()

    assert told(engine) == [1, ("full", 0, 1), 3]


async def test_writing_is_tried_again_with_growing_pauses(engine: FakeEngine, clock: ManualClock, metrics: Metrics):
    """Pauses double from 0.2 s to 5 s while the server is away, and are 0.2 s again when it is back."""
    pauses = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        clock.advance(seconds * 1000)
        if len(pauses) == 7:
            engine.health = "up"
        if len(pauses) == 9:
            raise Stopped

    pending = Pending(fake_intake(engine, clock, metrics), clock, metrics, sleep=pause)
    engine.health = "down"
    pending.add(entry(clock, 1))
    with pytest.raises(Stopped):
        await pending.run()

    assert pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 0.2, 0.2]) == pauses
    assert told(engine) == [("database_down", 0, 0), 1]


async def test_what_was_refused_and_stands_in_the_log_all_the_same_lies_in_the_gap(
    engine: FakeEngine, clock: ManualClock, metrics: Metrics
):
    """The server commits an entry and its answer is lost: the gap that counts the refusal reaches back to before that entry."""
    intake = fake_intake(engine, clock, metrics)
    refused = entry(clock, 1)
    clock.advance(1)  # while it was sealed
    engine.health = "silent"
    with pytest.raises(DependencyDown):
        await intake.write(refused)
    clock.advance(2000)
    engine.health = "up"
    await intake.write(entry(clock, 2))

    first, gap, _ = engine.bodies
    assert (first["count"], gap["refused"]) == (1, 1)
    assert gap["from"] <= first["recorded"] < gap["to"]
