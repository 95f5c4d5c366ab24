"""The in-flight controllers (A3): one for each model on a node for which rules name set points."""

from collections.abc import Collection, Mapping

from app.estimators.controller import Controller, Levels, Load, Output
from app.telemetry.snapshot import Reading
from app.telemetry.view import NodeModel

BATCHES = 2
"""Most in flight, in batches: one that runs and one that waits for its turn; more would only wait longer."""
LEAST = 1
"""A node that may have nothing in flight could never show that it has recovered."""


class Controllers:
    """All of them. Without any set point there is none, and nothing is limited."""

    def __init__(self) -> None:
        self._controllers: dict[NodeModel, Controller] = {}

    def update(
        self, key: NodeModel, reading: Reading, *, set_points: Mapping[str, float], in_flight: int, max_num_seqs: int, now_ms: float
    ) -> Output | None:
        """One step on what the node tells now, and on how many requests of ours are there."""
        if not set_points:
            self._controllers.pop(key, None)
            return None
        return self._controllers.setdefault(key, Controller()).update(
            Levels(reading.kv_ratio, reading.waiting, reading.iteration_ms),
            Levels(set_points.get("kv"), set_points.get("waiting"), set_points.get("iteration_ms")),
            Load(in_flight, _at_engine(reading)),
            floor=LEAST,
            ceiling=BATCHES * max_num_seqs,
            now_ms=now_ms,
        )

    def keep(self, keys: Collection[NodeModel]) -> None:
        """Forget all but these."""
        self._controllers = {key: controller for key, controller in self._controllers.items() if key in keys}


def _at_engine(reading: Reading) -> int | None:
    return None if reading.running is None or reading.waiting is None else reading.running + reading.waiting
