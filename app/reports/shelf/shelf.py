"""The folder of finished nights: one folder each, which takes its name when it is whole and is never written to again.

Nothing that is a link is taken for a night or for a file of one: what it leads to can change unseen.
Names come from manifests alone, but for a few that are fixed: nothing that a caller writes becomes a path. What else lies there, half a night among it, is no report.
When down: a folder that cannot be read is ShelfDown; reports that were made stay where they are.
"""

import contextlib
import errno
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from app.errors import DependencyDown, NotFound
from app.reports.manifest import MANIFEST, MOST_BYTES, ROOT, SCRIPT, SIGNATURE_SUFFIX, TIME_STAMP_SUFFIX, Manifest, NotAManifest
from app.reports.plain_file import NotPlain, open_plain

FOLDER, REPORT_KEYS = "reports", "report-keys"
"""Where in --var the nights are and the report keys, unless the settings say otherwise."""
REPORT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}-[a-z0-9-]{1,80}-[1-9][0-9]{0,3}")
"""The id of a report: day, zone, number."""
_FILE = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
_BESIDE = (SIGNATURE_SUFFIX, TIME_STAMP_SUFFIX)
_FIXED = (MANIFEST, *(MANIFEST + suffix for suffix in _BESIDE), ROOT, SCRIPT)


class ShelfDown(DependencyDown):
    """The folder of the reports cannot be read."""

    code = "reports_unreadable"
    hint = "Let the user of serve read report.path; `sluice doctor` tries it."


class UnknownReport(NotFound):
    """No report of that id is on the shelf, or it has no file of that name."""

    code = "no_such_report"
    hint = "GET /reports lists what is there; `files` of GET /reports/{report} are the names of its files."


@dataclass(frozen=True, slots=True)
class ShelvedFile:
    """One file of a finished night."""

    path: Path
    found: os.stat_result
    sm3: str | None
    """In hex, as the manifest has it; None for what it does not list."""

    def open(self) -> BinaryIO:
        """That file, to be read. Raises UnknownReport where it is not there any more, or another took its name."""
        with contextlib.suppress(OSError):
            stream = _opened(self.path)
            if os.path.samestat(os.fstat(stream.fileno()), self.found):
                return stream
            stream.close()
        raise _no_file(self.path.parent.name)


class Shelf:
    """Reads the folder `path`; without one it is empty."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def reports(self) -> list[str]:
        """Ids of all that are there, the newest day first, of one day the last that was made. Raises ShelfDown."""
        try:
            with os.scandir(self.path) as found:
                names = [entry.name for entry in found if REPORT.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ShelfDown(f"{self.path}: {error.strerror}") from None
        return sorted(names, key=order, reverse=True)

    def folder(self, report: str) -> Path:
        """Where that report is. Raises UnknownReport, ShelfDown."""
        if REPORT.fullmatch(report):
            path = self.path / report
            try:
                if is_night(path):
                    return path
            except OSError as error:
                raise ShelfDown(f"{path}: {error.strerror}") from None
        raise UnknownReport(f"report: none has the id {report[:40]!r}", field="report")

    def manifest(self, report: str) -> Manifest:
        """What it says of itself, which nobody has checked yet. Raises UnknownReport, ShelfDown, NotAManifest."""
        try:
            manifest = Manifest.parse(manifest_text(self.folder(report)))
        except OSError as error:
            raise NotAManifest(f"{report}/{MANIFEST}: {error.strerror}") from None
        if manifest.report != report:
            raise NotAManifest(f"{report}/{MANIFEST}: it is that of the report {manifest.report[:80]!r}")
        return manifest

    def names(self, report: str, manifest: Manifest) -> list[str]:
        """Names of all files that belong to `manifest` and are there: what it lists, signatures, and what is for checking."""
        listed = [line.name for line in manifest.files if _FILE.fullmatch(line.name)]
        wanted = [*(f"{name}{suffix}" for name in listed for suffix in ("", *_BESIDE)), *_FIXED]
        return [name for name in wanted if _regular(self.path / report / name) is not None]

    def file(self, report: str, name: str) -> ShelvedFile:
        """One file of a report. Raises UnknownReport where the manifest does not name it or it is no plain file, ShelfDown, NotAManifest.

        A fixed name needs no manifest: one that was broken is evidence.
        """
        sm3 = None if name in _FIXED else self._digest_of(report, name)
        path = self.folder(report) / name
        if found := _regular(path):
            return ShelvedFile(path, found, sm3)
        raise _no_file(report)

    def _digest_of(self, report: str, name: str) -> str | None:
        """SM3 in hex, as the manifest has it; None for a signature. Raises UnknownReport for what does not belong to it."""
        manifest = self.manifest(report)
        if name not in self.names(report, manifest):
            raise _no_file(report)
        return next((line.sm3 for line in manifest.files if line.name == name), None)


def shelf_folder(path: str, var: Path) -> Path:
    """The folder of the setting report.path beside `var`."""
    return Path(path or var / FOLDER)


def is_night(folder: Path) -> bool:
    """Whether a folder is there, and no link to one. Raises OSError where that cannot be seen."""
    try:
        return stat.S_ISDIR(folder.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def manifest_text(folder: Path) -> bytes:
    """The manifest of a night as it stands there. Raises OSError, also where it is a link, no plain file, or larger than any manifest."""
    with _opened(folder / MANIFEST) as file:
        text = file.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"more than {MOST_BYTES} bytes")
    return text


def order(report: str) -> tuple[str, str, int]:
    """By day, zone and number; `report` is an id."""
    night, _, number = report.rpartition("-")
    return night[:10], night[11:], int(number)


def _no_file(report: str) -> UnknownReport:
    return UnknownReport(f"file: {report} has none of that name", field="file")


def _regular(path: Path) -> os.stat_result | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _opened(path: Path) -> BinaryIO:
    """Raises OSError, also where it is a link or no plain file."""
    try:
        return os.fdopen(open_plain(path, follow=False), "rb")
    except NotPlain:
        raise OSError(errno.EINVAL, "it is no plain file") from None
