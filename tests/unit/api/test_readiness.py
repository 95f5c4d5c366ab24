"""What /readyz says of the log: who does not get on, and where to look."""

from typing import Any

import pytest

from app.api.readiness import Parts
from app.audit.reading.lag import LATE_MS, Lag
from app.clock import ManualClock
from tests.fixtures.lag import lag, looked_at

KEEPS_UP = "10 entries, 10 of them signed 3 s ago"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def told(clock: ManualClock, seen: Lag | None, *, embedded: bool = False) -> tuple[bool, str]:
    """The part `log` after one look."""
    none: Any = None
    watch = await looked_at(clock, seen)
    return await Parts(none, none, none, none, none, watch, own_log_process=embedded).log_kept()


async def test_a_log_that_keeps_up_is_well(clock: ManualClock):
    """Size and age of the signature are told; a second's wait is nobody's trouble."""
    assert await told(clock, lag(clock)) == (True, KEEPS_UP)
    assert await told(clock, lag(clock, waiting=2, waited_s=1)) == (True, f"{KEEPS_UP}; 2 wait, the first for 1 s")
    assert await told(clock, lag(clock, size=0, signed_size=0)) == (True, "0 entries, nothing is signed")


async def test_a_log_that_nobody_leads_is_told_at_once(clock: ManualClock):
    """Before anything waits long the part is unwell and says what to start, or which child of serve is not there."""
    nobody = lag(clock, led=False, tended=False)
    well, detail = await told(clock, nobody)
    _, of_child = await told(clock, nobody, embedded=True)

    assert not well
    assert detail == f"{KEEPS_UP}; nobody leads it: start `sluice audit run`, or see why the one that runs refuses to. Decisions go on"
    assert "; nobody leads it: the child `audit` of serve does not run, or refuses to; the lines of `audit` in this log say why" in of_child


async def test_a_process_that_stands_still_is_no_missing_one(clock: ManualClock):
    """Who leads and does not get on is told as that, with its beginning: nothing is there to be started."""
    still = lag(clock, tended=False)
    since = f"runs but stands still since {clock.utcnow():%Y-%m-%d %H:%M:%S} UTC"
    well, detail = await told(clock, still)
    _, of_child = await told(clock, still, embedded=True)

    assert not well
    assert detail == f"{KEEPS_UP}; the process that leads it {since}; its own log says why. Decisions go on"
    assert f"; the child `audit` of serve {since}; the lines of `audit` in this log say why" in of_child


async def test_entries_that_wait_long_are_told(clock: ManualClock):
    """Where the first entry of the intake waits for more than ten seconds the part is unwell, whatever who leads believes."""
    well, detail = await told(clock, lag(clock, waiting=5, waited_s=LATE_MS / 1000 + 1))

    assert not well
    assert "5 wait, the first for 11 s; the process that leads it does not get on; its own log says why" in detail


async def test_what_is_not_known_is_unwell(clock: ManualClock):
    """During an outage there is no figure."""
    well, detail = await told(clock, None)

    assert not well
    assert detail.startswith("unknown")
