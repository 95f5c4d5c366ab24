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
