"""Following files: each change is told, however it is made, and nothing ends the following."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app import watching
from app.watching import changes, files_under
from tests.fixtures.replacing import NOTICED_WITHIN_S, WAYS, Place, Way
from tests.fixtures.waiting import until


@dataclass
class Told:
    """What was read when changes were told, or nothing so many times."""

    found: list[str | None] = field(default_factory=list)

    @property
    def times(self) -> int:
        return len(self.found)

    async def once_more(self, than: int) -> None:
        """Wait until it was told oftener than that."""
        await until(lambda: self.times > than, within_s=NOTICED_WITHIN_S)


@contextlib.asynccontextmanager
async def following(paths: Iterable[Path], read: Callable[[], str | None] = lambda: None) -> AsyncIterator[Told]:
    """Follows `paths` from the first look on."""
    told = Told()

    async def follow() -> None:
        async for _ in changes(paths):
            told.found.append(read())

    task = asyncio.create_task(follow())
    await told.once_more(0)
    yield told
    assert not task.done(), "following has ended"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def write_one(folder: Path, version: int) -> None:
    (folder / "file").write_text(f"version {version}")


def write_tree(folder: Path, version: int) -> None:
    (folder / "deep" / "deeper").mkdir(parents=True, exist_ok=True)
    (folder / "deep" / "deeper" / "file").write_text(f"version {version}")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("write", [write_one, write_tree], ids=["file", "folder"])
async def test_each_change_is_told_however_it_is_made(tmp_path: Path, way: Way, write) -> None:
    """The second time, too: what is followed is the path, not what it led to at first."""
    place = Place(tmp_path / "place", write, way)
    async with following([place.path / ("file" if write is write_one else "deep")]) as told:
        for version in (2, 3, 4):
            before = told.times
            place.change(version)
            await told.once_more(before)


async def test_a_link_above_the_folder_may_be_swapped(tmp_path: Path) -> None:
    """The whole path counts: /cfg/current/models/file changes when `current` does."""
    for name in ("one", "two"):
        (tmp_path / name / "models").mkdir(parents=True)
        write_one(tmp_path / name / "models", 1)
    current = tmp_path / "current"
    current.symlink_to("one")
    async with following([current / "models" / "file"]) as told:
        current.unlink()
        current.symlink_to("two")
        await told.once_more(1)


async def test_a_change_is_seen_without_any_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose watches are used up, or a file system that has none, only takes a little longer."""

    def no_watches(*_: object, **__: object) -> None:
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr(watching, "awatch", no_watches)
    write_one(tmp_path, 1)
    async with following([tmp_path / "file"]) as told:
        write_one(tmp_path, 2)
        await told.once_more(1)


async def test_what_lies_beside_is_not_told(tmp_path: Path) -> None:
    """A hundred changes of a neighbour and one of the file are one change."""
    write_one(tmp_path, 1)
    async with following([tmp_path / "file"]) as told:
        for number in range(100):
            (tmp_path / "neighbour").write_text(str(number))
            await asyncio.sleep(0)
        write_one(tmp_path, 2)
        await told.once_more(1)
        assert told.times == 2


async def test_a_save_in_steps_is_told_when_it_is_done(tmp_path: Path) -> None:
    """Whoever is told never finds the empty file between truncating and writing."""
    write_one(tmp_path, 1)
    file = tmp_path / "file"
    async with following([file], file.read_text) as told:
        with file.open("w") as writing:
            for part in ("ver", "sion", " 2"):
                writing.write(part)
                writing.flush()
                await asyncio.sleep(0)
        await told.once_more(1)

        assert told.found == ["version 1", "version 2"]


async def test_what_is_never_quiet_is_told_all_the_same(tmp_path: Path) -> None:
    """A file that is written without a pause does not keep its changes to itself."""
    write_one(tmp_path, 1)
    async with following([tmp_path / "file"]) as told:
        version = 1

        def after_another_write() -> bool:
            nonlocal version
            version += 1
            write_one(tmp_path, version)
            return told.times > 1

        await until(after_another_write, within_s=NOTICED_WITHIN_S)


async def test_paths_may_change_while_they_are_followed(tmp_path: Path) -> None:
    """A path that takes another's place in the list is followed from then on."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_one(tmp_path / name, 1)
    paths = [tmp_path / "a" / "file"]
    async with following(paths) as told:
        paths[0] = tmp_path / "b" / "file"
        await told.once_more(1)
        write_one(tmp_path / "b", 2)
        await told.once_more(2)


async def test_what_is_not_there_yet_is_told_when_it_comes(tmp_path: Path) -> None:
    """Neither the file nor the folders above it need to be there."""
    async with following([tmp_path / "a" / "b" / "file"]) as told:
        (tmp_path / "a" / "b").mkdir(parents=True)
        write_one(tmp_path / "a" / "b", 1)
        await told.once_more(1)


async def test_folders_that_come_and_go_end_nothing(tmp_path: Path) -> None:
    """A hundred deletions and copies in a row leave the following alive, and the last state is told."""
    place = Place(tmp_path / "place", write_tree, WAYS[-1])
    async with following([place.path]) as told:
        for version in range(100):
            place.change(version)
            await asyncio.sleep(0)
        before = told.times
        place.change(101)
        await told.once_more(before)


def test_files_under_a_folder_follow_links_and_pass_over_what_is_hidden(tmp_path: Path) -> None:
    """A folder that a link leads to belongs to the folder; hidden files are editors' and mounts' own."""
    for name in ("tree/b", "tree/a", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
        write_one(tmp_path / name, 1)
    (tmp_path / "tree" / ".hidden").mkdir()
    write_one(tmp_path / "tree" / ".hidden", 1)
    (tmp_path / "tree" / "c").symlink_to(tmp_path / "elsewhere")

    assert [tmp_path / "tree" / name / "file" for name in ("a", "b", "c")] == files_under(tmp_path / "tree")


@pytest.mark.parametrize("target", ["nowhere", ".", ".."])
def test_a_link_that_leads_nowhere_or_round_is_named(tmp_path: Path, target: str) -> None:
    """It is an error with the path in it, and neither a file less nor a walk without end."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to(target)
    with pytest.raises(OSError) as error:  # noqa: PT011 - the path tells which
        files_under(tmp_path / "tree")

    assert str(tmp_path / "tree" / "link") in os.fspath(error.value.filename)
