"""Calls that block and may never come back: one at a time, each in a thread that nobody has to wait for."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


class Blocking:
    """Calls of one library or program. A call that hangs keeps its thread, and no further one is begun until it is back.

    The threads of asyncio's own pool would be waited for at the end of the process, and a new one taken for each call.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._running = False

    async def call(self, work: Callable[[], Result], timeout_s: float) -> Result:
        """What `work` returns or raises. Raises TimeoutError where it takes longer, or where an earlier call is not back yet."""
        if self._running:
            raise TimeoutError(f"an earlier call of {self._name} has not come back")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()
        self._running = True
        threading.Thread(target=self._run, args=(work, loop, answer), name=self._name, daemon=True).start()
        async with asyncio.timeout(timeout_s):
            return await answer

    def _run(self, work: Callable[[], Result], loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Result]) -> None:
        def settle() -> None:
            if answer.done():  # nobody waits any more
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(result)

        error: Exception | None = None
        try:
            result = work()
        except Exception as raised:  # noqa: BLE001 - it is the caller's
            error = raised
        self._running = False
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle)
