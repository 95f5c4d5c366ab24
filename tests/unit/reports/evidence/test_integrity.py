"""What the reports say of the log that they are made from."""

from datetime import timedelta
from pathlib import Path

import pytest

from app.audit.format.checkpoint import parse_note
from app.audit.verification.report import NotChecked
from app.clock import ManualClock
from app.reports.evidence.context import Context
from app.reports.evidence.integrity import integrity_of
from tests.fixtures.night import MADE, NOON, NightLog, allowed, authority, read

LOG = NightLog.of(read(), allowed(1), read())


def integrity_of_lines(path: Path, lines: list[bytes], *anchors: str):
    path.write_bytes(b"".join(lines))
    return integrity_of(path, authority().root, ManualClock(MADE), anchors)


def test_a_whole_log_is_told_as_the_verifier_tells_it(tmp_path: Path):
    """Its text, the note that closes the file, and the root's fingerprint."""
    integrity = integrity_of_lines(tmp_path / "log.jsonl", LOG.lines())

    assert integrity.whole
    assert integrity.text[0] == "whole"
    assert integrity.text[2] == "  entries      0 to 2: 3 with their bodies, 0 purged"
    assert parse_note(integrity.note)[0].size == integrity.report.size == 3
    assert (integrity.root, integrity.anchors) == (authority().root.fingerprint.hex(), 0)


def test_anchors_that_were_compared_are_counted(tmp_path: Path):
    """A checkpoint kept elsewhere that fits is one."""
    integrity = integrity_of_lines(tmp_path / "log.jsonl", LOG.lines(anchors=[2]), LOG.log.note(2))

    assert (integrity.whole, integrity.anchors) == (True, 1)


def test_a_log_that_does_not_verify_is_told_too(tmp_path: Path):
    """A missing entry, and a file that is none, are findings and no errors."""
    lines = LOG.lines()
    missing = integrity_of_lines(tmp_path / "log.jsonl", [*lines[:2], *lines[3:]])
    none = integrity_of_lines(tmp_path / "log.jsonl", [b"hello\n"])

    assert (missing.whole, missing.report.verdict) == (False, "tampered")
    assert "tampered   entry 1: missing" in missing.text
    assert (none.whole, none.note, none.report.verdict) == (False, "", "unchecked")


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path):
    """Nothing is said of what nobody saw, and no path of this machine is told."""
    with pytest.raises(NotChecked, match=r"^log\.jsonl: No such file"):
        integrity_of(tmp_path / "log.jsonl", authority().root, ManualClock(MADE))


def test_older_entries_without_proof_are_told():
    """What the reports needed and nothing proves breaks the integrity of all that they say."""
    evidence = NightLog.of(read(NOON - timedelta(days=9)), read()).evidence(context=Context(unproven=[7, 3]))

    assert (evidence.integrity.unproven, evidence.integrity.whole) == ((3, 7), False)
    assert evidence.integrity.report.verdict == "whole"
