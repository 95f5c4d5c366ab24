"""What is said of a report beyond its verdict, and what no change of its bytes gets past."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.reports.checking import pdf, source
from app.reports.checking.check import check
from app.reports.checking.result import Result
from app.reports.checking.text import NOTICE, lines
from tests.fixtures.signed_reports import CSV, Keys, beside, flipped, night, page, pdf_with_pades, signed_pdf

KEYS = Keys.make()
ROOT = KEYS.root
PDF = signed_pdf(KEYS)
SIGNATURE = beside(KEYS, CSV)


def said(folder: Path, name: str, content: bytes) -> Result:
    """What is said of a file with this content."""
    (folder / name).write_bytes(content)
    return check(folder / name, ROOT)


def test_what_is_told_of_a_good_one(tmp_path: Path):
    """Who signed and when, by name and fingerprint, and how much: all bytes of the file but those of the signature."""
    result = said(tmp_path, "mlps.pdf", PDF)

    hole = PDF.index(b">\n/ByteRange") + 1 - PDF.index(b"<", PDF.index(b"/Contents <"))
    assert (result.verdict, result.signer, result.fingerprint) == ("valid", KEYS.certificate.subject, KEYS.certificate.fingerprint.hex())
    assert (result.signed_at, result.covers) == ("2026-11-30T01:02:03.000000Z", len(PDF) - hole)
    assert (result.others, result.remarks) == ((), ())


def test_nothing_is_told_of_a_signer_whose_signature_is_not_good(tmp_path: Path):
    """A name that nobody vouches for would be believed."""
    result = said(tmp_path, "mlps.pdf", flipped(PDF, 100))
    assert (result.signer, result.fingerprint, result.signed_at, result.covers) == (None, None, None, None)


def test_other_signatures_are_told_and_not_judged(tmp_path: Path):
    """A PAdES signature below is for other readers; it is there, and this check says no more of it."""
    below = pdf_with_pades(page())
    result = said(tmp_path, "mlps.pdf", signed_pdf(KEYS, below))

    assert result.verdict == "valid"
    assert result.others == (f"a signature that is not SM2, over the first {len(below)} bytes: not judged",)


@settings(max_examples=100, deadline=None)
@given(at=st.integers(0, len(PDF) - 1), bit=st.integers(0, 7))
def test_no_bit_of_a_pdf_may_change(tmp_path_factory: pytest.TempPathFactory, at: int, bit: int):
    """Wherever it is, in the pages, the signature or the zeros behind it."""
    assert said(tmp_path_factory.getbasetemp(), "flipped.pdf", flipped(PDF, at, bit)).verdict == "tampered"


@settings(max_examples=100, deadline=None)
@given(at=st.integers(0, len(PDF)), more=st.binary(min_size=1, max_size=40))
def test_nothing_may_be_put_in(tmp_path_factory: pytest.TempPathFactory, at: int, more: bytes):
    """Not at its end, nor anywhere in it, nor may anything be taken away."""
    folder = tmp_path_factory.getbasetemp()
    assert said(folder, "longer.pdf", PDF[:at] + more + PDF[at:]).verdict == "tampered"
    assert said(folder, "shorter.pdf", PDF[: max(at - 1, 0)] + PDF[at:]).verdict == ("tampered" if at else "valid")


@settings(max_examples=50, deadline=None)
@given(at=st.integers(0, len(CSV) - 1), bit=st.integers(0, 7))
def test_no_bit_of_a_csv_may_change(tmp_path_factory: pytest.TempPathFactory, at: int, bit: int):
    """The mark at its start is among what is signed."""
    folder = tmp_path_factory.getbasetemp()
    (folder / "decisions.csv.p7s").write_bytes(SIGNATURE)
    assert said(folder, "decisions.csv", flipped(CSV, at, bit)).cause == "digest"


@pytest.mark.parametrize("piece", [7, 64, 1000, pytest.param(len(PDF) - 1, id="all but the last byte")])
def test_a_file_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int):
    """Wherever the pieces begin, within /ByteRange too, it is found once and hashed whole."""
    monkeypatch.setattr(source, "PIECE_BYTES", piece)
    monkeypatch.setattr(pdf, "PIECE_BYTES", piece)

    assert said(tmp_path, "mlps.pdf", PDF).verdict == "valid"
    assert said(tmp_path, "mlps.pdf", PDF + b"x").cause == "appended"


def test_what_is_no_file_is_not_waited_for(tmp_path: Path):
    """A pipe, a device, a name that nothing can have: unchecked, at once."""
    os.mkfifo(tmp_path / "pipe.pdf")
    for path in (tmp_path / "pipe.pdf", Path("/dev/null"), tmp_path / ("x" * 300), tmp_path / "not\0there"):
        assert (check(path, ROOT).verdict, check(path, ROOT).cause) == ("unchecked", "unreadable")


def test_a_file_of_any_size_is_not_read_to_say_so(tmp_path: Path):
    """What no report can have is refused by its size."""
    with (tmp_path / "large.pdf").open("wb") as file:
        file.truncate(source.MAX_FILE_BYTES + 1)
    assert check(tmp_path / "large.pdf", ROOT).cause == "unreadable"


def test_a_signature_that_cannot_be_read_is_not_one_that_is_missing(tmp_path: Path):
    """A folder in its place says nothing of the file."""
    (tmp_path / "decisions.csv.p7s").mkdir()
    result = said(tmp_path, "decisions.csv", CSV)
    assert (result.verdict, result.words) == ("unchecked", "decisions.csv.p7s: it is no regular file")


def test_a_night_tells_of_each_file(tmp_path: Path):
    """In the manifest's order; what it does not name is told, and its own signature, root and script are no surprise."""
    for name, content in (night(KEYS) | {"notes.txt": b"x"}).items():
        (tmp_path / name).write_bytes(content)

    result = check(tmp_path, ROOT)

    assert (result.file, result.verdict, result.report) == ("2026-11-29-asia-shanghai-1", "valid", "2026-11-29-asia-shanghai-1")
    assert [file.file for file in result.files] == ["manifest.json", "mlps.pdf", "gdpr.pdf", "decisions.csv", "log.jsonl"]
    assert [file.signer for file in result.files] == [KEYS.certificate.subject] * 4 + [None]
    assert result.remarks == ("'notes.txt' is not named by the manifest: not judged",)


