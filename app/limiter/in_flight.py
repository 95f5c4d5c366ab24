"""What is in flight by node and model, as our own leases say: counted as each begins and ends, never by looking at them all (A3).

Beside it, how calls ended, for whoever judges the nodes: kept until they are taken, and no more than MOST_REPORTS of them.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from app.limiter.lease import Lease

MOST_REPORTS = 4096
"""Ends of calls that wait to be taken, some 150 bytes each: several times what ends between two snapshots. The oldest are dropped."""


@dataclass(frozen=True, slots=True)
class Held:
    """One model on one node."""

    requests: int = 0
    tokens: int = 0
    """Real tokens as reserved: prompt and most output."""


@dataclass(frozen=True, slots=True)
class Report:
    """How one call on a node ended, as its gateway settled it."""

    node: str
    model: str
    outcome: str
    """completed, failed, timeout or aborted."""
    lasted_ms: float
    """From admission to the report."""


@dataclass(slots=True)
class _Count:
    requests: int = 0
    tokens: int = 0


NOTHING = Held()
K = TypeVar("K")
Place = tuple[str | None, str]
"""Name of a node, or None where no node was live, and id of a model."""


class InFlight:
    """Counts by place, by node and by model. What holds nothing is forgotten at once."""

    def __init__(self) -> None:
        self._places: dict[Place, _Count] = {}
        self._nodes: dict[str | None, _Count] = {}
        self._models: dict[str, _Count] = {}
        self._reports: deque[Report] = deque(maxlen=MOST_REPORTS)

    def of(self, place: Place) -> Held:
        """One model on one node."""
        return _held(self._places.get(place))

    def on(self, node: str) -> Held:
        """All models on one node: they share its cache and its batch."""
        return _held(self._nodes.get(node))

    def by_model(self) -> dict[str, Held]:
        """Each model, on whatever node; only those that hold any."""
        return {model: _held(count) for model, count in self._models.items()}

    def busy(self) -> Iterable[Place]:
        """Places that hold anything."""
        return list(self._places)

    def begin(self, lease: Lease) -> None:
        """A lease was given."""
        _add(self._places, (lease.node, lease.model), 1, lease.tokens_reserved)
        _add(self._nodes, lease.node, 1, lease.tokens_reserved)
        _add(self._models, lease.model, 1, lease.tokens_reserved)

    def end(self, lease: Lease) -> None:
        """A live lease ended, however it did."""
        _add(self._places, (lease.node, lease.model), -1, -lease.tokens_reserved)
        _add(self._nodes, lease.node, -1, -lease.tokens_reserved)
        _add(self._models, lease.model, -1, -lease.tokens_reserved)

    def report(self, lease: Lease, outcome: str, now_ms: float) -> None:
        """The first report on a lease, live or ended, says how its call went; without a node nobody is to blame."""
        if lease.node is not None:
            self._reports.append(Report(lease.node, lease.model, outcome, now_ms - lease.started_ms))

    def take_reports(self) -> list[Report]:
        """How calls ended since the last time, in order."""
        taken = list(self._reports)
        self._reports.clear()
        return taken


def _held(count: _Count | None) -> Held:
    return Held(count.requests, count.tokens) if count else NOTHING


def _add(counts: dict[K, _Count], key: K, requests: int, tokens: int) -> None:
    count = counts.get(key)
    if count is None:
        count = counts[key] = _Count()
    count.requests += requests
    count.tokens += tokens
    if not count.requests:
        del counts[key]
