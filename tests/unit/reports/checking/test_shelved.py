"""The state of a night on the shelf under the root of the keys that are here."""

from pathlib import Path

import pytest

from app.reports.checking.shelved import checked_under
from app.reports.shelf.states import State
from tests.fixtures.signed_reports import Keys, night

OURS, THEIRS = Keys.make(), Keys.make()
REPORT = "2026-11-29-asia-shanghai-1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A night that was signed under another root than that of the keys here."""
    (tmp_path / "root.pem").write_text(OURS.root.pem)
    (tmp_path / "root.pem").chmod(0o600)
    return laid_down(tmp_path / REPORT, THEIRS)


def laid_down(folder: Path, keys: Keys) -> Path:
    folder.mkdir()
    for name, content in night(keys).items():
        (folder / name).write_bytes(content)
    return folder


def state_of(folder: Path) -> State:
    return checked_under(folder.parent / "root.pem")(folder)


def test_a_night_under_another_root_is_not_called_tampered(folder: Path):
    """It is as it was signed, and whose root that is only the log knows."""
    root = THEIRS.root.fingerprint.hex()
    assert state_of(folder) == State("unchecked", f"signed under another root, {root}", other_root=root)


def test_a_changed_file_of_such_a_night_is_told(folder: Path):
    """It is not as it was signed under any root."""
    (folder / "decisions.csv").write_bytes(b"other")
    state = state_of(folder)
    assert state.verdict == "tampered"
    assert "decisions.csv" in state.why


def test_another_root_in_the_folder_makes_no_night_of_ours_better(tmp_path: Path, folder: Path):
    """A night that was signed here stays what it is, whatever certificate somebody puts beside it."""
    ours = laid_down(tmp_path / "ours", OURS).rename(folder.with_name("2026-11-29-utc-1"))
    (ours / "root.pem").write_text(THEIRS.root.pem)
    assert "it is the report 2026-11-29-asia-shanghai-1" in state_of(ours).why
    (ours / "mlps.pdf").write_bytes(b"%PDF-1.4 other")
    assert state_of(ours).verdict == "tampered"
    (folder / "root.pem").write_text("none")
    assert state_of(folder).verdict == "tampered"


def test_another_night_under_this_name_is_told_whatever_its_root(folder: Path):
    """A copy of a night is not the night that its folder is called."""
    copy = folder.rename(folder.with_name("2026-11-28-asia-shanghai-1"))
    assert state_of(copy).verdict == "tampered"


@pytest.mark.parametrize("name", ["manifest.json", "manifest.json.p7s", "mlps.pdf", "decisions.csv", "decisions.csv.p7s", "log.jsonl"])
@pytest.mark.parametrize("keys", [OURS, THEIRS], ids=["ours", "theirs"])
def test_a_night_that_lies_elsewhere_in_part_is_not_valid(tmp_path: Path, folder: Path, name: str, keys: Keys):
    """What a link leads to changes unseen; and under another root the log is asked all the same."""
    again = tmp_path / "again"
    again.mkdir()
    laid = laid_down(again / REPORT, keys)
    (laid / name).rename(tmp_path / name)
    (laid / name).symlink_to(tmp_path / name)
    state = checked_under(tmp_path / "root.pem")(laid)
    other = "" if keys is OURS else THEIRS.root.fingerprint.hex()
    assert state == State("unchecked", f"{name} is a link: no file of this shelf", other_root=other)


def test_a_link_does_not_hide_what_was_changed(folder: Path):
    """Tampered stays tampered, behind the link or beside it."""
    (folder / "mlps.pdf").rename(folder.parent / "mlps.pdf")
    (folder / "mlps.pdf").symlink_to(folder.parent / "mlps.pdf")
    (folder / "decisions.csv").write_bytes(b"other")
    assert state_of(folder).verdict == "tampered"


def test_links_that_belong_to_nothing_are_left_alone(tmp_path: Path, folder: Path):
    """A link beside the files of a night is no file of it; a root that is one is not taken."""
    (folder / "notes").symlink_to(tmp_path)
    assert state_of(folder).other_root
    (folder / "root.pem").rename(tmp_path / "theirs.pem")
    (folder / "root.pem").symlink_to(tmp_path / "theirs.pem")
    assert not state_of(folder).other_root
