"""A task that nobody waits for any more ends in silence."""

import asyncio
import gc
from typing import Any

from app.tasks import retrieve


async def test_what_nobody_waited_for_is_not_reported():
    """Neither an error nor a cancellation of such a task reaches the loop's handler."""
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def fail() -> None:
        raise ValueError("late")

    for work in (fail(), asyncio.sleep(3600)):
        task = asyncio.create_task(work)
        task.add_done_callback(retrieve)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        del task
    gc.collect()

    assert reported == []
