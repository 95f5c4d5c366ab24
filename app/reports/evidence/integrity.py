"""What checking the exported log finds, as the reports print it: by the verifier that comes with Sluice, in this process.

When down: NotChecked where the file cannot be read or this machine's OpenSSL has no SM2. A log that does not verify is no reason to
make no report: the report says so.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from app.audit.format.checkpoint import NoteRefused, parse_note
from app.audit.format.export_file import LineRefused, NotAnExport, lines, read_header
from app.audit.verification.report import NotChecked
from app.audit.verification.text import report_lines
from app.audit.verification.verify import verify
from app.clock import Clock
from app.reports.evidence.facts import Closing, Integrity
from app.signing.certificates import Certificate


def integrity_of(export: Path, root: Certificate, clock: Clock, anchors: Sequence[str] = ()) -> Integrity:
    """What the verifier says of the file `export` of a log that `root` vouches for; `anchors` are checkpoints kept elsewhere, as notes.

    Raises NotChecked where the file cannot be read.
    """
    try:
        with export.open("rb") as stream:
            report = verify(lines(stream), root, anchors, clock)
        note = _note(export)
    except OSError as error:
        raise NotChecked(f"{export.name}: {error.strerror}") from None
    return Integrity(report, tuple(report_lines(report)), note, root.fingerprint.hex(), report.anchors)


def with_unproven(integrity: Integrity, unproven: Sequence[int]) -> Integrity:
    """The same, and that no proof leads from these older entries to the closing checkpoint."""
    return replace(integrity, unproven=tuple(sorted({*integrity.unproven, *unproven})))


def closing_of(integrity: Integrity) -> Closing | None:
    """What closes the export; None where the verifier did not accept it, or the file does not lead to it: then it proves nothing."""
    try:
        said, _ = parse_note(integrity.note)
    except NoteRefused:
        return None
    accepted = (integrity.report.size, integrity.report.root) == (said.size, said.root.hex())
    return Closing(said, integrity.note) if accepted else None


def _note(export: Path) -> str:
    """The checkpoint that closes the file; empty where its first line is none."""
    with export.open("rb") as stream:
        try:
            return read_header(next(lines(stream), b"")).note
        except (NotAnExport, LineRefused):
            return ""
