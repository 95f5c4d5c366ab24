"""The catalogue in force: model specs from models.yaml, reloaded when the file changes; a bad file keeps the last good one.

When down: a file that vanishes, is half written or wrong changes nothing; the refusal is logged, counted and shown by /readyz.
"""

from collections.abc import Mapping
from pathlib import Path

import structlog
from watchfiles import awatch

from app.catalog.models import ModelSpec, load_models
from app.errors import ConfigError
from app.observability.metrics import Metrics

log = structlog.get_logger()

DEBOUNCE_MS = 50
"""Editors write in several steps; longer would be felt by whoever waits for the change."""


class Catalog:
    """Models by id. Raises ConfigError when built from a bad file; later bad files are refused quietly."""

    def __init__(self, path: Path, metrics: Metrics) -> None:
        self._path = path
        self._metrics = metrics
        self._models = load_models(path)
        self.problem: str | None = None
        """Why the newest file was refused; None when it is in force."""

    @property
    def models(self) -> Mapping[str, ModelSpec]:
        """The specs in force. A reload replaces the mapping, it never changes one in place."""
        return self._models

    def model(self, model_id: str) -> ModelSpec | None:
        """One spec, or None."""
        return self._models.get(model_id)

    def reload(self) -> bool:
        """Read the file again; False, with `problem` set, where it was refused and the last good one stays."""
        try:
            self._models = load_models(self._path)
        except ConfigError as error:
            self.problem = error.message
            self._metrics.config_loads.labels("models", "refused").inc()
            log.warning("models refused, last good ones stay", problem=error.message)
            return False
        self.problem = None
        self._metrics.config_loads.labels("models", "ok").inc()
        log.info("models loaded", count=len(self._models))
        return True

    async def watch(self) -> None:
        """Reload whenever the file's folder tells of a change to it; runs until cancelled."""
        # The folder, not the file: editors and config maps replace files, and a watch on the old inode would go blind.
        async for _ in awatch(self._path.parent, debounce=DEBOUNCE_MS, step=10, recursive=False, watch_filter=self._is_ours):
            self.reload()

    def _is_ours(self, _: object, path: str) -> bool:
        return Path(path).name in (self._path.name, "..data")
