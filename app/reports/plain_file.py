"""Opening a file of a report: a plain one, and never with a wait, whatever somebody put in its place."""

import os
import stat
from pathlib import Path


class NotPlain(OSError):
    """What is there is a folder, a pipe, a socket or a device."""


def open_plain(path: str | Path, *, follow: bool) -> int:
    """A descriptor of the file at `path`, to be read; of what a link there leads to, unless not to `follow`. Raises OSError, NotPlain."""
    flags = os.O_RDONLY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags | os.O_NONBLOCK)  # a pipe would keep whoever opens it waiting
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotPlain
