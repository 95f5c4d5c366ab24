"""A night's folder while it is made: beside its place, under a name that nobody reads, until it is whole and on the disk.

When down: a disk that is full, or a folder that cannot be written to, is ShelfUnwritable; nothing of the night stays. What a kill left
is removed by who makes the night next.
"""

import contextlib
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from app import private_files
from app.errors import SluiceError
from app.reports.nights.night import Night

PREFIX = ".making-"
FOLDER_MODE = 0o700
"""For the user of serve alone, as its files are: they tell of people, though by pseudonyms."""


class ShelfUnwritable(SluiceError):
    """The folder of the reports cannot be written to, or its disk is full; no half report stays."""

    code = "reports_unwritable"
    exit_code = 6
    hint = "Let this user write to report.path, and make room on its disk; the night is made at the next try."


class Draft:
    """One folder that is being filled."""

    def __init__(self, shelf: Path, report: str) -> None:
        self.report = report
        self.path = shelf / f"{PREFIX}{report}"
        self.place = shelf / report

    def begin(self) -> None:
        """Make it, empty. Raises ShelfUnwritable."""
        with refused(self.place.parent):
            self.place.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            self.remove()
            self.path.mkdir(mode=FOLDER_MODE)

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """A new file of it, which is on the disk when the block ends. Raises ShelfUnwritable."""
        with refused(self.path / name), private_files.new(self.path / name) as file:
            yield file

    def write(self, name: str, content: bytes) -> None:
        """A new file with `content`. Raises ShelfUnwritable."""
        with self.writing(name) as file:
            file.write(content)

    def settle(self) -> None:
        """Bring the names of all its files to the disk. Raises ShelfUnwritable."""
        with refused(self.path):
            private_files.sync_folder(self.path)
            private_files.sync_folder(self.path.parent)

    def publish(self) -> Path:
        """Let it take its name, which nobody has; where it is now. Raises ShelfUnwritable."""
        with refused(self.place):
            if self.place.exists():  # a folder without files would be replaced without a word
                raise FileExistsError(errno.EEXIST, "a report of that name is there")
            self.path.rename(self.place)
            private_files.sync_folder(self.place.parent)
        return self.place

    def remove(self) -> None:
        """Nothing of it stays; twice is once."""
        shutil.rmtree(self.path, ignore_errors=True)


def drafts_of(shelf: Path, night: Night) -> list[Draft]:
    """What was begun of a night and not finished. Of the night that this process has the lock of, nobody goes on with them."""
    prefix = f"{PREFIX}{night.name}-"
    try:
        names = sorted(entry.name for entry in shelf.iterdir() if entry.name.startswith(prefix) and entry.name[len(prefix) :].isdigit())
    except OSError:
        return []
    return [Draft(shelf, name.removeprefix(PREFIX)) for name in names]


@contextlib.contextmanager
def refused(what: Path) -> Iterator[None]:
    """Turn what the system refuses in the block into ShelfUnwritable that names `what`."""
    try:
        yield
    except OSError as error:
        raise ShelfUnwritable(f"{what}: {error.strerror or error}") from None