def test_tampered_outweighs_unchecked(tmp_path: Path):
    """A night of which one file cannot be read and another is changed is tampered with; both are named, and the manifest is not blamed."""
    for name, content in night(KEYS).items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "mlps.pdf").unlink()
    (tmp_path / "mlps.pdf").mkdir()
    assert (check(tmp_path, ROOT).verdict, check(tmp_path, ROOT).cause) == ("unchecked", "unreadable")

    (tmp_path / "log.jsonl").write_bytes(b"")
    result = check(tmp_path, ROOT)
    assert (result.verdict, result.cause) == ("tampered", "digest")
    assert result.words == "not all files are valid: log.jsonl (digest), mlps.pdf (unreadable)"
    assert {file.file: file.verdict for file in result.files} == {
        "manifest.json": "valid",
        "mlps.pdf": "unchecked",
        "gdpr.pdf": "valid",
        "decisions.csv": "valid",
        "log.jsonl": "tampered",
    }


@pytest.mark.parametrize(("name", "pointer"), [("log.jsonl", True), ("manifest.json", False)])
def test_who_asks_for_a_signature_that_never_was_is_sent_to_the_manifest(tmp_path: Path, name: str, pointer: bool):
    """A file of a night that has none by design is told apart from a manifest that lost its own."""
    for file, content in night(KEYS).items():
        (tmp_path / file).write_bytes(content)
    (tmp_path / "manifest.json.p7s").unlink()

    result = check(tmp_path / name, ROOT)
    assert (result.cause, "manifest.json beside it may vouch" in result.words) == ("unsigned", pointer)


def test_for_people(tmp_path: Path):
    """The verdict first, then who signed, and what the signature is not; a name that would steer a terminal is escaped."""
    good = said(tmp_path, "mlps.pdf", PDF)
    text = list(lines(good))
    assert text[:2] == ["valid  mlps.pdf", f"  signed by    {KEYS.certificate.subject}"]
    assert text[-1] == NOTICE

    hostile = replace(good, signer="\x1b[2J", verdict="tampered", cause="digest", words="no")
    assert list(lines(hostile))[:2] == ["tampered  mlps.pdf: digest: no", "  signed by    \\u001b[2J"]
