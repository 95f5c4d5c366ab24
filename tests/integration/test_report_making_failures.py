"""What fails, is full or is killed while a night is made, and what the log and the next try make of it."""

import contextlib
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.cli.report.nightly import make_missing
from app.database import DatabaseDown
from app.reports.checking.check import check
from app.reports.making.draft import Draft, ShelfUnwritable
from app.reports.making.lock import Lock, NightBusy
from app.reports.nights.night import Night
from app.reports.shelf.shelf import ShelfDown
from tests.fixtures.made_nights import FIRST, SECOND, Ended, outcomes
from tests.fixtures.making import DAY, NightLife, Watched


@pytest.mark.parametrize("stage", ["gather", "sign"])
async def test_what_fails_leaves_nothing_but_its_entry(over: NightLife, stage: str):
    """Wherever it fails nothing half made stays; the log says that it failed and why, and the next try makes it."""
    watched = Watched()
    watched.fails_at = stage
    with pytest.raises(RuntimeError, match="told to fail"):
        await over.maker(progress=watched).make(DAY)
    assert over.folders() == []
    await over.maker().make(DAY)
    failed, done = await over.made()
    assert (failed["outcome"], failed["problem"]) == ("failed", "RuntimeError: told to fail")
    assert (done["outcome"], over.folders()) == ("done", [FIRST])


async def test_a_full_disk_is_told_as_such(over: NightLife, monkeypatch: pytest.MonkeyPatch):
    """The message names the file and the reason."""

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.private_files.os.fsync", full)
    with pytest.raises(ShelfUnwritable, match=r"log\.jsonl: No space left"):
        await over.maker().make(DAY)
    assert over.folders() == []


async def test_a_shelf_that_cannot_be_written_to_is_told_as_such(over: NightLife):
    """Here it is a file."""
    over.shelf.write_text("no folder")
    with pytest.raises(ShelfUnwritable, match=str(over.shelf)):
        await over.maker().make(DAY)
    assert [entry["outcome"] for entry in await over.made()] == ["failed"]


async def test_what_a_kill_left_half_made_is_removed(over: NightLife):
    """Drafts of this night go, those of another stay with their maker."""
    for name in (".making-2026-01-01-utc-1", ".making-2025-12-31-utc-1"):
        (over.shelf / name).mkdir(parents=True)
        (over.shelf / name / "mlps.pdf").write_text("half")
    await over.maker().make(DAY)
    assert over.folders() == [".making-2025-12-31-utc-1", FIRST]
    assert check(over.shelf / FIRST, over.materials.keys.root).verdict == "valid"


async def test_foreign_folders_do_not_count(over: NightLife):
    """What is no id of a report gives no number, and stops nobody."""
    for name in ("2026-01-01-utc-²", "2026-01-01-utc-99999", "2026-01-01-utc-x"):
        (over.shelf / name).mkdir(parents=True)
    assert (await over.maker().make(DAY)).report == FIRST


async def test_a_kill_between_entry_and_name_is_made_up_for(over: NightLife, monkeypatch: pytest.MonkeyPatch):
    """The log says that it is made, the folder has no name yet: whoever comes next lets it take it, and makes nothing."""
    with monkeypatch.context() as patched, contextlib.suppress(Ended):
        patched.setattr(Draft, "publish", _ended)
        await over.maker().make(DAY)
    assert over.folders() == [f".making-{FIRST}"]

    outcome = await over.maker().make(DAY)
    assert (outcome.report, outcome.fresh, outcome.here, over.folders()) == (FIRST, False, True, [FIRST])
    assert check(outcome.folder, over.materials.keys.root).verdict == "valid"
    assert await outcomes(over) == [("done", FIRST)]


