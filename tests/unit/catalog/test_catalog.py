"""The catalogue in force: good files are followed, anything else changes nothing."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.catalog.catalog import Catalog
from app.errors import ConfigError
from app.observability.metrics import Metrics
from tests.fixtures.replacing import NOTICED_WITHIN_S, WAYS, Place, Way
from tests.fixtures.waiting import until


def write(folder: Path, version: int) -> None:
    (folder / "models.yaml").write_text(f"- {{id: v{version}}}\n")


@contextlib.asynccontextmanager
async def watched(path: Path) -> AsyncIterator[Catalog]:
    """A catalogue that follows its file, from the first look on."""
    catalog = Catalog(path, metrics := Metrics())
    watching = asyncio.create_task(catalog.watch())
    await until(lambda: metrics.registry.get_sample_value("sluice_config_loads_total", {"file": "models", "result": "ok"}))
    yield catalog
    assert not watching.done()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_changed_file_is_in_force_however_it_is_changed(tmp_path: Path, way: Way) -> None:
    """Each of three versions is in force in turn; there is no moment without models."""
    place = Place(tmp_path / "place", write, way)
    async with watched(place.path / "models.yaml") as catalog:
        for version in (2, 3):
            place.change(version)
            await until(lambda version=version: list(catalog.all()) == [f"v{version}"] or not catalog.all(), within_s=NOTICED_WITHIN_S)
            assert list(catalog.all()) == [f"v{version}"]
            assert catalog.problem is None


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "[]",
        "- {id: m",
        "- {id: m, colour: red}",
        "- {id: m, sensitive: {roles: [r], retention_days: 365, hours: {from: 8, to: 8}}}",
        "- {id: m}\n- {id: m}",
        "- id: 2026-99-99",
        "? [a]\n: b",
        "[" * 5000,
        "- {id: \x00}",
        "- !!timestamp m",
        "!!python/name:os.system",
    ],
)
async def test_a_wrong_file_changes_nothing_and_the_next_right_one_counts(tmp_path: Path, wrong: str) -> None:
    """Whatever is written there, the last good models stay, the problem is told, and following goes on."""
    write(tmp_path, 1)
    async with watched(tmp_path / "models.yaml") as catalog:
        (tmp_path / "models.yaml").write_text(wrong)
        await until(lambda: catalog.problem, within_s=NOTICED_WITHIN_S)
        assert list(catalog.all()) == ["v1"]
        assert "models.yaml" in str(catalog.problem)

        write(tmp_path, 2)
        await until(lambda: list(catalog.all()) == ["v2"], within_s=NOTICED_WITHIN_S)
        assert catalog.problem is None


async def test_a_file_that_is_gone_changes_nothing(tmp_path: Path) -> None:
    """The last good models stay while the folder is away, and its return is noticed."""
    folder = tmp_path / "models"
    folder.mkdir()
    write(folder, 1)
    async with watched(folder / "models.yaml") as catalog:
        folder.rename(tmp_path / "away")
        await until(lambda: catalog.problem, within_s=NOTICED_WITHIN_S)
        assert list(catalog.all()) == ["v1"]

        (tmp_path / "away").rename(folder)
        await until(lambda: catalog.problem is None, within_s=NOTICED_WITHIN_S)


def test_a_bad_file_at_the_start_is_refused(tmp_path: Path) -> None:
    """There is nothing to go on with, so the start fails and names the file."""
    with pytest.raises(ConfigError, match=r"models\.yaml: no such file"):
        Catalog(tmp_path / "models.yaml", Metrics())
