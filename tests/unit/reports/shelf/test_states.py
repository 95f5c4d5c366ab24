"""States of nights are found out once, beside everything else, and again when a file changed."""

import os
import threading
from pathlib import Path

from app.reports.shelf.states import State, States

VALID = State("valid")


class Checker:
    """Counts what it is asked, and waits where it is told to."""

    def __init__(self, state: State = VALID) -> None:
        self.state = state
        self.asked: list[str] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, folder: Path) -> State:
        self.asked.append(folder.name)
        self.go_on.wait(10)
        return self.state


def night(folder: Path, name: str = "night") -> Path:
    path = folder / name
    path.mkdir()
    (path / "mlps.pdf").write_text("one")
    return path


async def test_a_night_is_checked_again_only_where_a_file_changed(tmp_path: Path):
    """Changed, added and removed files count, nothing else."""
    checker, path = Checker(), night(tmp_path)
    states = States(checker)
    assert await states.of([path, path], 5) == [VALID, VALID]
    assert await states.of([path], 5) == [VALID]
    assert checker.asked == ["night"]
    (path / "mlps.pdf").write_text("other")
    checker.state = State("tampered", "digest")
    assert await states.of([path], 5) == [State("tampered", "digest")]
    (path / "more").write_text("")
    await states.of([path], 5)
    assert len(checker.asked) == 3


async def test_a_change_counts_whatever_the_file_says_of_its_time(tmp_path: Path):
    """Who changes a file in its place, and sets its time back, is found out."""
    checker, path = Checker(), night(tmp_path)
    states, file = States(checker), path / "mlps.pdf"
    await states.of([path], 5)
    before = file.stat()
    file.write_text("two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    await states.of([path], 5)
    assert len(checker.asked) == 2


async def test_who_asks_does_not_wait_for_long(tmp_path: Path):
    """What is not known in time is no state; it is found out meanwhile, once, and there for whoever asks then."""
    checker, path = Checker(), night(tmp_path)
    checker.go_on.clear()
    states = States(checker)
    assert await states.of([path], 0.01) == [None]
    assert await states.of([path], 0.01) == [None]
    checker.go_on.set()
    assert await states.of([path], 5) == [VALID]
    assert checker.asked == ["night"]


async def test_what_could_not_be_checked_is_tried_again(tmp_path: Path):
    """A missing root may be there the next time."""
    checker, path = Checker(State("unchecked", "no root")), night(tmp_path)
    states = States(checker)
    await states.of([path], 5)
    checker.state = VALID
    assert await states.of([path], 5) == [VALID]


async def test_a_night_under_another_root_is_checked_once(tmp_path: Path):
    """It was read whole, and stays what it is until one of its files changes."""
    checker, path = Checker(State("unchecked", "another root", other_root="00")), night(tmp_path)
    states = States(checker)
    for _ in range(2):
        assert await states.of([path], 5) == [checker.state]
    assert checker.asked == ["night"]


async def test_another_root_here_has_all_nights_checked_anew(tmp_path: Path):
    """What was good under the root before is another matter under this one."""
    checker, path, root = Checker(), night(tmp_path), tmp_path / "root.pem"
    states = States(checker, root)
    for content, asked in (("one", 1), ("other", 2), ("other", 2)):
        if not root.exists() or root.read_text() != content:
            root.write_text(content)
        await states.of([path], 5)
        assert len(checker.asked) == asked


async def test_a_check_that_breaks_is_told_and_harms_no_other(tmp_path: Path):
    """It is a night that could not be checked; the thread goes on."""

    def breaks(folder: Path) -> State:
        if folder.name == "bad":
            raise RecursionError("deep")
        return VALID

    found = await States(breaks).of([night(tmp_path, "bad"), night(tmp_path, "good")], 5)
    assert found == [State("unchecked", "checking it failed: RecursionError"), VALID]
