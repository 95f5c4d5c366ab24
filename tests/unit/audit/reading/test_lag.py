"""How far the log has come: what is late, what stands still, and what nobody knows."""

from datetime import timedelta
from typing import Any

import pytest

from app.audit.reading.lag import LATE_MS, Lag, LagWatch
from app.clock import ManualClock
from tests.fixtures.lag import Looks, lag, looked_at


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def is_late(clock: ManualClock, *answers: Lag, apart_ms: float = 0) -> bool:
    """Whether the log is, after these looks."""
    return (await looked_at(clock, *answers, apart_ms=apart_ms)).late


async def test_entries_that_wait_long_are_late(clock: ManualClock):
    """A second's wait is nobody's trouble; more than ten are."""
    assert not await is_late(clock, lag(clock, waiting=2, waited_s=1))
    assert not await is_late(clock, lag(clock, waiting=5, waited_s=LATE_MS / 1000))
    assert await is_late(clock, lag(clock, waiting=5, waited_s=LATE_MS / 1000 + 1))


async def test_a_log_that_grows_unsigned_is_late(clock: ManualClock):
    """Entries are unsigned for a second all the time; a checkpoint that does not move for ten is trouble, one that moves is not."""
    first, later = lag(clock, size=12), lag(clock, size=15)
    moved = lag(clock, size=15, signed_size=14)
    whole = lag(clock, size=15, signed_size=15)

    assert not await is_late(clock, first, later, apart_ms=LATE_MS)
    assert await is_late(clock, first, later, apart_ms=LATE_MS + 1)
    assert not await is_late(clock, first, moved, apart_ms=LATE_MS + 1)
    assert not await is_late(clock, first, whole, later, apart_ms=LATE_MS + 1)


async def test_a_standstill_is_known_by_its_beginning(clock: ManualClock):
    """Who leads and does not get on stands still since that was first seen, until it gets on or nobody leads."""
    began = clock.utcnow() + timedelta(seconds=1)
    well, still, alone = lag(clock), lag(clock, tended=False), lag(clock, led=False, tended=False)

    assert (await looked_at(clock, well, still, still, apart_ms=1000)).stands_since == began
    assert (await looked_at(clock, still, well)).stands_since is None
    assert (await looked_at(clock, still, alone)).stands_since is None


async def test_what_is_not_known_is_not_told(clock: ManualClock):
    """Before the first look and during an outage there is no figure, not an older one and never 0."""
    looks: Any = Looks(lag(clock), None)
    watch = LagWatch(looks, clock)
    assert (watch.backlog_age_s(), watch.checkpoint_age_s()) == (None, None)
    await watch.look()
    assert (watch.backlog_age_s(), watch.checkpoint_age_s()) == (0.0, 3.0)
    await watch.look()

    assert (watch.backlog_age_s(), watch.checkpoint_age_s(), watch.newest) == (None, None, None)


async def test_a_look_that_fails_leaves_no_older_figure(clock: ManualClock):
    """Whatever goes wrong in a look, nobody is told any longer what the look before it saw."""
    looks: Any = Looks(lag(clock), ValueError("not what was asked for"))
    watch = LagWatch(looks, clock)
    await watch.look()
    with pytest.raises(ValueError, match="not what was asked for"):
        await watch.look()

    assert watch.newest is None


async def test_a_writer_whose_clock_is_ahead_has_waited_for_nothing(clock: ManualClock):
    """No age is negative."""
    watch = await looked_at(clock, lag(clock, waiting=1, waited_s=-60))

    assert watch.backlog_age_s() == 0.0
