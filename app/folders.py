"""Folders that one process holds: the lock that keeps a second one out, and a short private one for unix sockets."""

import fcntl
import hashlib
import os
import stat
import sys
import tempfile
from pathlib import Path

from app.errors import ConfigError

SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103  # what sockaddr_un holds, less its closing zero
SOCKET_NAME_BYTES = 20  # room for a slash and the longest name we use, .s.PGSQL.5432.lock


class FolderInUse(ConfigError):
    """Another process works in the folder that this one was given."""

    code = "folder_in_use"
    hint = "Stop that process, or give this one another folder with --var DIR."


class FolderLock:
    """An exclusive lock on a file, gone with the last process that holds `fd`, however it ends.

    A child that gets `fd` (pass_fds) goes on holding it: a lock that is free proves that all of them have ended.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = -1

    def acquire(self) -> None:
        """Take the lock and write our pid into the file. Raises FolderInUse naming the holder's pid."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(fd, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise FolderInUse(f"{self.path.parent} is in use by process {holder}") from None
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        self.fd = fd

    def release(self) -> None:
        """Give the lock back; twice is once."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def private_dir(parent: Path, name: str = "run", owner_uid: int | None = None) -> Path:
    """A folder of mode 0700 for unix sockets: `name` in `parent`, or a shorter one where its path leaves no room for a socket's name.

    The same parent always gives the same folder. `owner_uid` is who may use it, beside root; by default this process.
    Raises ConfigError where even the short path is too long, or where the folder is somebody else's.
    """
    folder = parent.absolute() / name
    if not _has_room(folder):
        digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
        folder = Path(tempfile.gettempdir()) / f"sluice-{digest}"
    if not _has_room(folder):
        raise ConfigError(
            f"{folder}: too long for the path of a unix socket, which has {SOCKET_PATH_BYTES} bytes",
            hint="Give a shorter folder with --var DIR, or a shorter TMPDIR.",
        )
    folder.mkdir(mode=0o700, exist_ok=True, parents=folder.parent == parent)
    _claim(folder, os.getuid() if owner_uid is None else owner_uid)
    return folder


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
