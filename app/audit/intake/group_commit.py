"""Commits shared by those who wait for one: what arrives while commits are under way goes with the next, all of it together.

A commit costs much the same for one entry and for a hundred. Nobody waits for company: where a commit may begin, it begins.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from app.audit.records.entry import Entry
from app.errors import DependencyDown
from app.tasks import retrieve

AT_ONCE = 2
"""Commits under way: with one alone, whoever just missed it would wait for two."""
MOST_TOGETHER = 256
"""Writers in one commit: some 150 KB of entries, and a share of a time-out."""

Commit = Callable[[Sequence[Entry]], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _Writer:
    """Somebody who waits until their entries are committed."""

    entries: Sequence[Entry]
    done: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class GroupCommit:
    """Hands the entries of several writers to `commit` together; of one writer all or none."""

    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self._writers: deque[_Writer] = deque()
        self._under_way: set[asyncio.Task[None]] = set()

    async def write(self, entries: Sequence[Entry]) -> None:
        """Return when `entries` are committed. Raises what `commit` raises for them; who is cancelled still waits for the end of it."""
        writer = _Writer(entries)
        self._writers.append(writer)
        self._begin()
        try:
            await asyncio.shield(writer.done)
        except asyncio.CancelledError:
            await asyncio.wait({writer.done})
            retrieve(writer.done)
            raise

    def _begin(self) -> None:
        while self._writers and len(self._under_way) < AT_ONCE:
            group = [self._writers.popleft() for _ in range(min(MOST_TOGETHER, len(self._writers)))]
            task = asyncio.create_task(self._commit_group(group))
            self._under_way.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._begin()

    async def _commit_group(self, group: Sequence[_Writer]) -> None:
        """Commit what a group has. Where the database refuses the entries of one writer, the others are tried without them."""
        try:
            await self._commit([entry for writer in group for entry in writer.entries])
        except DependencyDown as error:
            _fail(group, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, each writer must hear of it
            if len(group) == 1:
                _fail(group, error)
                return
            for writer in group:
                await self._commit_group([writer])
        else:
            for writer in group:
                writer.done.set_result(None)


def _fail(group: Sequence[_Writer], error: Exception) -> None:
    for writer in group:
        writer.done.set_exception(error)
