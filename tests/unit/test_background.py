"""Work beside requests: one piece that fails begins again, and the others never notice."""

import asyncio

from structlog.testing import capture_logs

from app.background import Background
from app.clock import ManualClock
from app.errors import ConfigError
from app.observability.metrics import Metrics


async def test_a_piece_that_fails_begins_again_and_no_other_is_touched():
    """Three failures, with pauses that double from 0.2 s; the piece beside it was begun once."""
    clock, metrics, pauses, begun = ManualClock(), Metrics(), [], {"bad": 0, "good": 0}
    reached = asyncio.Event()

    async def pause(seconds):
        pauses.append(seconds)

    async def bad():
        begun["bad"] += 1
        if begun["bad"] <= 3:
            raise TypeError("unhashable")
        reached.set()
        await asyncio.Event().wait()

    async def good():
        begun["good"] += 1
        await asyncio.Event().wait()

    background = Background(clock, metrics, pause)
    background.start("good", good)
    background.start("bad", bad)
    await asyncio.wait_for(reached.wait(), 5)

    assert begun == {"bad": 4, "good": 1}
    assert pauses == [0.2, 0.4, 0.8]
    assert background.failing == ["bad"]
    assert metrics.registry.get_sample_value("sluice_background_failures_total", {"work": "bad"}) == 3
    clock.advance(60_000)
    assert background.failing == []
    await background.stop()


async def test_work_that_is_done_every_so_often_pauses_between():
    """After a time that went well comes the pause asked for; after failures come growing ones, and the first one anew once it went well."""
    outcomes, pauses, reached = iter([None, OSError, OSError, None, OSError]), [], asyncio.Event()

    async def pause(seconds):
        pauses.append(seconds)

    async def work():
        try:
            outcome = next(outcomes)
        except StopIteration:
            reached.set()
            await asyncio.Event().wait()
        if outcome:
            raise outcome("again")

    background = Background(ManualClock(), Metrics(), pause)
    background.every("work", 7.0, work)
    await asyncio.wait_for(reached.wait(), 5)
    await background.stop()

    assert pauses == [7.0, 0.2, 0.4, 7.0, 0.2]


async def test_a_trouble_with_a_remedy_is_one_line_until_it_is_over():
    """A full disk is said once with what to do, without a traceback, and again once it is over; an unforeseen error has its traceback."""
    full = ConfigError("waiting.json: No space left on device", hint="Make room on that disk.")
    outcomes, reached = iter([full, full, full, None, TypeError("unhashable"), TypeError("unhashable")]), asyncio.Event()

    async def work():
        try:
            outcome = next(outcomes)
        except StopIteration:
            reached.set()
            await asyncio.Event().wait()
        if outcome:
            raise outcome

    background = Background(ManualClock(), Metrics(), lambda _: asyncio.sleep(0))
    with capture_logs() as lines:
        background.every("summaries", 1.0, work)
        await asyncio.wait_for(reached.wait(), 5)
    await background.stop()

    said, over, unforeseen = lines
    assert (said["reason"], said["advice"], "exc_info" in said) == (full.message, full.advice, False)
    assert (over["event"], over["work"]) == ("background work goes on", "summaries")
    assert isinstance(unforeseen["exc_info"], TypeError)


async def test_a_piece_that_is_ended_is_not_begun_again():
    """One piece leaves, whatever it was doing, and is not failing any more; the other goes on."""
    running: set[str] = set()

    async def work(name):
        running.add(name)
        try:
            await asyncio.Event().wait()
        finally:
            running.remove(name)

    background = Background(ManualClock(), Metrics())
    background.start("a", lambda: work("a"))
    background.start("b", lambda: work("b"))
    await asyncio.sleep(0)
    background.end("a")
    await asyncio.sleep(0)

    assert running == {"b"}
    await background.stop()
    assert running == set()
