"""What to poll: good files are followed, anything else changes nothing."""

import asyncio
import contextlib

import pytest

from app.errors import ConfigError
from app.observability.metrics import Metrics
from app.settings import load_settings
from app.telemetry.configuration import changes, load, token_of
from tests.fixtures.replacing import NOTICED_WITHIN_S, WAYS, Place
from tests.fixtures.waiting import until

ENGINE = '  - {{name: {name}, url: "http://127.0.0.1:9", models: [m]}}\n'


def write(folder, *names, models="- {id: m}\n"):
    (folder / "models.yaml").write_text(models)
    text = "models: models.yaml\nengines:\n" + "".join(ENGINE.format(name=name) for name in names)
    (folder / "sluice.yaml").write_text(text if names else "models: models.yaml\nengines: []\n")
    return folder / "sluice.yaml"


@contextlib.asynccontextmanager
async def following(file):
    """Collects what `changes` yields. A change may come before the watch stands, so tests make it until it is told."""
    metrics, configuration, seen = Metrics(), load(file), []

    async def collect():
        async for new, loads in changes(file, configuration, metrics):
            seen.append(([engine.name for engine in new.engines], loads))

    def refused():
        return metrics.registry.get_sample_value("sluice_config_loads_total", {"file": "sluice.yaml", "result": "refused"}) or 0

    task = asyncio.create_task(collect())
    yield seen, refused
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def names(seen):
    return [engines for engines, _ in seen]


def test_engines_and_models_of_a_file(tmp_path):
    """Engines come from the settings file, specs from the models file beside it."""
    configuration = load(write(tmp_path, "a", "b"))
    assert [engine.name for engine in configuration.engines] == ["a", "b"]
    assert list(configuration.specs) == ["m"]


def test_an_engine_of_an_unknown_model_is_refused(tmp_path):
    """A model id that models.yaml lacks is named, with the engine that serves it."""
    with pytest.raises(ConfigError, match=r"engines: a serves 'm', which .*models\.yaml does not list"):
        load(write(tmp_path, "a", models="- {id: n}\n"))


async def test_a_changed_file_is_followed(tmp_path):
    """A new engine in the file is told without a restart; so is a file that is replaced by renaming another over it."""
    file = write(tmp_path, "a")
    async with following(file) as (seen, _):
        await until(lambda: write(tmp_path, "a", "b") and ["a", "b"] in names(seen))
        other = tmp_path / "other"
        other.mkdir()
        write(other, "c").replace(file)
        await until(lambda: ["c"] in names(seen))


async def test_a_bad_file_keeps_the_last_good_one(tmp_path):
    """Truncated, broken, without engines, or gone: nothing changes, each is counted, and the next good file counts."""
    file = write(tmp_path, "a")
    async with following(file) as (seen, refused):
        for spoil in (
            lambda: file.write_text(""),
            lambda: file.write_text("engines: [{name"),
            lambda: write(tmp_path),
            lambda: file.unlink(missing_ok=True),
        ):
            before = refused()
            await until(lambda spoil=spoil, before=before: (spoil(), refused() > before)[1])
        assert [engines for engines, loads in seen if engines != ["a"] or loads.problem is None or loads.ok] == []
        assert seen[-1][1].refused == refused() >= 4
        write(tmp_path, "b")
        await until(lambda: ["b"] in names(seen))
        assert (seen[-1][1].ok, seen[-1][1].problem) == (1, None)


async def test_the_file_of_before_ends_the_problem(tmp_path):
    """A bad edit that is taken back leaves the engines as they were, and says that all is well again."""
    file = write(tmp_path, "a")
    good = file.read_text()
    async with following(file) as (seen, _):
        await until(lambda: (file.write_text("engines: 1"), seen and "engines" in seen[-1][1].problem)[1])
        file.write_text(good)
        await until(lambda: seen[-1][1].problem is None)
        assert seen[-1][0] == ["a"]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_changes_are_followed_however_they_are_made(tmp_path, way):
    """Each of three versions is told in turn, and none of the moments between is."""
    place = Place(tmp_path / "place", lambda folder, version: write(folder, f"v{version}"), way)
    async with following(place.path / "sluice.yaml") as (seen, refused):
        for version in (2, 3):
            await asyncio.sleep(0)
            place.change(version)
            await until(lambda version=version: names(seen)[-1:] == [[f"v{version}"]], within_s=NOTICED_WITHIN_S)
        assert names(seen) == [["v2"], ["v3"]]
        assert refused() == 0


async def test_a_models_file_that_comes_after_the_file_that_names_it_is_found(tmp_path):
    """It is looked for where the newest settings say, also while these are refused for want of it."""
    file = write(tmp_path, "a")
    async with following(file) as (seen, refused):
        file.write_text(file.read_text().replace("models.yaml", "other.yaml").replace("name: a", "name: b"))
        await until(lambda: refused() == 1, within_s=NOTICED_WITHIN_S)
        (tmp_path / "other.yaml").write_text("- {id: m}\n")
        await until(lambda: names(seen)[-1:] == [["b"]], within_s=NOTICED_WITHIN_S)


def test_without_a_token_none_is_asked():
    """The default guards nothing but the socket's own rights."""
    assert token_of(load_settings()) is None


def test_the_token_comes_from_every_place_of_a_setting(tmp_path, monkeypatch):
    """The settings file, the environment, and a file that either names hold it; a newline at its end does not count."""
    (tmp_path / "sluice.yaml").write_text("telemetry: {token: one}\n")
    (tmp_path / "token").write_text("three\n")
    assert token_of(load_settings(tmp_path / "sluice.yaml")) == "one"
    monkeypatch.setenv("SLUICE_TELEMETRY__TOKEN", "two")
    assert token_of(load_settings(tmp_path / "sluice.yaml")) == "two"
    monkeypatch.setenv("SLUICE_TELEMETRY__TOKEN", f"file:{tmp_path / 'token'}")
    assert token_of(load_settings(tmp_path / "sluice.yaml")) == "three"


@pytest.mark.parametrize("content", ["", "\n", "se same", "se\nsame", "sésame"])
def test_a_token_that_no_header_carries_is_refused(tmp_path, content):
    """An empty file never means no guard, and what could not be sent is said at the start, without showing it."""
    (tmp_path / "token").write_text(content, "utf-8")

    with pytest.raises(ConfigError, match=r"telemetry\.token: empty, or") as refused:
        token_of(load_settings(None, (f"telemetry.token=file:{tmp_path / 'token'}",)))
    assert "same" not in f"{refused.value} {refused.value.advice}"


def test_a_missing_token_file_is_named(tmp_path):
    """The error has the setting and the file."""
    with pytest.raises(ConfigError, match=rf"telemetry\.token: {tmp_path}/absent: No such file"):
        token_of(load_settings(None, (f"telemetry.token=file:{tmp_path / 'absent'}",)))


def test_the_token_is_not_shown():
    """Settings print without it."""
    assert "sesame" not in repr(load_settings(None, ("telemetry.token=sesame",)))
