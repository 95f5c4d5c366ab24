"""Following a policy folder on disk, up to what OPA would be offered."""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.audit.records.entry import Entry
from app.clock import ManualClock
from app.errors import DependencyDown, PolicyRefused
from app.observability.metrics import Metrics
from app.policy import loader as loading
from app.policy.batch import Batcher
from app.policy.loader import Loader
from app.policy.policy import Policy
from app.policy.record import PolicyRecord
from tests.fixtures.policy import write_rule
from tests.fixtures.replacing import WAYS, Place, Way, vanished_and_returned
from tests.fixtures.waiting import until
from tests.unit.policy.opa_in_python import OpaInPython

IN_FORCE_WITHIN_S = 10.0
"""Noticing takes a part of a second; the check's programs take the rest where other tests run beside."""


def make_loader(folder: Path, binary: Path, told: list[Entry] | None = None) -> Loader:
    clock, metrics, told = ManualClock(), Metrics(), [] if told is None else told
    batcher = Batcher(OpaInPython({}, []), clock, metrics, timeout_ms=50, calls=1)
    return Loader(
        folder, binary, Policy(batcher, clock, metrics, memo_bytes=1 << 20, publish_wait_ms=0), PolicyRecord(told.append, clock), metrics
    )


@contextlib.asynccontextmanager
async def watched(folder: Path, binary: Path, told: list[Entry] | None = None) -> AsyncIterator[Loader]:
    """A loader that has begun and follows its folder."""
    loader = make_loader(folder, binary, told)
    await loader.begin()
    watching = asyncio.create_task(loader.watch())
    yield loader
    assert not watching.done()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


def write(folder: Path, version: int) -> None:
    """One rule, which sheds that many per cent."""
    write_rule(folder, "mine", f"shed contains {version / 100}")


def offered(loader: Loader) -> str:
    """The text of the rule that OPA is offered."""
    compiled = loader._offered
    return compiled.modules["rules/mine/mine.rego"] if compiled else ""


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_changed_rules_are_offered_however_they_are_changed(tmp_path: Path, opa_binary: Path, way: Way) -> None:
    """Each of three versions is offered in turn, and no moment between is refused or offered."""
    place = Place(tmp_path / "place", write, way)
    async with watched(place.path, opa_binary) as loader:
        revisions = {loader.state.offered}
        for version in (2, 3):
            place.change(version)
            await until(lambda version=version: f"contains 0.0{version}" in offered(loader), within_s=IN_FORCE_WITHIN_S)
            revisions.add(loader.state.offered)
            assert loader.state.problem is None
        assert len(revisions) == 3


async def test_a_folder_that_comes_and_goes_ends_nothing(tmp_path: Path, opa_binary: Path) -> None:
    """Thirty deletions and copies in a row, found at any moment of theirs, leave the last state offered and no problem."""
    place = Place(tmp_path / "place", write, vanished_and_returned)
    async with watched(place.path, opa_binary) as loader:

        def copy_again_and_again() -> None:
            for version in range(10, 40):
                place.change(version)

        await asyncio.to_thread(copy_again_and_again)

        await until(lambda: "contains 0.39" in offered(loader) and loader.state.problem is None, within_s=IN_FORCE_WITHIN_S)


async def test_a_folder_that_is_gone_changes_nothing_and_is_named(tmp_path: Path, opa_binary: Path) -> None:
    """What was offered stays, the problem names the folder, and its return as it was clears the problem."""
    folder = tmp_path / "rego"
    write(folder, 1)
    async with watched(folder, opa_binary) as loader:
        before = loader.state.offered
        folder.rename(tmp_path / "away")
        await until(lambda: loader.state.problem, within_s=IN_FORCE_WITHIN_S)
        assert str(folder) in str(loader.state.problem)

        (tmp_path / "away").rename(folder)
        await until(lambda: loader.state.problem is None, within_s=IN_FORCE_WITHIN_S)
        assert loader.state.offered == before


async def test_a_check_that_could_not_be_done_is_no_verdict_and_is_done_again(
    tmp_path: Path, opa_binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without room for its files the check fails with its remedy, of which the log hears nothing; once there is room, the change is offered."""
    folder = tmp_path / "rego"
    write(folder, 1)
    monkeypatch.setattr(loading, "CHECK_AGAIN_S", 0.01)
    told: list[Entry] = []
    async with watched(folder, opa_binary, told) as loader:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full"))
        write(folder, 2)
        await until(lambda: loader.state.problem, within_s=IN_FORCE_WITHIN_S)
        assert str(tmp_path / "full") in str(loader.state.problem)
        with pytest.raises(DependencyDown) as down:
            await loader.reload()
        assert "TMPDIR" in down.value.advice

        monkeypatch.undo()
        await until(lambda: "contains 0.02" in offered(loader) and loader.state.problem is None, within_s=IN_FORCE_WITHIN_S)
    assert told == []


async def test_a_change_between_the_first_load_and_the_watch_is_not_lost(tmp_path: Path, opa_binary: Path) -> None:
    """What was read is compared with what is there, not with what was there when the watch began; unchanged, it is not read twice."""
    folder = tmp_path / "rego"
    write(folder, 1)
    loader = make_loader(folder, opa_binary)
    await loader.begin()
    write(folder, 2)
    watching = asyncio.create_task(loader.watch())
    await until(lambda: "contains 0.02" in offered(loader), within_s=IN_FORCE_WITHIN_S)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_what_cannot_be_read_refuses_the_folder_by_name(tmp_path: Path, opa_binary: Path) -> None:
    """A rule behind a link that leads nowhere is not a rule less: the folder is refused, and the link is named."""
    folder = tmp_path / "rego"
    write(folder, 1)
    (folder / "rules" / "lost").symlink_to(tmp_path / "nowhere")
    with pytest.raises(PolicyRefused, match=r"rules/lost: cannot be read: No such file"):
        await make_loader(folder, opa_binary).reload()


async def test_a_rule_behind_a_link_counts(tmp_path: Path, opa_binary: Path) -> None:
    """A folder that a link leads to is read as if it lay there."""
    folder = tmp_path / "rego"
    write(tmp_path / "elsewhere", 1)
    (folder / "rules").mkdir(parents=True)
    (folder / "rules" / "mine").symlink_to(tmp_path / "elsewhere" / "rules" / "mine")
    compiled = await make_loader(folder, opa_binary).reload()
    shutil.rmtree(tmp_path / "elsewhere")

    assert "rules/mine/mine.rego" in compiled.modules
