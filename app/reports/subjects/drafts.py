"""Files that appear together when all are whole: 0600, written to a folder beside their places, which nothing there gives way to."""

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from app import private_files
from app.private_files import refused_as, sync_folder

HINT = "Name a folder that this user may write to with --out DIR."


class Drafts:
    """Files that are being written for `folder`."""

    def __init__(self, folder: Path, place: Path) -> None:
        self._folder = folder
        self._place = place

    def new(self, name: str) -> contextlib.AbstractContextManager[BinaryIO]:
        """A new file, to be written, on the disk when the block ends."""
        return private_files.new(self.path(name))

    def add(self, name: str, content: bytes) -> None:
        """A new file of this content."""
        with self.new(name) as file:
            file.write(content)

    def path(self, name: str) -> Path:
        """Where a draft is, until it is given."""
        return self._place / name

    def sums(self) -> list[dict[str, str]]:
        """Name and SM3 of each, by name."""
        return [{"name": path.name, "sm3": _sm3(path)} for path in sorted(self._place.iterdir())]

    def give(self) -> Sequence[Path]:
        """Let all take their names in the folder. Raises ConfigError, and then gives none, where one of the names is taken."""
        given: list[Path] = []
        try:
            for draft in sorted(self._place.iterdir()):
                place = self._folder / draft.name
                os.link(draft, place)
                given.append(place)
        except OSError:
            for place in given:
                place.unlink()
            raise
        sync_folder(self._folder)
        return given


@contextlib.contextmanager
def drafts(folder: Path) -> Iterator[Drafts]:
    """Drafts for `folder`, which is made (0700) where it is missing; gone after the block, given or not. Raises ConfigError."""
    place = folder / f".making-{secrets.token_hex(4)}"
    with refused_as(f"--out: {folder}", HINT):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.mkdir(mode=0o700)
        try:
            yield Drafts(folder, place)
        finally:
            shutil.rmtree(place)


def _sm3(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new("sm3")).hexdigest()