@pytest.mark.parametrize("committed", [True, False])
async def test_where_nobody_knows_whether_the_entry_was_committed_the_log_tells(
    over: NightLife, monkeypatch: pytest.MonkeyPatch, committed: bool
):
    """The connection is lost in the commit: the next maker finishes the night where it was, and makes it anew where it was not."""
    commit = Lock.commit

    async def lost(lock: Lock, entry: Any) -> None:
        if committed:
            await commit(lock, entry)
        raise DatabaseDown("PostgreSQL: the connection was lost")

    with monkeypatch.context() as patched:
        patched.setattr(Lock, "commit", lost)
        with pytest.raises(DatabaseDown):
            await over.maker().make(DAY)
    assert over.folders() == [f".making-{FIRST}"]

    outcome = await over.maker().make(DAY)
    assert (outcome.fresh, over.folders()) == (not committed, [FIRST])
    assert [entry["outcome"] for entry in await over.made()].count("done") == 1


async def test_a_folder_that_was_taken_away_is_not_made_again_unasked(over: NightLife, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """The log has it; who archived the folder does not get another one each night."""
    await over.maker().make(DAY)
    shutil.rmtree(over.shelf / FIRST)
    outcome = await over.maker().make(DAY)
    assert (outcome.fresh, outcome.here, over.folders()) == (False, False, [])
    await make_missing(over.maker(), "UTC")
    told = capsys.readouterr()
    assert told.out.endswith("nothing to make: the log says that each night of UTC from 2026-01-01 to 2026-01-01 was made\n")
    assert told.err == f"1 of what was made in the last year is not in {over.shelf}: `sluice report list` names it\n"
    (tmp_path / "file").write_text("")
    with pytest.raises(ShelfDown, match="Not a directory"):  # a shelf that cannot be read is none that everything is gone from
        await make_missing(over.maker(tmp_path / "file"), "UTC")
    assert (await over.maker().make(DAY, again=True)).report == SECOND


def _ended(_: Draft) -> Path:
    raise Ended


async def test_one_night_that_cannot_be_made_stops_no_other(over: NightLife, capsys: pytest.CaptureFixture[str]):
    """Whatever its entries do to us: the log is told, the nights before and after are made, and the command ends with that error."""
    await over.settled()
    over.grown.clock.advance(timedelta(days=2).total_seconds() * 1000)
    poisoned = _Poisoned(DAY.next())
    with pytest.raises(RuntimeError, match="told to fail"):
        await make_missing(over.maker(progress=poisoned), "UTC")
    assert over.folders() == [FIRST, "2026-01-03-utc-1"]
    assert await outcomes(over) == [("done", FIRST), ("failed", "2026-01-02-utc-1"), ("done", "2026-01-03-utc-1")]
    assert "2026-01-02: not made: RuntimeError: told to fail" in capsys.readouterr().err


async def test_a_lock_that_cannot_be_had_is_told(over: NightLife, monkeypatch: pytest.MonkeyPatch):
    """Another process has it for too long: the log says that the night failed, and why."""

    async def busy(*_: object) -> bool:
        return False

    with monkeypatch.context() as patched:
        patched.setattr("app.session_lock.LockSession.take", busy)
        patched.setattr("app.reports.making.lock.WAIT_S", 2.0)
        with pytest.raises(NightBusy):
            await over.maker().make(DAY)
    (failed,) = await over.made()
    assert (failed["outcome"], failed["report"]) == ("failed", FIRST)
    assert "by another process" in failed["problem"]


async def test_what_fails_after_the_entry_is_no_failed_night(over: NightLife, monkeypatch: pytest.MonkeyPatch):
    """The log says that it is made; the folder takes its name at the next try."""
    with monkeypatch.context() as patched:
        patched.setattr("app.reports.making.draft.Path.rename", _full)
        with pytest.raises(ShelfUnwritable):
            await over.maker().make(DAY)
    assert (await over.maker().make(DAY)).here
    assert await outcomes(over) == [("done", FIRST)]


class _Poisoned(Watched):
    """Progress that fails while one night is written."""

    def __init__(self, night: Night) -> None:
        super().__init__()
        self._night = night

    def stage(self, night: Night, name: str) -> None:
        """The next part begins."""
        self.fails_at = "write" if night == self._night else ""
        super().stage(night, name)


def _full(*_: object) -> None:
    raise OSError(28, "No space left on device")
