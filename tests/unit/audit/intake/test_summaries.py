"""Minute summaries: what is counted is written once, told as lost, or still open, whatever clocks and servers do."""

import asyncio
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from app.audit.intake.pending import Pending
from app.audit.intake.summaries import Summaries
from app.clock import ManualClock
from app.errors import ConfigError
from app.observability.metrics import Metrics
from tests.fixtures.outage import FakeEngine, fake_intake

NOON = datetime(2026, 1, 2, 12, 0, 30, tzinfo=UTC)


class Process:
    """One process of serve, as far as it counts: summaries, what waits, and an intake of its own on the engine."""

    def __init__(self, engine: FakeEngine, clock: ManualClock, marker: Path, number: int = 1, **bounds: int) -> None:
        self.metrics = Metrics()
        self.intake = fake_intake(engine, clock, self.metrics)
        self.pending = Pending(self.intake, clock, self.metrics, max_bytes=bounds.get("max_bytes", 100_000))
        self.summaries = Summaries(self.pending, clock, marker, replica=f"r{number}", max_counts=bounds.get("max_counts", 100))

    async def go_on(self) -> None:
        """One round of the work that goes on beside requests; an outage ends it early."""
        await self.summaries.look()
        await asyncio.gather(self.pending.flush(), return_exceptions=True)
        await self.summaries.look()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "audit" / "waiting.json"


@pytest.fixture
def process(engine: FakeEngine, clock: ManualClock, marker: Path) -> Process:
    return Process(engine, clock, marker)


def counted(engine: FakeEngine) -> list[tuple]:
    """(minute, tenant, model, outcome, count) of all summaries written."""
    return [
        (body["minute"][11:16], body["tenant"], body.get("model"), body["outcome"], body["count"])
        for body in engine.bodies
        if body["kind"] == "decisions.minute"
    ]


def gaps(engine: FakeEngine) -> list[tuple]:
    """(from, to, reason, lost) of all gaps written; lost is None where nobody knows."""
    return [
        (body["from"][11:19], body["to"][11:19], body["reason"], body.get("lost")) for body in engine.bodies if body["kind"] == "audit.gap"
    ]


def mode(path: Path) -> int:
    """Who may do what with a file."""
    return path.stat().st_mode & 0o777


def damage(path: Path) -> datetime:
    """Leave half of a file; when that was."""
    path.write_text("{")
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


async def test_each_minute_tenant_model_and_outcome_is_one_entry(process: Process, engine: FakeEngine, clock: ManualClock):
    """Four decisions of three kinds in one minute and one in the next; the running minute waits until it ends."""
    for outcome in ("allow", "quota", "allow"):
        await process.summaries.count("a", "m", outcome)
    await process.summaries.count(None, None, "deny")
    clock.advance(30_000)
    await process.summaries.count("a", "m", "allow")
    await process.go_on()
    first = [("12:00", "a", "m", "allow", 2), ("12:00", "a", "m", "quota", 1), ("12:00", None, None, "deny", 1)]
    assert counted(engine) == first
    clock.advance(60_000)
    await process.go_on()

    assert counted(engine) == [*first, ("12:01", "a", "m", "allow", 1)]
    assert {body["replica"] for body in engine.bodies} == {"r1"}


async def test_a_clock_that_steps_back_writes_no_minute_twice(process: Process, engine: FakeEngine, clock: ManualClock):
    """After a step of an hour back, decisions count on in 12:01, which is written once, when the clock is past it."""
    clock.advance(60_000)
    await process.summaries.count("a", "m", "allow")
    clock.step_utc(timedelta(hours=-1))
    await process.summaries.count("a", "m", "allow")
    await process.go_on()
    assert counted(engine) == []
    clock.advance(61 * 60_000)
    await process.go_on()

    assert counted(engine) == [("12:01", "a", "m", "allow", 2)]


async def test_a_clock_that_steps_forward_leaves_no_empty_minutes(process: Process, engine: FakeEngine, clock: ManualClock):
    """Between 12:00 and 15:00 nothing was counted, and nothing is written of that time."""
    await process.summaries.count("a", "m", "allow")
    clock.step_utc(timedelta(hours=3))
    await process.summaries.count("a", "m", "allow")
    clock.advance(60_000)
    await process.go_on()

    assert counted(engine) == [("12:00", "a", "m", "allow", 1), ("15:00", "a", "m", "allow", 1)]
    assert gaps(engine) == []


