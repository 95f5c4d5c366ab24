"""What the log's process says of its troubles, and what wakes it."""

import asyncio

import pytest
from structlog.testing import capture_logs

from app.audit.sequencing.process import Bell, Trouble
from app.database import DatabaseDown

FOR_EVER_S = 3600.0


def test_a_trouble_is_said_once_and_when_it_is_over():
    """An outage of hours is two lines of the log, and another reason is another line."""
    trouble = Trouble()
    with capture_logs() as lines:
        for reason in ("no answer", "no answer", "disk full", "disk full"):
            trouble.say("the log stands still", DatabaseDown(reason))
        assert trouble.lasts
        trouble.over()
        trouble.over()

    assert [(line["event"], line.get("reason") or line.get("after")) for line in lines] == [
        ("the log stands still", "no answer"),
        ("the log stands still", "disk full"),
        ("the log goes on", "disk full"),
    ]
    assert not trouble.lasts


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
