"""The in-flight controllers (A3): one for each model on a node for which rules name set points."""

from collections.abc import Collection, Mapping
from functools import lru_cache

from app.estimators.controller import Controller, Levels, Load, Output
from app.estimators.smoothing import Smoothed
from app.telemetry.snapshot import Reading
from app.telemetry.view import NodeModel

BATCHES = 2
"""Most in flight, in batches: one that runs and one that waits for its turn; more would only wait longer."""
LEAST = 1
"""A node that may have nothing in flight could never show that it has recovered, and a rate lets nothing grow from 0."""
LASTS_HALF_LIFE_MS = 5_000.0
LASTS_FORGET_MS = 60_000.0
"""How long calls last changes with what is asked for, over many calls; after a minute without any it is unknown again."""


class Controllers:
    """All of them. Without any set point there is none, and nothing is limited."""

    def __init__(self) -> None:
        self._controllers: dict[NodeModel, Controller] = {}
        self._lasts_ms: dict[NodeModel, Smoothed] = {}

    def lasted(self, key: NodeModel, lasted_ms: float, now_ms: float) -> None:
        """A call there lasted so long."""
        self._lasts_ms.setdefault(key, Smoothed(LASTS_HALF_LIFE_MS, LASTS_FORGET_MS)).push(lasted_ms, now_ms)

    def update(
        self, key: NodeModel, reading: Reading, *, set_points: Mapping[str, float], in_flight: int, max_num_seqs: int, now_ms: float
    ) -> Output | None:
        """One step on what the node tells now, and on how many requests of ours are there."""
        if not set_points:
            self._controllers.pop(key, None)
            return None
        lasts, controller = self._lasts_ms.get(key), self._controllers.get(key)
        if controller is None:
            controller = self._controllers[key] = Controller()
        return controller.update(
            Levels(reading.kv_ratio, reading.waiting, _iteration_ms(reading)),
            _aims(set_points.get("kv"), set_points.get("waiting"), set_points.get("iteration_ms")),
            Load(in_flight, _at_engine(reading), lasts.push(None, now_ms) if lasts else None),
            floor=LEAST,
            ceiling=BATCHES * max_num_seqs,
            now_ms=now_ms,
        )

    def keep(self, keys: Collection[NodeModel]) -> None:
        """Forget all but these."""
        self._controllers = {key: controller for key, controller in self._controllers.items() if key in keys}
        self._lasts_ms = {key: lasts for key, lasts in self._lasts_ms.items() if key in keys}


@lru_cache(maxsize=256)
def _aims(kv_ratio: float | None, waiting: float | None, iteration_ms: float | None) -> Levels:
    """Nearly all nodes have the same, snapshot after snapshot."""
    return Levels(kv_ratio, waiting, iteration_ms)


def _iteration_ms(reading: Reading) -> float | None:
    """An engine that runs nothing has no latency: what is smoothed outlasts the work it was measured on."""
    return None if reading.running == 0 else reading.iteration_ms


def _at_engine(reading: Reading) -> int | None:
    return None if reading.running is None or reading.waiting is None else reading.running + reading.waiting
