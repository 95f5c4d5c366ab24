"""What is in flight by node and model, as our own leases say: counted as each begins and ends, never by looking at them all (A3).

Beside it, how calls ended, for whoever judges the nodes: kept until they are taken, and no more than MOST_REPORTS of them.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

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
Place = tuple[str | None, str]
"""Name of a node, or None where no node was live, and id of a model."""


class InFlight:
    """Counts by place and by model. What holds nothing is forgotten at once."""

    def __init__(self) -> None:
        self._counts: dict[Place, _Count] = {}
        self._tokens: dict[str, int] = {}
        self._reports: deque[Report] = deque(maxlen=MOST_REPORTS)

    def of(self, place: Place) -> Held:
        """What is in flight there now."""
        count = self._counts.get(place)
        return Held(count.requests, count.tokens) if count else NOTHING

    def busy(self) -> Iterable[Place]:
        """Places that hold anything."""
        return list(self._counts)

    def tokens(self) -> dict[str, int]:
        """Tokens held by model, on whatever node; only of models that hold any."""
        return dict(self._tokens)

    def begin(self, lease: Lease) -> None:
        """A lease was given."""
        place, tokens = (lease.node, lease.model), lease.tokens_reserved
        count = self._counts.get(place)
        if count is None:
            count = self._counts[place] = _Count()
        count.requests += 1
        count.tokens += tokens
        self._tokens[lease.model] = self._tokens.get(lease.model, 0) + tokens

    def end(self, lease: Lease) -> None:
        """A live lease ended, however it did."""
        place, tokens = (lease.node, lease.model), lease.tokens_reserved
        count = self._counts[place]
        count.requests -= 1
        count.tokens -= tokens
        if not count.requests:
            del self._counts[place]
        self._tokens[lease.model] -= tokens
        if not self._tokens[lease.model]:
            del self._tokens[lease.model]

    def report(self, lease: Lease, outcome: str, now_ms: float) -> None:
        """The first report on a lease, live or ended, says how its call went; without a node nobody is to blame."""
        if lease.node is not None:
            self._reports.append(Report(lease.node, lease.model, outcome, now_ms - lease.started_ms))

    def take_reports(self) -> list[Report]:
        """How calls ended since the last time, in order."""
        taken = list(self._reports)
        self._reports.clear()
        return taken
