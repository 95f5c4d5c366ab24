"""Keys for trying: made once, and made anew where nobody can know them any more."""

import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from app import private_files
from app.auth.keys import ROLES, Keys
from app.clock import ManualClock
from app.database import DatabaseUrls, create_engine
from app.errors import DependencyDown, Unauthorized
from app.examples import lay_down_keys
from app.observability.metrics import Metrics
from app.setting_sections import DatabaseSettings
from tests.fixtures.postgres import TIMEOUT_MS


@pytest.fixture
async def keys(database_urls: DatabaseUrls) -> AsyncIterator[Keys]:
    engine = create_engine(database_urls.registry, DatabaseSettings())
    yield Keys(engine, ManualClock(), Metrics(), timeout_ms=TIMEOUT_MS)
    await engine.dispose()


def cut(*_: object) -> None:
    raise DependencyDown("cut")


def files(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def in_force(keys: Keys) -> list[str]:
    return sorted(key.principal.name for key in await keys.list() if key.revoked is None)


ALL = sorted(f"dev-{role}" for role in ROLES)


async def test_a_second_start_changes_nothing(keys: Keys, tmp_path: Path):
    """Where the file is there it stays as it is, and a key in it that was revoked stays revoked."""
    path = await lay_down_keys(keys, tmp_path)
    first = path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [keys.principal(text).roles for text in json.loads(first).values()] == [{role} for role in ROLES]
    await keys.revoke("dev-admin", operator="op")

    with capture_logs() as events:
        await lay_down_keys(keys, tmp_path)

    assert (path.read_bytes(), events) == (first, [])
    assert await in_force(keys) == [name for name in ALL if name != "dev-admin"]


async def test_a_deleted_file_is_made_anew(keys: Keys, tmp_path: Path):
    """The keys that were lost with the file are revoked, which is logged, and the new file's keys are good."""
    path = await lay_down_keys(keys, tmp_path)
    lost = json.loads(path.read_bytes())
    path.unlink()

    with capture_logs() as events:
        await lay_down_keys(keys, tmp_path)

    assert sorted(event["name"] for event in events) == ALL
    assert not any(text in repr(events) for text in lost.values())
    for text in lost.values():
        with pytest.raises(Unauthorized, match="is revoked"):
            keys.principal(text)
    assert [keys.principal(text).roles for text in json.loads(path.read_bytes()).values()] == [{role} for role in ROLES]
    assert await in_force(keys) == ALL


@pytest.mark.parametrize("made", [0, 1, len(ROLES) - 1])
async def test_a_start_cut_between_two_keys_is_made_good(keys: Keys, tmp_path: Path, made: int):
    """However many keys a start had made when it was cut, the next one ends with a key for each role."""
    for role in ROLES[:made]:
        await keys.create(name=f"dev-{role}", roles=[role], tenants=["*"], operator="first start")

    path = await lay_down_keys(keys, tmp_path)

    assert [keys.principal(text).roles for text in json.loads(path.read_bytes()).values()] == [{role} for role in ROLES]
    assert await in_force(keys) == ALL


async def test_a_start_cut_before_the_file_is_made_good(keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A start that was cut between the keys and their file leaves none, and the next one writes it."""
    with monkeypatch.context() as patched:
        patched.setattr(private_files, "replace", cut)
        with pytest.raises(DependencyDown):
            await lay_down_keys(keys, tmp_path)
    assert files(tmp_path) == []

    path = await lay_down_keys(keys, tmp_path)
    assert [keys.principal(text).roles for text in json.loads(path.read_bytes()).values()] == [{role} for role in ROLES]


async def test_only_keys_for_trying_are_replaced(keys: Keys, tmp_path: Path):
    """A key of another name is left alone, with its file or without."""
    mine = await keys.create(name="mine", roles=["admin"], operator="op")
    path = await lay_down_keys(keys, tmp_path)
    path.unlink()

    await lay_down_keys(keys, tmp_path)

    assert keys.principal(mine.text).name == "mine"
