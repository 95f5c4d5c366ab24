"""What to poll, from sluice.yaml and models.yaml, and again whenever one of the files changes.

When down: a file that is gone, half written or wrong changes nothing; the last good one stays in force.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from app import watching
from app.catalog.models import ModelSpec, load_models
from app.errors import ConfigError
from app.observability.metrics import Metrics
from app.setting_sections import EngineSettings
from app.settings import Settings, load_settings, secret_of
from app.telemetry.snapshot import Loads

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Configuration:
    """The engines to poll, and the specs of the models they serve."""

    engines: tuple[EngineSettings, ...]
    specs: Mapping[str, ModelSpec]
    settings: Settings
    overrides: tuple[str, ...] = ()
    """`section.name=value` that go over the file, at every reload too."""


def load(file: Path, overrides: tuple[str, ...] = ()) -> Configuration:
    """The configuration in `file`, with `overrides` over it. Raises ConfigError: a model that an engine serves but models.yaml lacks is one, too."""
    return _with_models(load_settings(file, overrides), overrides)


def _with_models(settings: Settings, overrides: tuple[str, ...]) -> Configuration:
    specs = load_models(Path(settings.models))
    for engine in settings.engines:
        for model in engine.models:
            if model not in specs:
                raise ConfigError(f"engines: {engine.name} serves {model!r}, which {settings.models} does not list")
    return Configuration(tuple(settings.engines), specs, settings, overrides)


def token_of(settings: Settings) -> str | None:
    """What readers of the telemetry process send; None where nothing is asked. Raises ConfigError where no header could carry it."""
    if not settings.telemetry.token:
        return None
    token = secret_of("telemetry.token", settings.telemetry.token)
    if not re.fullmatch(r"[!-~]+", token):
        raise ConfigError(
            "telemetry.token: empty, or has other characters than a header can carry",
            hint="Use letters, digits and signs of ASCII, without spaces.",
            field="telemetry.token",
        )
    return token


async def changes(file: Path, current: Configuration, metrics: Metrics) -> AsyncIterator[tuple[Configuration, Loads]]:
    """The configuration in force and what became of the changes so far, after each that changes either."""
    loads = Loads()
    files = [file, Path(current.settings.models)]
    async for _ in watching.changes(files):
        try:
            new = await asyncio.to_thread(_reload, files, current)
        except ConfigError as error:
            metrics.config_loads.labels(file.name, "refused").inc()
            log.warning("config.refused", problem=error.message, hint=error.advice)
            loads = Loads(loads.ok, loads.refused + 1, error.message)
        else:
            if _polled(new) == _polled(current) and loads.problem is None:
                continue
            metrics.config_loads.labels(file.name, "ok").inc()
            log.info("config.changed", engines=[engine.name for engine in new.engines])
            current, loads = new, Loads(loads.ok + 1, loads.refused)
        yield current, loads


def _polled(configuration: Configuration) -> tuple[object, ...]:
    """What a change must touch to be followed."""
    return configuration.engines, configuration.specs, configuration.settings.gpus


def _reload(files: list[Path], current: Configuration) -> Configuration:
    settings = load_settings(files[0], current.overrides)
    files[1] = Path(settings.models)  # also where it is refused: it may be written after the file that names it
    new = _with_models(settings, current.overrides)
    if current.engines and not new.engines:
        raise ConfigError(f"{files[0]}: all engines are gone; taken for a write in progress, restart to run without any")
    return new