async def test_summaries_outlive_an_outage_of_three_minutes(process: Process, engine: FakeEngine, clock: ManualClock):
    """Three minutes without a server: all counts are written afterwards, behind one gap in which nothing was lost."""
    engine.health = "down"
    for _ in range(3):
        await process.summaries.count("a", "m", "allow")
        clock.advance(60_000)
        await process.go_on()
    engine.health = "up"
    await process.go_on()

    assert gaps(engine) == [("12:01:30", "12:03:30", "database_down", 0)]
    assert engine.bodies[0]["kind"] == "audit.gap"
    assert counted(engine) == [(minute, "a", "m", "allow", 1) for minute in ("12:00", "12:01", "12:02")]


async def test_combinations_beyond_the_bound_are_told_as_lost(engine: FakeEngine, clock: ManualClock, marker: Path):
    """With room for two combinations, the five decisions of a third are told by a gap; the others count on."""
    process = Process(engine, clock, marker, max_counts=2)
    for tenant, decisions in (("a", 1), ("b", 1), ("c", 5), ("a", 1)):
        for _ in range(decisions):
            await process.summaries.count(tenant, "m", "allow")
    clock.advance(60_000)
    await process.go_on()

    assert counted(engine) == [("12:00", "a", "m", "allow", 2), ("12:00", "b", "m", "allow", 1)]
    assert gaps(engine) == [("12:01:30", "12:01:30", "full", 5)]
    assert process.metrics.registry.get_sample_value("sluice_audit_lost_total", {"kind": "decisions.minute"}) == 5


async def test_an_orderly_stop_writes_the_running_minute_and_leaves_no_gap(
    process: Process, engine: FakeEngine, clock: ManualClock, marker: Path
):
    """The count of half a minute is written at the stop, and the next start has nothing to tell."""
    await process.summaries.count("a", "m", "allow")
    await process.summaries.stop()
    await Process(engine, clock, marker, 2).go_on()

    assert counted(engine) == [("12:00", "a", "m", "allow", 1)]
    assert gaps(engine) == []


async def test_after_a_kill_the_next_start_tells_from_when_on_counts_may_be_lost(
    process: Process, engine: FakeEngine, clock: ManualClock, marker: Path
):
    """12:00 was written, 12:01 was not: the gap runs from 12:01 to the start, and its loss is unknown. It is told once."""
    await process.summaries.count("a", "m", "allow")
    clock.advance(30_000)
    await process.summaries.count("a", "m", "allow")
    await process.go_on()
    clock.advance(5 * 60_000)  # killed here
    await Process(engine, clock, marker, 2).go_on()
    await Process(engine, clock, marker, 3).go_on()

    assert counted(engine) == [("12:00", "a", "m", "allow", 1)]
    assert gaps(engine) == [("12:01:00", "12:06:00", "stopped", None)]


async def test_a_kill_in_a_quiet_minute_leaves_no_gap(process: Process, engine: FakeEngine, clock: ManualClock, marker: Path):
    """What was counted is written, and nothing came since: the next start tells nothing."""
    await process.summaries.count("a", "m", "allow")
    clock.advance(60_000)
    await process.go_on()
    await Process(engine, clock, marker, 2).go_on()

    assert gaps(engine) == []


async def test_the_first_decision_after_a_quiet_time_is_marked_before_it_is_answered(
    process: Process, engine: FakeEngine, clock: ManualClock, marker: Path
):
    """Killed right after one decision, without any look in between: the next start tells a gap from its minute on."""
    await process.summaries.count("a", "m", "allow")
    assert mode(marker) == 0o600
    await Process(engine, clock, marker, 2).go_on()

    assert gaps(engine) == [("12:00:00", "12:00:30", "stopped", None)]


async def test_a_gap_of_a_kill_waits_for_the_database_over_another_kill(engine: FakeEngine, clock: ManualClock, marker: Path):
    """Killed twice during an outage: the third start still tells from the first minute on."""
    engine.health = "down"
    await Process(engine, clock, marker).summaries.count("a", "m", "allow")
    clock.advance(60_000)
    await Process(engine, clock, marker, 2).go_on()
    clock.advance(60_000)
    engine.health = "up"
    await Process(engine, clock, marker, 3).go_on()

    assert gaps(engine) == [("12:00:00", "12:02:30", "stopped", None)]


