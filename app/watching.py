"""Files that are followed while we run: told within a second of a change, however it is made.

People rename folders and files over others, swap links (as mounted config maps do), delete and copy again. Events of a file
system tell none of that reliably: they belong to inodes, not to paths. So events are only hints to look now. What counts is
a look at what the paths lead to, taken several times a second anyway: it costs a stat per file.

When down: a file that cannot be looked at counts as one that is different, and is looked at again; following never ends.
"""

import asyncio
import errno
import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import structlog
from watchfiles import awatch

LOOK_AGAIN_S = 0.25
"""How long a change without an event stays unseen: a second, less the time that whoever reads the files needs."""

QUIET_S = 0.05
"""A change is told once the files were quiet for it: one save is several writes, and a folder is copied file by file.

Longer than any kernel's tick too, so that a later write always shows in a file's times.
"""

BUSY_S = 0.5
"""A change is told after it in any case: something may never be quiet."""

_EVENTS_MS = 25
"""Events this close together are one hint."""

log = structlog.get_logger()


_Files = tuple[tuple[object, ...], ...]
"""Of each file its path, device, inode, size and times; or an error in the place of one."""

_Folder = tuple[str, int, int]
"""Path, device and inode: the same path may lead to another folder a moment later."""


@dataclass(frozen=True, slots=True)
class _Look:
    """What some paths lead to at one moment."""

    files: _Files
    folders: frozenset[_Folder]
    """Every folder where a change could come from."""


async def changes(paths: Iterable[Path]) -> AsyncIterator[None]:
    """Once at the start and then after each change of what lies at `paths`: files, or folders with all that is in them.

    `paths` is gone through at every look, so a list may be changed meanwhile. Whoever is told reads the files, which may
    have changed again by then: that is told, too.
    """
    told: _Files | None = None
    async with aclosing(_Hints()) as hints:
        while True:
            look = await _quiet_look(paths, told)
            if look.files != told:
                told = look.files
                yield
            await hints.wait(look.folders)


async def _quiet_look(paths: Iterable[Path], told: _Files | None) -> _Look:
    """A look at files that are as they were told, or that have become quiet."""
    look = await asyncio.to_thread(_look, tuple(paths))
    for _ in range(round(BUSY_S / QUIET_S)):
        if look.files == told:
            break
        await asyncio.sleep(QUIET_S)
        before, look = look, await asyncio.to_thread(_look, tuple(paths))
        if look.files == before.files:
            break
    return look


def _look(paths: tuple[Path, ...]) -> _Look:
    files: list[tuple[object, ...]] = []
    folders: set[_Folder] = set()
    for path in paths:
        try:
            folders.add(_folder(path.parent))  # where it may be replaced
            folders.add(_folder(Path(os.path.realpath(path)).parent))  # where it is written
            for file, found in _walk(path, folders):
                files.append((str(file), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
        except OSError as error:
            files.append((str(path), error.errno, error.filename))
    return _Look(tuple(files), frozenset(folders))


def files_under(folder: Path) -> list[Path]:
    """Every file in a folder by name, links followed, but nothing hidden. Raises OSError, also for what vanishes meanwhile.

    A link that leads nowhere or back to a folder above is such an error: a file that is passed over in silence is a rule less.
    """
    return [file for file, _ in _walk(folder, set())]


def _walk(path: Path, folders: set[_Folder], above: tuple[tuple[int, int], ...] = ()) -> Iterator[tuple[Path, os.stat_result]]:
    found = path.stat()
    if not stat.S_ISDIR(found.st_mode):
        yield path, found
        return
    identity = (found.st_dev, found.st_ino)
    if identity in above:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    folders.add((str(path), *identity))
    for entry in sorted(path.iterdir()):
        if not entry.name.startswith("."):
            yield from _walk(entry, folders, (*above, identity))


def _folder(path: Path) -> _Folder:
    found = path.stat()
    return str(path), found.st_dev, found.st_ino


class _Hints:
    """Events of folders, which are watched anew as soon as others, or other ones at the same paths, are asked for."""

    def __init__(self) -> None:
        self._folders: frozenset[_Folder] = frozenset()
        self._events: AsyncGenerator[object, None] | None = None

    async def wait(self, folders: frozenset[_Folder]) -> None:
        """Until something happens in one of the folders, but not longer than LOOK_AGAIN_S."""
        if folders != self._folders:
            await self.aclose()
            self._folders = folders
        try:
            self._events = self._events or _events(folders)
            await anext(self._events)
        except Exception as error:  # noqa: BLE001 - without hints it goes on, only slower, and whatever was wrong may pass
            log.debug("no file events", problem=str(error))
            self._events = None
            await asyncio.sleep(LOOK_AGAIN_S)

    async def aclose(self) -> None:
        """Watch nothing any more."""
        if self._events is not None:
            await self._events.aclose()
            self._events = None


def _events(folders: frozenset[_Folder]) -> AsyncGenerator[object, None]:
    return awatch(
        *(path for path, _, _ in folders),
        watch_filter=None,
        recursive=False,  # folders below are in the look
        step=_EVENTS_MS,
        debounce=round(LOOK_AGAIN_S * 1000),
        rust_timeout=round(LOOK_AGAIN_S * 1000),
        yield_on_timeout=True,
    )
