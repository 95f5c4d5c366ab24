"""Folders that one process works in: made where it may, locked so that a second one stays out, a short private one for unix sockets."""

import fcntl
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from app.errors import ConfigError

SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103  # what sockaddr_un holds, less its closing zero
SERVE_LOCK = "serve.lock"
"""Held in its --var by a serve for as long as it runs; its word is the address where it listens."""
HOLDER_BYTES = 400  # a pid and a URL
SOCKET_NAME_BYTES = 20  # room for a slash and the longest name we use, .s.PGSQL.5432.lock


class FolderInUse(ConfigError):
    """Another process works in the folder that this one was given."""

    code = "folder_in_use"
    hint = "Stop that process, or give this one another folder with --var DIR."


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock."""

    pid: str
    """Its process id; `unknown` in the moment before it is written."""
    word: str
    """What it wrote down beside, such as the address where it listens; empty where nothing."""


class FolderLock:
    """An exclusive lock on a file, gone with the last process that holds `fd`, however it ends.

    A child that gets `fd` (pass_fds) goes on holding it: a lock that is free proves that all of them have ended.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = -1

    def acquire(self) -> None:
        """Take the lock and write our pid into the file. Raises FolderInUse naming the holder's pid, ConfigError where we may not."""
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unusable(self.path, error.strerror) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = _holder(fd)
            os.close(fd)
            raise FolderInUse(f"{self.path.parent} is in use by process {holder.pid}") from None
        self.fd = fd
        self.note("")

    def note(self, word: str) -> None:
        """Write down a word for whoever asks for the holder of the lock, which we must hold."""
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, f"{os.getpid()}\n{word}".encode(), 0)

    def holder(self) -> Holder | None:
        """Who holds the lock now; None where nobody does. Raises ConfigError where that cannot be read."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _unusable(self.path, error.strerror) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return _holder(fd)
        finally:
            os.close(fd)
        return None

    def release(self) -> None:
        """Give the lock back; twice is once."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _holder(fd: int) -> Holder:
    pid, _, word = os.pread(fd, HOLDER_BYTES, 0).decode("utf-8", "replace").partition("\n")
    return Holder(pid.strip() or "unknown", word.strip())


def working_folder(path: Path) -> Path:
    """`path`, made (0711) if need be, where this process can write. Raises ConfigError."""
    try:
        path.mkdir(mode=0o711, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(path, error.strerror) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise _unusable(path, "Permission denied")
    return path


def _unusable(path: Path, why: str | None) -> ConfigError:
    hint = "Make it for this user, run as the one whose it is, or name another folder with --var DIR."
    return ConfigError(f"{path.absolute()}: {why or 'cannot be used'}", hint=hint)


def private_dir(parent: Path, name: str = "run", owner_uid: int | None = None) -> Path:
    """A folder of mode 0700 for unix sockets: `name` in `parent`, or a shorter one where its path leaves no room for a socket's name.

    The same parent always gives the same folder. `owner_uid` is who may use it, beside root; by default this process.
    Raises ConfigError where even the short path is too long, or where the folder is somebody else's.
    """
    folder = _private_path(parent, name)
    if not _has_room(folder):
        raise ConfigError(
            f"{folder}: too long for the path of a unix socket, which has {SOCKET_PATH_BYTES} bytes",
            hint="Give a shorter folder with --var DIR, or a shorter TMPDIR.",
        )
    folder.mkdir(mode=0o700, exist_ok=True, parents=folder.parent == parent)
    _claim(folder, os.getuid() if owner_uid is None else owner_uid)
    return folder


def remove_private_dir(parent: Path, name: str = "run") -> None:
    """Remove the folder that private_dir made, with all in it, where it is not in `parent`: nobody would look for it there.

    For the end, when no program works in it any more.
    """
    folder = _private_path(parent, name)
    if folder.parent != parent.absolute():
        shutil.rmtree(folder, ignore_errors=True)


def _private_path(parent: Path, name: str) -> Path:
    folder = parent.absolute() / name
    if _has_room(folder):
        return folder
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"sluice-{digest}"


def _has_room(folder: Path) -> bool:
    return len(os.fsencode(folder)) + SOCKET_NAME_BYTES <= SOCKET_PATH_BYTES


def _claim(folder: Path, owner_uid: int) -> None:
    found = folder.lstat()  # not followed: a link planted under a shared /tmp is not our folder
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (owner_uid, os.getuid()):
        raise ConfigError(f"{folder}: is not a folder of user {owner_uid}", hint="Remove it, or give another folder with --var DIR.")
    if found.st_uid != owner_uid:
        os.chown(folder, owner_uid, -1)
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
