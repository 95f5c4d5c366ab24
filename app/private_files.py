"""Files for their owner alone (0600) that hold secrets: always whole, whenever a start is cut short.

A file is written beside its place, reaches the disk, and only then takes its name: readers find all of it or none.
When down: a file that cannot be written or read stops the start with ConfigError; a new secret would lock out whoever holds the old one.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from app.errors import ConfigError

ACCESS = "Let this user read the file and write to its folder."
"""What is to be done where the system refuses a file for other reasons than room."""


def write_once(path: Path, content: bytes) -> bytes:
    """What `path` holds: `content` where there was no such file, else what was there. Raises ConfigError.

    Of processes that start together one writes, and all get the same. The folder is made (0700) where it is missing.
    """
    with refused_as(path):
        if not path.exists():
            with _draft(path) as (draft, file), contextlib.suppress(FileExistsError):
                file.write(content)
                _to_disk(file)
                os.link(draft, path)
                sync_folder(path.parent)
        return path.read_bytes()


def read(path: Path, *, named_by: str = "") -> bytes:
    """What `path` holds, which the setting or option `named_by` names. Raises ConfigError where that cannot be read, or others could read it, too."""
    what = f"{named_by}: {path}" if named_by else path
    hint = f"Name a file that is there and that this user may read with {named_by}." if named_by else ACCESS
    with refused_as(what, hint), path.open("rb") as file:
        _refuse_open(path, os.fstat(file.fileno()))
        return file.read()


def check_folder(path: Path) -> None:
    """Raise ConfigError where `path` is no folder that this process may use, or where others may enter it."""
    with refused_as(path):
        next(path.iterdir(), None)
        _refuse_open(path, path.stat())


def replace(path: Path, content: bytes) -> None:
    """Let `path` hold `content`, whatever was there. The folder is made (0700) where it is missing. Raises ConfigError."""
    with replacing(path) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """The same for what is written bit by bit: the file takes its name when the block ends well, else nothing of it stays."""
    with refused_as(path), _draft(path) as (draft, file):
        yield file
        _to_disk(file)
        draft.replace(path)
        sync_folder(path.parent)


def _refuse_open(path: Path, found: os.stat_result) -> None:
    """Our own are for us alone. Those that root mounts for us we read as their group, as PostgreSQL has it for its keys."""
    forbidden = 0o077 if found.st_uid == os.getuid() else 0o027
    if stat.S_IMODE(found.st_mode) & forbidden:
        mode = "700" if stat.S_ISDIR(found.st_mode) else "600"
        raise ConfigError(f"{path}: open to others (mode {stat.S_IMODE(found.st_mode):o})", hint=f"chmod {mode} {path}")


@contextlib.contextmanager
def refused_as(what: Path | str, hint: str = ACCESS) -> Iterator[None]:
    """Turn what the system refuses in the block into a ConfigError that names `what` and the remedy: `hint`, or room where that is missing."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise ConfigError(f"{what}: {error.strerror}", hint="Make room on that disk." if full else hint) from None


@contextlib.contextmanager
def new(path: Path) -> Iterator[BinaryIO]:
    """A file that was not there, to be written, and on the disk when the block ends; its folder is not synced. Raises OSError."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        yield file
        _to_disk(file)


@contextlib.contextmanager
def _draft(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file beside `path`, open for writing; gone after the block unless it was renamed."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield draft, file
    finally:
        draft.unlink(missing_ok=True)


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Bring names in `folder` to the disk, too. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
