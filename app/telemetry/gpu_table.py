"""What is known of each GPU over all sources that tell of it, and the least of its memory ratio over the last seconds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.estimators.window import FLOOR_MS, Floor
from app.telemetry.device_memory import unknown
from app.telemetry.snapshot import Gpu


@dataclass(frozen=True, slots=True)
class _Told:
    gpu: Gpu
    taken_ms: float | None
    """When its figures were asked for; None where it has none."""


class GpuTable:
    """Several sources over each other. `order` names them, the one that is believed first in front."""

    def __init__(self) -> None:
        self.order: Sequence[str] = ()
        self._told: dict[str, dict[str, _Told]] = {}
        self._floors: dict[str, Floor] = {}
        self._least: dict[str, float | None] = {}

    def tell(self, source: str, gpus: Iterable[Gpu], *, taken_ms: float, now_ms: float) -> None:
        """Take all that a source tells; what it tells no more is gone."""
        self._told[source] = {gpu.id: _Told(gpu, None if gpu.used_bytes is None else taken_ms) for gpu in gpus}
        self._push(source, now_ms)

    def fail(self, source: str, problem: str, *, now_ms: float) -> None:
        """It said that it cannot tell: all its GPUs are unknown."""
        before = self._told.get(source, {})
        self._told[source] = {gpu: _Told(unknown(gpu, told.gpu.source, problem), None) for gpu, told in before.items()}
        self._push(source, now_ms)

    def late(self, source: str, problem: str) -> None:
        """It did not answer: its last figures grow old, beside the problem."""
        before = self._told.get(source, {})
        self._told[source] = {gpu: replace(told, gpu=replace(told.gpu, problem=problem)) for gpu, told in before.items()}

    def drop(self, source: str) -> None:
        """Forget a source that is not asked any more."""
        self._told.pop(source, None)

    def gpus(self) -> list[Gpu]:
        """The best that is known of each."""
        best = self._best()
        for gone in self._floors.keys() - best.keys():
            del self._floors[gone], self._least[gone]
        return [
            replace(told.gpu, memory_floor=None if told.gpu.memory_ratio is None else self._least.get(gpu))
            for gpu, (_, told) in best.items()
        ]

    def taken_ms(self) -> dict[str, float]:
        """When the figures of each were asked for, by id; absent where it has none."""
        return {gpu: told.taken_ms for gpu, (_, told) in self._best().items() if told.taken_ms is not None}

    def _best(self) -> dict[str, tuple[str, _Told]]:
        """Of each GPU the first source whose figures are good, else that still has some, else that knows it at all."""
        best: dict[str, tuple[str, _Told]] = {}
        for source in self.order:
            for gpu, told in self._told.get(source, {}).items():
                if gpu not in best or _worth(told.gpu) > _worth(best[gpu][1].gpu):
                    best[gpu] = (source, told)
        return best

    def _push(self, source: str, now_ms: float) -> None:
        for gpu, (of, told) in self._best().items():
            if of == source:
                floor = self._floors.setdefault(gpu, Floor(FLOOR_MS))
                self._least[gpu] = floor.push(told.gpu.memory_ratio, now_ms)


def _worth(gpu: Gpu) -> int:
    return (gpu.memory_ratio is not None) + (gpu.memory_ratio is not None and gpu.problem is None)
