"""What is a report on the shelf, and which of its files can be had."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from app.reports.manifest import MANIFEST, MOST_BYTES, Manifest, NotAManifest
from app.reports.shelf.shelf import Shelf, ShelfDown, UnknownReport
from tests.fixtures.signed_reports import CSV, file_line, manifest

REPORT = "2026-11-29-asia-shanghai-1"


def put(shelf: Path, report: str, **files: bytes) -> Path:
    """A night with these files, all of which its manifest names."""
    folder = shelf / report
    folder.mkdir(parents=True)
    content = {name.replace("_", "."): text for name, text in files.items()}
    for name, text in content.items():
        (folder / name).write_bytes(text)
    said = Manifest.parse(manifest([file_line(name, text) for name, text in content.items()]))
    (folder / MANIFEST).write_bytes(replace(said, report=report).text())
    return folder


def test_only_finished_nights_are_listed_the_newest_first(tmp_path: Path):
    """Half a night, files, links and folders of other names are none; of one day the last that was made is the first."""
    for name in ("2026-11-29-utc-2", "2026-11-29-utc-10", "2026-11-30-utc-1", ".making-2026-12-01-utc-1", "notes", "2026-12-02-utc-0"):
        (tmp_path / name).mkdir()
    (tmp_path / "2026-12-03-utc-1").write_text("a file")
    (tmp_path / "2026-12-04-utc-1").symlink_to(tmp_path / "notes")
    assert Shelf(tmp_path).reports() == ["2026-11-30-utc-1", "2026-11-29-utc-10", "2026-11-29-utc-2"]


def test_no_folder_is_an_empty_shelf_and_a_closed_one_is_down(tmp_path: Path):
    """Before the first night there is nothing; what cannot be read is told as such, never as nothing."""
    assert Shelf(tmp_path / "none").reports() == []
    (tmp_path / "file").write_text("")
    with pytest.raises(ShelfDown, match="Not a directory"):
        Shelf(tmp_path / "file").reports()


def test_files_are_those_of_the_manifest(tmp_path: Path):
    """What it names, signatures beside these, and what is for checking; nothing else that lies there."""
    folder = put(tmp_path, REPORT, decisions_csv=CSV)
    for name in ("decisions.csv.p7s", "root.pem", "verify.sh", "notes.txt", "notes.txt.p7s"):
        (folder / name).write_text("x")
    shelf = Shelf(tmp_path)
    assert shelf.names(REPORT, shelf.manifest(REPORT)) == ["decisions.csv", "decisions.csv.p7s", "manifest.json", "root.pem", "verify.sh"]
    assert shelf.file(REPORT, "decisions.csv").sm3 == file_line("decisions.csv", CSV).sm3
    assert shelf.file(REPORT, "root.pem").sm3 is None


@pytest.mark.parametrize(
    "name", ["../secret", "..", ".", "", "notes.txt", "decisions.csv/", "a\x00b", "%2e%2e/secret", "link.csv", "/etc/passwd"]
)
def test_no_other_file_is_reached(tmp_path: Path, name: str):
    """Not by dots, slashes or NUL, and not by a link, though the manifest names it."""
    folder = put(tmp_path / "shelf", REPORT, decisions_csv=CSV, link_csv=b"")
    (tmp_path / "secret").write_text("secret")
    (folder / "notes.txt").write_text("x")
    (folder / "link.csv").unlink()
    (folder / "link.csv").symlink_to(tmp_path / "secret")
    with pytest.raises(UnknownReport):
        Shelf(tmp_path / "shelf").file(REPORT, name)


def test_a_manifest_cannot_name_what_lies_elsewhere(tmp_path: Path):
    """Names with a slash or a leading dot are no names of files of a night."""
    (tmp_path / "secret").write_text("secret")
    folder = put(tmp_path / "shelf", REPORT)
    lines = [file_line(name, b"secret") for name in ("../../secret", ".hidden", "decisions.csv")]
    (folder / MANIFEST).write_bytes(Manifest.parse(manifest(lines)).text())
    shelf = Shelf(tmp_path / "shelf")
    assert shelf.names(REPORT, shelf.manifest(REPORT)) == [MANIFEST]


@pytest.mark.parametrize("report", ["..", "../shelf", "2026-11-29-utc-9", "", "2026-11-29-utc-1\x00", "2026-11-29-utc-1/", "x" * 500])
def test_no_other_folder_is_reached(tmp_path: Path, report: str):
    """An id that is none, or of nothing that is there, is unknown."""
    with pytest.raises(UnknownReport):
        Shelf(tmp_path).folder(report)


def test_a_broken_manifest_can_be_had_and_nothing_that_it_named(tmp_path: Path):
    """What was done to it is evidence, and so is what belongs to checking it; fixed names lead nowhere else either."""
    folder = put(tmp_path, REPORT, decisions_csv=CSV)
    (folder / MANIFEST).write_bytes((folder / MANIFEST).read_bytes()[:-1])
    (folder / "manifest.json.p7s").write_text("x")
    (folder / "root.pem").symlink_to(tmp_path)
    shelf = Shelf(tmp_path)
    assert [shelf.file(REPORT, name).path.name for name in (MANIFEST, "manifest.json.p7s")] == [MANIFEST, "manifest.json.p7s"]
    for name in ("root.pem", "verify.sh"):
        with pytest.raises(UnknownReport):
            shelf.file(REPORT, name)
    with pytest.raises(NotAManifest):
        shelf.file(REPORT, "decisions.csv")


def test_a_pipe_keeps_nobody_waiting(tmp_path: Path):
    """In the place of a manifest it is none."""
    (tmp_path / REPORT).mkdir()
    os.mkfifo(tmp_path / REPORT / MANIFEST)
    with pytest.raises(NotAManifest, match="no plain file"):
        Shelf(tmp_path).manifest(REPORT)


def test_a_manifest_beyond_all_bounds_is_none(tmp_path: Path):
    """No more of it is read than a manifest can have."""
    folder = put(tmp_path, REPORT)
    os.truncate(folder / MANIFEST, MOST_BYTES + 1)
    with pytest.raises(NotAManifest, match=f"more than {MOST_BYTES} bytes"):
        Shelf(tmp_path).manifest(REPORT)


def test_a_manifest_of_another_night_or_no_manifest_is_refused(tmp_path: Path):
    """A folder that was renamed, or holds no manifest that can be read, says nothing of itself."""
    folder = put(tmp_path, REPORT)
    folder.rename(tmp_path / "2026-11-28-asia-shanghai-1")
    with pytest.raises(NotAManifest, match="that of the report"):
        Shelf(tmp_path).manifest("2026-11-28-asia-shanghai-1")
    os.truncate(tmp_path / "2026-11-28-asia-shanghai-1" / MANIFEST, 10)
    with pytest.raises(NotAManifest):
        Shelf(tmp_path).manifest("2026-11-28-asia-shanghai-1")
