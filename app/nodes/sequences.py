"""max_num_seqs of each node: what rules leave of the configured figure, arbitrated over the instances of a model (B11)."""

from collections.abc import Iterable, Mapping

from app.estimators.shares import arbitrated
from app.policy.node_answer import NodeAnswer
from app.telemetry.snapshot import Node
from app.telemetry.view import NodeModel


class BatchSizes:
    """The figures, worked out anew only where an answer or what nodes are configured for changed: snapshots come far more often."""

    def __init__(self) -> None:
        self._nodes: list[tuple[str, tuple[str, ...], int]] = []
        self._answers: Mapping[NodeModel, NodeAnswer] = {}
        self._sizes: Mapping[str, int] = {}

    def of(self, nodes: Iterable[Node], answers: Mapping[NodeModel, NodeAnswer]) -> Mapping[str, int]:
        """As batch_sizes. Answers that changed are another object."""
        nodes = list(nodes)
        configured = [(node.name, node.models, node.max_num_seqs) for node in nodes]
        if answers is not self._answers or configured != self._nodes:
            self._nodes, self._answers = configured, answers
            self._sizes = batch_sizes(nodes, answers)
        return self._sizes


def batch_sizes(nodes: Iterable[Node], answers: Mapping[NodeModel, NodeAnswer]) -> dict[str, int]:
    """By node the sequences that its batch may have; nodes that no rule has spoken of are absent.

    All instances of a model share what its rules leave it; a node of several models gets the least of them.
    """
    bases: dict[str, dict[str, int]] = {}
    factors: dict[str, dict[str, float]] = {}
    for node in nodes:
        for model in node.models:
            answer = answers.get((node.name, model))
            if answer is not None:
                bases.setdefault(model, {})[node.name] = node.max_num_seqs
                factors.setdefault(model, {})[node.name] = answer.max_num_seqs_factor
    sizes: dict[str, int] = {}
    for model, own in bases.items():
        for name, size in arbitrated(own, factors[model]).items():
            sizes[name] = min(size, sizes.get(name, size))
    return sizes
