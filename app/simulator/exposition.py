"""Prometheus text 0.0.4, written out: for pages whose names a client library would change."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

Type = Literal["gauge", "counter", "histogram"]


class Histogram:
    """Counts by upper bound, the last one of which is +Inf, and their sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    @property
    def count(self) -> int:
        """How many were observed."""
        return sum(self.counts)

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


def family(name: str, kind: Type, labels: Mapping[str, str], value: float | Histogram) -> str:
    """The lines of one metric with one set of labels."""
    samples = _histogram(name, labels, value) if isinstance(value, Histogram) else iter((_sample(name, labels, value),))
    return "\n".join((f"# TYPE {name} {kind}", *samples, ""))


def _histogram(name: str, labels: Mapping[str, str], value: Histogram) -> Iterator[str]:
    below = 0
    for bound, count in zip((*map(str, value.bounds), "+Inf"), value.counts, strict=True):
        below += count
        yield _sample(f"{name}_bucket", {**labels, "le": bound}, below)
    yield _sample(f"{name}_sum", labels, value.sum)
    yield _sample(f"{name}_count", labels, value.count)


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    listed = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{listed}}} {value}" if listed else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
