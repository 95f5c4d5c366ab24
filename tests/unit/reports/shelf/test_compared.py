"""What the log has to say of a night before and after it is checked."""

import hashlib
import os
from pathlib import Path

import pytest

from app.reports.manifest import MANIFEST, MOST_BYTES
from app.reports.shelf.compared import EXCHANGED, MISSING, Manifests, contradiction, vouched
from app.reports.shelf.states import State

REPORT = "2026-11-29-utc-1"
OTHER = State("unchecked", "signed under another root, 0a", other_root="0a")


@pytest.mark.parametrize("made", [{}, {REPORT: None}, {"2026-11-29-utc-2": "00"}])
def test_a_night_under_another_root_that_the_log_never_had_is_tampered_with(made: Manifests):
    """Whoever can write to the shelf signs what he likes, and lays his root beside it."""
    state = vouched(REPORT, OTHER, made)
    assert (state.verdict, state.why) == ("tampered", f"{OTHER.why}; no entry of the log was found that vouches for its manifest")


def test_a_night_under_another_root_that_the_log_vouches_for_is_unchecked():
    """It was made under keys that this place has no longer."""
    assert vouched(REPORT, OTHER, {REPORT: "00"}) == OTHER


@pytest.mark.parametrize("state", [State("valid"), State("unchecked", "no root"), State("tampered", "digest")])
def test_every_other_state_needs_no_word_of_the_log(state: State):
    """What the root here says, or cannot say, stands by itself."""
    assert vouched(REPORT, state, {}) == state


def test_the_log_is_against_a_night_that_is_gone_or_another(tmp_path: Path):
    """And says nothing of one whose manifest it names, whose manifest it does not name, or that it never had."""
    folder = tmp_path / REPORT
    assert contradiction(folder, {REPORT: None}) == MISSING
    folder.mkdir()
    (folder / MANIFEST).write_bytes(b"{}")
    assert contradiction(folder, {REPORT: "00" * 32}) == EXCHANGED
    for made in ({}, {REPORT: None}, {REPORT: hashlib.new("sm3", b"{}").hexdigest()}):
        assert contradiction(folder, made) is None


def test_a_link_to_a_night_is_none(tmp_path: Path):
    """What the log says was made lies elsewhere, and nothing of it is handed out."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / REPORT).symlink_to(tmp_path / "elsewhere")
    assert contradiction(tmp_path / REPORT, {REPORT: None}) == MISSING


@pytest.mark.parametrize("kind", ["pipe", "link", "endless", "huge", "folder"])
def test_what_is_no_manifest_is_left_to_the_check(tmp_path: Path, kind: str):
    """It is not read, keeps nobody waiting, and is not called exchanged: checking says why it cannot be read."""
    folder = tmp_path / REPORT
    folder.mkdir()
    manifest = folder / MANIFEST
    (tmp_path / "other").write_bytes(b"{}")
    match kind:
        case "pipe":
            os.mkfifo(manifest)
        case "link":
            manifest.symlink_to(tmp_path / "other")
        case "endless":
            manifest.symlink_to("/dev/zero")
        case "huge":
            manifest.touch()
            os.truncate(manifest, MOST_BYTES + 1)
        case _:
            manifest.mkdir()
    assert contradiction(folder, {REPORT: "00" * 32}) is None
