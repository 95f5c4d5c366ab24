"""What wakes the log's process."""

import asyncio

import pytest

from app.audit.sequencing.process import Bell

FOR_EVER_S = 3600.0


async def test_a_pause_ends_when_somebody_asks():
    """A request is heard at once, and once."""
    bell = Bell()
    waiting = asyncio.create_task(bell.pause(FOR_EVER_S))
    await asyncio.sleep(0)
    bell.ask()
    await asyncio.wait_for(waiting, 5)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(bell.pause(FOR_EVER_S), 0.01)


async def test_after_the_end_nobody_pauses():
    """Whoever still has work does it without a rest."""
    bell = Bell()
    bell.end()

    for _ in range(3):
        await asyncio.wait_for(bell.pause(FOR_EVER_S), 5)
