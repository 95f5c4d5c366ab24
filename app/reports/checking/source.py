"""The file that is checked, read piece by piece: a report may have many megabytes, and none of it is trusted yet.

When down: what cannot be read raises Unreadable, and is never taken for tampered.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from app.errors import SluiceError
from app.reports.plain_file import NotPlain, open_plain

PIECE_BYTES = 1 << 20
MAX_FILE_BYTES = 1 << 32
"""A night of ten million entries has less; what is larger is not read at all."""


class Unreadable(SluiceError):
    """A file that is to be checked is none, or cannot be read here; nothing is known of it."""

    code = "report_unreadable"
    status = 422
    exit_code = 6
    hint = "Name a file of a night's folder that this user may read."


class NotThere(Unreadable):
    """A file that is to be checked is not there, or was taken away meanwhile."""

    code = "report_not_there"


class Source:
    """The bytes of a file that stays open while it is checked, so that all that is said is of the same one."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self.size = size

    def read(self, begin: int, end: int) -> bytes:
        """The bytes from `begin` to before `end`, fewer where the file ends earlier. Raises Unreadable."""
        begin, end = max(begin, 0), min(end, self.size)
        try:
            self._stream.seek(begin)
            return self._stream.read(max(end - begin, 0))
        except OSError as error:
            raise Unreadable(f"it cannot be read: {error.strerror}") from None

    def digest(self, algorithm: str, *ranges: tuple[int, int]) -> bytes:
        """The digest of these ranges, one after the other; of the whole file where none is given."""
        hashed = hashlib.new(algorithm)
        for begin, end in ranges or ((0, self.size),):
            for at in range(begin, end, PIECE_BYTES):
                hashed.update(self.read(at, min(at + PIECE_BYTES, end)))
        return hashed.digest()


@contextlib.contextmanager
def opened(path: Path, *, follow: bool = True) -> Iterator[Source]:
    """The regular file at `path`, open; what a link there leads to, unless not to `follow`. Raises Unreadable, of which NotThere is one kind."""
    try:
        descriptor = open_plain(path, follow=follow)
    except FileNotFoundError:
        raise NotThere("it is not there") from None
    except NotPlain:
        raise Unreadable("it is no regular file") from None
    except (OSError, ValueError) as error:  # the second for a name with NUL
        raise Unreadable(f"it cannot be read: {getattr(error, 'strerror', None) or 'nothing has such a name'}") from None
    with os.fdopen(descriptor, "rb") as stream:
        size = os.fstat(descriptor).st_size
        if size > MAX_FILE_BYTES:
            raise Unreadable(f"it has {size} bytes, more than a report can have")
        yield Source(cast(BinaryIO, stream), size)
