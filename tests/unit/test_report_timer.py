"""The timer of the nightly reports, by a clock that is moved by hand."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

from structlog.testing import capture_logs

from app.clock import ManualClock
from app.database import DatabaseDown
from app.observability.metrics import Metrics
from app.processes import ChildFailed
from app.report_timer import AGAIN_S, FIRST_RETRY_S, LOOK_EVERY_S, MOST_RETRY_S, ReportTimer
from app.reports.nights.missed import Missing, missing_nights
from app.reports.nights.night import Night

SHANGHAI = "Asia/Shanghai"
BEGAN = datetime(2026, 11, 28, 4, tzinfo=UTC)
"""The first entry of the log: noon of 28 November in Shanghai."""


@dataclass
class World:
    """A log that knows what was made, and a child that makes it."""

    clock: ManualClock
    made: set[Night] = field(default_factory=set)
    runs: int = 0
    asked: int = 0
    fails: Exception | None = None
    down: bool = False
    waits: list[float] = field(default_factory=list)

    async def missing(self, now: datetime) -> Missing:
        self.asked += 1
        if self.down:
            raise DatabaseDown("PostgreSQL: gone")
        return missing_nights(BEGAN, self.made, now, SHANGHAI)

    async def run(self, newest: Night) -> None:
        self.runs += 1
        if self.fails:
            raise self.fails
        missing = missing_nights(BEGAN, self.made, self.clock.utcnow(), SHANGHAI).nights
        self.made.update(night for night in missing if night.day <= newest.day)

    def timer(self, metrics: Metrics | None = None) -> ReportTimer:
        return ReportTimer(SHANGHAI, time(1), self.missing, self.run, self.clock, metrics or Metrics())


def world(at: datetime) -> World:
    return World(ManualClock(at))


async def looks(timer: ReportTimer, of: World, lasting: timedelta) -> None:
    """Look as often as the timer wants to, for that long."""
    end = of.clock.utcnow() + lasting
    while of.clock.utcnow() < end:
        wait_s = await timer.look()
        of.waits.append(wait_s)
        of.clock.advance(wait_s * 1000)


async def test_a_night_is_made_once_when_its_time_comes():
    """At 01:00 of the zone the child runs, once, and the log is not asked again before the next day."""
    of = world(datetime(2026, 11, 29, 16, 10, tzinfo=UTC))
    of.made = {Night(BEGAN.date(), SHANGHAI)}
    timer = of.timer()
    await looks(timer, of, timedelta(minutes=49))
    assert (of.runs, of.asked) == (0, 1)
    await looks(timer, of, timedelta(hours=20))
    assert (of.runs, of.asked) == (1, 3)
    assert Night(date(2026, 11, 29), SHANGHAI) in of.made


async def test_missed_nights_are_made_at_the_start():
    """Whatever the time of day, what was due while nobody ran is made with the first look."""
    of = world(datetime(2026, 12, 3, 9, tzinfo=UTC))
    await of.timer().look()
    assert [night.day.day for night in sorted(of.made, key=lambda night: night.day)] == [28, 29, 30, 1, 2]


async def test_a_night_before_its_time_is_not_made_with_an_older_one():
    """At 00:20 one of two days ago is missing: that one is made at once, yesterday at 01:00."""
    of = world(datetime(2026, 11, 29, 16, 20, tzinfo=UTC))
    timer = of.timer()
    await looks(timer, of, timedelta(minutes=30))
    assert of.made == {Night(date(2026, 11, 28), SHANGHAI)}
    await looks(timer, of, timedelta(minutes=30))
    assert of.made == {Night(date(2026, 11, 28), SHANGHAI), Night(date(2026, 11, 29), SHANGHAI)}


async def test_a_failure_is_tried_again_with_growing_pauses_and_told_once():
    """Pauses double to an hour; the log has one line for one reason, and one when it is over; the counter has every failure."""
    of, metrics = world(datetime(2026, 11, 29, 17, 5, tzinfo=UTC)), Metrics()
    of.fails = ChildFailed("report ended with code 6: disk full")
    timer = of.timer(metrics)
    with capture_logs() as events:
        await looks(timer, of, timedelta(hours=5))
        of.fails = None
        await looks(timer, of, timedelta(hours=2))
    assert of.waits[:3] == [FIRST_RETRY_S, 2 * FIRST_RETRY_S, 4 * FIRST_RETRY_S]
    assert max(of.waits) == MOST_RETRY_S
    assert [event["event"] for event in events] == ["reports.not_made", "reports.made_again"]
    assert metrics.report_runs.labels("failed")._value.get() == of.runs - 1
    assert metrics.report_runs.labels("made")._value.get() == 1


async def test_an_outage_of_the_database_starts_no_child():
    """What is missing is not known then: no child is started, and it is tried again."""
    of = world(datetime(2026, 11, 29, 17, 5, tzinfo=UTC))
    of.down = True
    timer = of.timer()
    await looks(timer, of, timedelta(minutes=10))
    assert of.runs == 0
    of.down = False
    await looks(timer, of, timedelta(hours=1))
    assert of.runs == 1


async def test_a_clock_that_is_set_makes_nothing_twice_and_nothing_too_early():
    """Set back by a day, nothing is made again; set forward by three, the three days are."""
    of = world(datetime(2026, 11, 29, 17, 5, tzinfo=UTC))
    timer = of.timer()
    await looks(timer, of, timedelta(minutes=5))
    of.clock.step_utc(timedelta(days=-1))
    await looks(timer, of, timedelta(hours=1))
    assert (of.runs, len(of.made)) == (1, 2)
    of.clock.step_utc(timedelta(days=4))
    await looks(timer, of, timedelta(minutes=5))
    assert (of.runs, len(of.made)) == (2, 5)


async def test_the_log_has_the_last_word():
    """A child that ends well and leaves a night is started again, after a pause."""
    of = world(datetime(2026, 11, 29, 17, 5, tzinfo=UTC))
    timer = of.timer()
    of.made.clear()

    async def makes_nothing(_: Night) -> None:
        of.runs += 1

    timer.run = makes_nothing
    assert await timer.look() == AGAIN_S
    assert await timer.look() == AGAIN_S
    assert of.runs == 2
    timer.run = of.run
    await timer.look()
    assert await timer.look() == LOOK_EVERY_S
