"""Models that the same nodes serve: they share caches and batches, so what limits those is theirs together.

A limit on what is in flight counts every lease, wherever it runs. So what it allows is the room on live nodes and, on top,
what leases hold already: in the caches of live nodes, which their free room leaves out, and on nodes that are not live.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.telemetry.view import Holding, NodeState, Own


@dataclass(frozen=True, slots=True)
class Pool:
    """Models on the same nodes. Without a node a model is a pool of its own."""

    name: str
    on: Mapping[str, Holding] = field(default_factory=dict)
    """What leases of ours hold of all its models, by node."""
    everywhere: Holding = Holding()  # noqa: RUF009 - frozen

    def tokens_beside(self, live: Iterable[NodeState]) -> int:
        """Tokens held that the free room of live nodes does not pay for: in their caches already, or elsewhere."""
        there = _sum(self.on.get(state.node, Holding()) for state in live)
        return int(there.cached_tokens) + max(0, self.everywhere.tokens - there.tokens)

    def requests_elsewhere(self, live: Iterable[NodeState]) -> int:
        """Requests held on nodes that are not live."""
        return max(0, self.everywhere.requests - sum(self.on.get(state.node, Holding()).requests for state in live))


def pools(by_model: Mapping[str, list[NodeState]], own: Own) -> dict[str, Pool]:
    """The pool of each model."""
    members: dict[tuple[str, ...], list[str]] = {}
    for model, states in by_model.items():
        members.setdefault(tuple(state.node for state in states) or (model,), []).append(model)
    shared = (_pool(sorted(models), by_model, own) for models in members.values())
    by_name = {pool.name: pool for pool in shared}
    return {model: by_name[min(models)] for models in members.values() for model in models}


def _pool(models: list[str], by_model: Mapping[str, list[NodeState]], own: Own) -> Pool:
    nodes = [state.node for state in by_model[models[0]]]
    on: dict[str, list[Holding]] = {node: [] for node in nodes}
    for model in models:
        for state in by_model[model]:
            on[state.node].append(state.standing.holding)
    everywhere = _sum(own.held.get(model, Holding()) for model in models)
    return Pool(models[0], {node: _sum(each) for node, each in on.items()}, everywhere)


def _sum(holdings: Iterable[Holding]) -> Holding:
    requests, tokens, cached_tokens = 0, 0, 0.0
    for one in holdings:
        requests += one.requests
        tokens += one.tokens
        cached_tokens += one.cached_tokens
    return Holding(requests, tokens, cached_tokens)
