"""Calls that may never come back hold one thread, and nobody else."""

import threading

import pytest

from app.telemetry.blocking import Blocking


async def test_what_a_call_returns_or_raises():
    """Both reach the caller, one call after the other."""
    blocking = Blocking("test")

    def fail():
        raise LookupError("no such thing")

    assert await blocking.call(lambda: 1, 5) == 1
    with pytest.raises(LookupError, match="no such thing"):
        await blocking.call(fail, 5)
    assert await blocking.call(lambda: 2, 5) == 2


async def test_a_call_that_hangs_keeps_one_thread():
    """The caller is told at the deadline; further calls are refused without a thread until the first is back."""
    blocking, release, back = Blocking("test"), threading.Event(), threading.Event()

    def hang():
        release.wait(30)

    with pytest.raises(TimeoutError):
        await blocking.call(hang, 0.01)
    for _ in range(20):
        with pytest.raises(TimeoutError, match="an earlier call of test has not come back"):
            await blocking.call(back.set, 5)
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "test")
    assert thread.daemon
    assert not back.is_set()
    release.set()
    thread.join(5)
    assert await blocking.call(lambda: "again", 5) == "again"
