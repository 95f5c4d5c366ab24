"""What is in flight by node and model, as our own leases say: counted as each begins and ends, never by looking at them all (A3).

Beside it stands how often a node failed in a row: what it holds says nothing of a node that refuses all it is sent.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.limiter.lease import Lease

FAILED = ("failed", "timeout")
"""Outcomes that speak against a node; `completed` speaks for it, and `aborted` is the client's doing."""

MOST_AT_REST = 1024
"""Pairs kept for their failures alone, some 200 bytes each. Nodes come and go with the settings; past it the longest at rest go."""


@dataclass(frozen=True, slots=True)
class Held:
    """One model on one node."""

    requests: int = 0
    tokens: int = 0
    """Real tokens as reserved: prompt and most output."""
    failures: int = 0
    """Calls in a row that failed or timed out, as settled; 0 from the next that completes on."""


@dataclass(slots=True)
class _Count:
    requests: int = 0
    tokens: int = 0
    failures: int = 0


Place = tuple[str | None, str]
"""Name of a node, or None where no node was live, and id of a model."""


class InFlight:
    """Counts by place and by model. What holds nothing and has not failed is forgotten at once."""

    def __init__(self) -> None:
        self._counts: dict[Place, _Count] = {}
        self._at_rest: dict[Place, None] = {}
        """Places that hold nothing and are kept for their failures, the longest at rest first."""
        self._tokens: dict[str, int] = {}

    def of(self, place: Place) -> Held:
        """What is in flight there now."""
        count = self._counts.get(place)
        return Held(count.requests, count.tokens, count.failures) if count else Held()

    def busy(self) -> Iterable[Place]:
        """Places that hold anything."""
        return [place for place, count in self._counts.items() if count.requests]

    def tokens(self) -> dict[str, int]:
        """Tokens held by model, on whatever node; only of models that hold any."""
        return dict(self._tokens)

    def begin(self, lease: Lease) -> None:
        """A lease was given."""
        place, tokens = (lease.node, lease.model), lease.tokens_reserved
        count = self._counts.get(place)
        if count is None:
            count = self._counts[place] = _Count()
        elif not count.requests:
            self._at_rest.pop(place, None)
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
            self._rest(place, count)
        self._tokens[lease.model] -= tokens
        if not self._tokens[lease.model]:
            del self._tokens[lease.model]

    def report(self, lease: Lease, outcome: str) -> None:
        """The first report on a lease, live or ended, says how its call went; without a node nobody is to blame."""
        place = (lease.node, lease.model)
        count = self._counts.get(place)
        if outcome in FAILED and lease.node is not None:
            if count is None:
                count = self._counts[place] = _Count()
            count.failures += 1
        elif outcome == "completed" and count is not None:
            count.failures = 0
        else:
            return
        if not count.requests:
            self._rest(place, count)

    def _rest(self, place: Place, count: _Count) -> None:
        """It holds nothing now: forget it, or keep it for its failures."""
        self._at_rest.pop(place, None)
        if not count.failures:
            del self._counts[place]
            return
        self._at_rest[place] = None
        if len(self._at_rest) > MOST_AT_REST:
            longest = next(iter(self._at_rest))
            del self._at_rest[longest], self._counts[longest]
