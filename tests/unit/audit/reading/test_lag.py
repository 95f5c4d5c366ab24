"""How far the log has come, as readiness and gauges tell it."""

from datetime import timedelta
from typing import Any

import pytest

from app.audit.reading.lag import LATE_MS, Standing, Watch
from app.clock import ManualClock
from app.database import DatabaseDown
from app.observability.metrics import Metrics


class Looks:
    """Stands in for the transactions: each look gives the next answer."""

    def __init__(self, *answers: Standing | Exception | None) -> None:
        self._answers = list(answers)

    async def run(self, _: Any) -> Standing:
        answer = self._answers.pop(0)
        if answer is None:
            raise DatabaseDown("no server")
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def standing(
    clock: ManualClock, *, size: int = 10, waiting: int = 0, waited_s: float = 0, signed_size: int = 10, led: bool = True
) -> Standing:
    oldest = clock.utcnow() - timedelta(seconds=waited_s) if waiting else None
    signed = clock.utcnow() - timedelta(seconds=3) if signed_size else None
    return Standing("sluice/x", size, waiting, oldest, signed_size, signed, led)


async def told(clock: ManualClock, *answers: Standing | None, apart_ms: float = 0) -> tuple[bool, str]:
    """What the part of /readyz says after these looks."""
    looks: Any = Looks(*answers)
    watch = Watch(looks, clock)
    for number, _ in enumerate(answers):
        clock.advance(apart_ms if number else 0)
        await watch.look()
    return await watch.told()


async def test_a_log_that_keeps_up_is_well(clock: ManualClock):
    """Size and age of the signature are told; a second's wait is nobody's trouble."""
    assert await told(clock, standing(clock)) == (True, "10 entries, 10 of them signed 3 s ago")
    assert await told(clock, standing(clock, waiting=2, waited_s=1)) == (
        True,
        "10 entries, 10 of them signed 3 s ago; 2 wait, the first for 1 s",
    )
    assert await told(clock, standing(clock, size=0, signed_size=0)) == (True, "0 entries, nothing is signed")


async def test_entries_that_wait_long_are_told(clock: ManualClock):
    """Where the first entry of the intake waits for more than ten seconds the part is unwell, and says what to look for."""
    well, detail = await told(clock, standing(clock, waiting=5, waited_s=LATE_MS / 1000 + 1))

    assert not well
    assert "5 wait, the first for 11 s; what leads it does not get on" in detail


async def test_a_log_that_nobody_leads_is_told_at_once(clock: ManualClock):
    """Without a process that sequences and signs the part is unwell before anything waits long, and says what to start."""
    well, detail = await told(clock, standing(clock, led=False))

    assert (well, detail) == (False, "10 entries, 10 of them signed 3 s ago; nobody leads it: start `sluice audit run`. Decisions go on")


async def test_a_log_that_grows_unsigned_is_told(clock: ManualClock):
    """Entries are unsigned for a second all the time; a checkpoint that does not move for ten is trouble, one that moves is not."""
    first, later = standing(clock, size=12), standing(clock, size=15)
    moved = standing(clock, size=15, signed_size=14)
    whole = standing(clock, size=15, signed_size=15)

    assert (await told(clock, first, later, apart_ms=LATE_MS))[0]
    assert not (await told(clock, first, later, apart_ms=LATE_MS + 1))[0]
    assert (await told(clock, first, moved, apart_ms=LATE_MS + 1))[0]
    assert (await told(clock, first, whole, later, apart_ms=LATE_MS + 1))[0]


async def test_what_is_not_known_is_not_told(clock: ManualClock):
    """Before the first look and during an outage there is no figure, not an older one and never 0."""
    looks: Any = Looks(standing(clock), None)
    watch, metrics = Watch(looks, clock), Metrics()
    assert (watch.backlog_age_s(), watch.checkpoint_age_s()) == (None, None)
    await watch.look()
    assert (watch.backlog_age_s(), watch.checkpoint_age_s()) == (0.0, 3.0)
    await watch.look()

    assert (watch.backlog_age_s(), watch.checkpoint_age_s(), watch.standing) == (None, None, None)
    assert (await watch.told())[0] is False
    assert not any(sample.name.startswith("sluice_audit_log") for family in metrics.registry.collect() for sample in family.samples)


async def test_a_look_that_fails_leaves_no_older_figure(clock: ManualClock):
    """Whatever goes wrong in a look, readiness stops telling what the look before it saw."""
    looks: Any = Looks(standing(clock), ValueError("not what was asked for"))
    watch = Watch(looks, clock)
    await watch.look()
    with pytest.raises(ValueError, match="not what was asked for"):
        await watch.look()

    assert (watch.standing, (await watch.told())[0]) == (None, False)


async def test_a_writer_whose_clock_is_ahead_has_waited_for_nothing(clock: ManualClock):
    """No age is negative."""
    looks: Any = Looks(standing(clock, waiting=1, waited_s=-60))
    watch = Watch(looks, clock)
    await watch.look()

    assert watch.backlog_age_s() == 0.0
