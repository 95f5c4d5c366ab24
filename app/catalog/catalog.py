"""The catalogue in force: model specs from models.yaml, reloaded when the file changes; a bad file keeps the last good one.

When down: a file that vanishes, is half written or wrong changes nothing; the refusal is logged, counted and shown by /readyz.
"""

from collections.abc import Mapping
from pathlib import Path

import structlog

from app.catalog.models import ModelSpec, load_models
from app.errors import ConfigError
from app.observability.metrics import Metrics
from app.watching import changes

log = structlog.get_logger()


class Catalog:
    """Models by id. Raises ConfigError when built from a bad file; later bad files are refused quietly."""

    def __init__(self, path: Path, metrics: Metrics) -> None:
        self._path = path
        self._metrics = metrics
        self._models = load_models(path)
        self.problem: str | None = None
        """Why the newest file was refused; None when it is in force."""

    def all(self) -> Mapping[str, ModelSpec]:
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
        """Reload on every change of the file, for ever."""
        async for _ in changes([self._path]):
            self.reload()
