"""Writers that wait at the same time share a commit, and each hears what became of its own entries."""

import asyncio
from collections.abc import Sequence

import pytest

from app.audit.intake.group_commit import AT_ONCE, MOST_TOGETHER, GroupCommit
from app.audit.records.entry import Entry
from app.errors import DependencyDown
from tests.fixtures.entries import numbered


class Commits:
    """Commits that end when they are let go."""

    def __init__(self) -> None:
        self.begun: list[list[Entry]] = []
        self.gates: list[asyncio.Event] = []
        self.refuses: Entry | None = None
        self.down = False

    async def __call__(self, entries: Sequence[Entry]) -> None:
        self.begun.append(list(entries))
        self.gates.append(asyncio.Event())
        await self.gates[-1].wait()
        if self.down:
            raise DependencyDown("PostgreSQL: no server")
        if self.refuses in entries:
            raise ValueError("no such entry")

    async def let_go(self, count: int) -> None:
        """Let the first `count` commits end, also those that begin only then."""
        for number in range(count):
            while len(self.gates) <= number:  # noqa: ASYNC110 - the loop itself is what begins them
                await asyncio.sleep(0)
            self.gates[number].set()
        for _ in range(5):
            await asyncio.sleep(0)


async def begin(group: GroupCommit, writers: Sequence[Sequence[Entry]]) -> list[asyncio.Task[None]]:
    """Writers that arrive one after the other."""
    tasks = []
    for entries in writers:
        tasks.append(asyncio.create_task(group.write(entries)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return tasks


async def test_who_comes_first_waits_for_nobody_and_who_comes_meanwhile_goes_together():
    """The first commits begin at once, each with one writer; all that come while they are under way are in the next."""
    commits = Commits()
    entries = [numbered(n) for n in range(AT_ONCE + 5)]
    tasks = await begin(GroupCommit(commits), [[entry] for entry in entries])
    first = list(commits.begun)
    await commits.let_go(AT_ONCE + 1)
    await asyncio.gather(*tasks)

    assert first == [[entry] for entry in entries[:AT_ONCE]]
    assert commits.begun[AT_ONCE:] == [entries[AT_ONCE:]]


async def test_nobody_returns_before_their_entries_are_committed():
    """A writer whose commit is under way still waits when another's has ended."""
    commits = Commits()
    tasks = await begin(GroupCommit(commits), [[numbered(0)], [numbered(1)]])
    await commits.let_go(1)

    assert [task.done() for task in tasks] == [True, False]
    await commits.let_go(2)
    await asyncio.gather(*tasks)


async def test_a_refused_entry_takes_nobody_with_it():
    """Where the database refuses what one writer has, the others of its group are committed, and it alone hears of it."""
    commits = Commits()
    entries = [numbered(n) for n in range(AT_ONCE + 3)]
    commits.refuses = entries[AT_ONCE + 1]
    tasks = await begin(GroupCommit(commits), [[entry] for entry in entries])
    await commits.let_go(AT_ONCE + 1 + 3)
    ended = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(end) for end in ended] == [type(None)] * (AT_ONCE + 1) + [ValueError, type(None)]
    assert commits.begun[-3:] == [[entry] for entry in entries[AT_ONCE:]]


async def test_an_outage_is_every_waiting_writers_and_the_next_are_tried_anew():
    """Each writer of a group hears that the log is down; whoever comes later has a commit of their own."""
    commits, last = Commits(), numbered(99)
    commits.down = True
    group = GroupCommit(commits)
    tasks = await begin(group, [[numbered(n)] for n in range(AT_ONCE + 2)])
    await commits.let_go(AT_ONCE + 1)
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    commits.down = False
    (task,) = await begin(group, [[last]])
    await commits.let_go(AT_ONCE + 2)
    await task

    assert {type(end) for end in ended} == {DependencyDown}
    assert commits.begun[-1] == [last]


async def test_who_is_cancelled_waits_until_it_is_known_what_became_of_the_entries():
    """A caller that hangs up ends when its commit has ended, and takes nothing back."""
    commits = Commits()
    (task,) = await begin(GroupCommit(commits), [[numbered(0)]])
    task.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    waited = not task.done()
    await commits.let_go(1)

    assert waited
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_group_is_bounded():
    """More writers than fit one commit are in two."""
    commits = Commits()
    tasks = await begin(GroupCommit(commits), [[numbered(n)] for n in range(AT_ONCE + MOST_TOGETHER + 1)])
    await commits.let_go(AT_ONCE + 2)
    await asyncio.gather(*tasks)

    assert [len(entries) for entries in commits.begun] == [1] * AT_ONCE + [MOST_TOGETHER, 1]
