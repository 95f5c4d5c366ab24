"""How a table says which series of an engine's page carry which signal: one table per engine, read by pages.py.

Names change between versions, so each signal has several, the newest first: the first that a page has counts, even where its
value is impossible, since an older one may be a leftover.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

SECONDS, MILLISECONDS, MICROSECONDS = 1000.0, 1.0, 0.001
"""Units that engines measure times in, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Value:
    """A series by its name, and by labels where one name carries several values. A label that is absent is empty."""

    name: str
    where: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Mean:
    """Two counters whose growth gives a mean time: of what was measured, and how often."""

    sum: Value
    count: Value
    unit_ms: float


@dataclass(frozen=True, slots=True)
class Product:
    """Tokens of a cache as the product of gauges, such as blocks and tokens in a block."""

    factors: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """Tokens of a cache as the product of labels of one series, which has another value or none."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """The table of one engine. A signal without a name here is one that the engine does not tell: unknown."""

    kv: tuple[Value, ...] = ()
    """KV cache in use, 0..1, whatever the name says of per cent."""
    waiting: tuple[Value, ...] = ()
    running: tuple[Value, ...] = ()
    capacity: tuple[Product | Shape, ...] = ()
    """Tokens that the KV cache of one rank holds."""
    iteration: tuple[Mean, ...] = ()
    """Time of one decode step."""
    ttft: tuple[Mean, ...] = ()
    """Time to the first token."""
    progress: tuple[str, ...] = ()
    """Gauges and counters beside those above that move when the engine works, and stay while it does not."""
    steps: bool = False
    """Whether something of these moves with every step of a busy engine, on each page of this kind: then a page that stands still
    with work on it is one of an engine that hangs. Where counters move only as calls end, a long call looks the same."""
    model_labels: tuple[str, ...] = ()
    """The label that holds the model. An engine without one tells a single model."""
    rank_labels: tuple[str, ...] = ()
    """What tells data-parallel ranks apart: each combination is one scheduler with a cache of its own."""

    @property
    def wanted(self) -> frozenset[str]:
        """Every name that the table reads."""
        means = [*self.iteration, *self.ttft]
        values = [*self.kv, *self.waiting, *self.running, *(mean.sum for mean in means), *(mean.count for mean in means)]
        shapes = [one.name for one in self.capacity if isinstance(one, Shape)]
        products = [factor.name for one in self.capacity if isinstance(one, Product) for factor in one.factors]
        return frozenset([*(value.name for value in values), *shapes, *products, *self.progress])


def histogram(name: str, unit_ms: float, where: Mapping[str, str] | None = None) -> Mean:
    """The mean of a histogram or summary, from its `_sum` and `_count`."""
    return Mean(Value(f"{name}_sum", where or {}), Value(f"{name}_count", where or {}), unit_ms)
