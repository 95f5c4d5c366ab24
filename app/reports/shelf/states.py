"""Whether the reports on the shelf are as they were signed: found out in a thread, kept until a file of the night changes.

When down: a report that cannot be checked says why; one that nobody has looked at yet has no state.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app.worker import Worker

MOST_KEPT = 1000
"""States; some three years of nights."""

Stamp = tuple[tuple[str, int, int, int], ...]
"""Of each file of a folder its name, time of change in ns, size and inode. Of change, since whoever writes can set that of writing back."""


@dataclass(frozen=True, slots=True)
class State:
    """What checking one night found."""

    verdict: Literal["valid", "tampered", "unchecked", "missing"]
    why: str = ""
    """Empty where it is valid."""
    other_root: str = ""
    """SM3 in hex of the root that it is good under, where that is not the root here: only the log can vouch for such a night."""

    @property
    def lasts(self) -> bool:
        """Whether it is so until a file changes; what could not be read may be there the next time."""
        return self.verdict != "unchecked" or bool(self.other_root)


class States:
    """Checks nights with `check`, one after the other, beside everything else; `also` are files outside of a night that it reads."""

    def __init__(self, check: Callable[[Path], State], *also: Path) -> None:
        self._check = check
        self._also = also
        self._worker = Worker("check-reports")
        self._known: dict[Path, tuple[Stamp, State]] = {}
        self._running: dict[Path, asyncio.Future[State]] = {}

    async def of(self, folders: list[Path], wait_s: float) -> list[State | None]:
        """The state of each folder; None where it is not known within `wait_s`: ask again later."""
        stamps = await asyncio.to_thread(self._stamps, folders)
        asked = [self._asked(*one) for one in zip(folders, stamps, strict=True)]
        if waiting := {one for one in asked if isinstance(one, asyncio.Future)}:
            await asyncio.wait(waiting, timeout=wait_s)
        return [_result(one) for one in asked]

    def _stamps(self, folders: list[Path]) -> list[Stamp]:
        also = tuple(stamp for path in self._also for stamp in _stamped(path))
        return [stamp_of(folder) + also for folder in folders]

    def _asked(self, folder: Path, stamp: Stamp) -> "State | asyncio.Future[State]":
        kept = self._known.get(folder)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        if folder not in self._running:
            running = asyncio.get_running_loop().run_in_executor(self._worker, self._check, folder)
            self._running[folder] = running
            running.add_done_callback(lambda done: self._checked(folder, stamp, done))
        return self._running[folder]

    def _checked(self, folder: Path, stamp: Stamp, done: "asyncio.Future[State]") -> None:
        self._running.pop(folder, None)
        if done.cancelled() or not (state := _settled(done)).lasts:
            return
        self._known.pop(folder, None)
        self._known[folder] = (stamp, state)
        while len(self._known) > MOST_KEPT:
            self._known.pop(next(iter(self._known)))


def stamp_of(folder: Path) -> Stamp:
    """What changes where a file of `folder` does; a folder that cannot be read has none of its files."""
    try:
        found = [(path.name, path.lstat()) for path in folder.iterdir()]
    except OSError:
        return ()
    return tuple(sorted((name, one.st_ctime_ns, one.st_size, one.st_ino) for name, one in found))


def _stamped(path: Path) -> Stamp:
    """That of one file, of what a link leads to; nothing of one that is not there."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return ((str(path), found.st_ctime_ns, found.st_size, found.st_ino),)


def _result(one: "State | asyncio.Future[State]") -> State | None:
    if isinstance(one, State):
        return one
    return _settled(one) if one.done() and not one.cancelled() else None


def _settled(done: "asyncio.Future[State]") -> State:
    error = done.exception()
    return done.result() if error is None else State("unchecked", f"checking it failed: {type(error).__name__}")