async def test_a_marker_that_cannot_be_read_counts_from_when_it_was_written(engine: FakeEngine, clock: ManualClock, marker: Path):
    """Whatever destroyed the file, the log is told of the time since it was whole."""
    await Process(engine, clock, marker).summaries.count("a", "m", "allow")
    written = damage(marker)
    await Process(engine, clock, marker, 2).go_on()

    assert [f"{written:%H:%M:%S}"] == [gap[0] for gap in gaps(engine)]


async def test_a_marker_that_cannot_be_written_holds_no_decision(engine: FakeEngine, clock: ManualClock, tmp_path: Path):
    """Its folder is a file: decisions are counted and written all the same, and the work beside them fails, which is said."""
    (tmp_path / "audit").write_text("")
    process = Process(engine, clock, tmp_path / "audit" / "waiting.json")
    for _ in range(3):
        await process.summaries.count("a", "m", "allow")
    clock.advance(60_000)
    with pytest.raises(ConfigError):
        await process.summaries.look()
    await process.pending.flush()

    assert counted(engine) == [("12:00", "a", "m", "allow", 3)]


class Counting(RuleBasedStateMachine):
    """Decisions, outages, clocks that step, orderly stops and kills, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="sluice-test-"))
        self.engine, self.clock = FakeEngine(), ManualClock(NOON)
        self.decisions = self.gone = self.ends_untold = self.processes = 0
        self.start()

    def start(self) -> None:
        self.processes += 1
        marker = self.folder / "waiting.json"
        self.process = Process(self.engine, self.clock, marker, self.processes, max_counts=3, max_bytes=6_000)

    def teardown(self) -> None:
        self.engine.health = "up"
        self.stop()
        self.run(self.process.go_on())
        assert self.gone == self.decisions - self.written - self.lost
        assert not self.gone or self.stopped_gaps
        self.runner.close()
        shutil.rmtree(self.folder)

    def run(self, work) -> None:
        self.runner.run(work)

    @property
    def written(self) -> int:
        return sum(count for *_, count in counted(self.engine))

    @property
    def lost(self) -> int:
        return sum(lost or 0 for *_, lost in gaps(self.engine))

    @property
    def stopped_gaps(self) -> int:
        return sum(reason == "stopped" for _, _, reason, _ in gaps(self.engine))

    @rule(tenant=st.sampled_from([None, *"abcd"]), outcome=st.sampled_from(["allow", "quota"]), times=st.integers(1, 5))
    def decide(self, tenant: str | None, outcome: str, times: int) -> None:
        for _ in range(times):
            self.run(self.process.summaries.count(tenant, "m", outcome))
        self.decisions += times

    @rule(s=st.sampled_from([1, 30, 61, 600]))
    def pass_time(self, s: int) -> None:
        self.clock.advance(s * 1000)

    @rule(s=st.sampled_from([-86_400, -61, -1, 61, 86_400]))
    def step(self, s: int) -> None:
        self.clock.step_utc(timedelta(seconds=s))

    @rule(health=st.sampled_from(["up", "up", "down", "silent"]))
    def server_is(self, health) -> None:
        self.engine.health = health

    @rule()
    def go_on(self) -> None:
        self.run(self.process.go_on())

    @rule()
    def stop(self) -> None:
        """What an orderly stop can write it writes; with a server that is up that is all there is."""
        self.run(self.process.summaries.stop())
        missing = self.decisions - self.written - self.lost
        if self.engine.health == "up":
            assert missing == self.gone
        self.gone = missing
        self.start()

    @rule()
    def kill(self) -> None:
        """What was open is gone, and somebody will be told."""
        self.gone = self.decisions - self.written - self.lost
        self.start()

    @invariant()
    def nothing_twice(self) -> None:
        keys = [
            tuple(body.get(name) for name in ("replica", "minute", "tenant", "outcome")) for body in self.engine.bodies if "count" in body
        ]
        assert len(keys) == len(set(keys))
        assert self.written + self.lost <= self.decisions
        assert all(count > 0 for *_, count in counted(self.engine))


TestCounting = Counting.TestCase
TestCounting.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
