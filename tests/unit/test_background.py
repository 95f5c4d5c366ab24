"""Work beside requests: one piece that fails begins again, and the others never notice."""

import asyncio

from app.background import Background
from app.clock import ManualClock
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
