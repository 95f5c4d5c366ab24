"""Tasks and futures that nobody waits for to their end."""

import asyncio
from typing import Any


def retrieve(task: asyncio.Future[Any]) -> None:
    """Read what `task` ended with, so that it is not reported as never retrieved: whoever began it may have stopped waiting."""
    if not task.cancelled():
        task.exception()
