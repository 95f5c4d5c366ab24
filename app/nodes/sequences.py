"""max_num_seqs of each node: what rules leave of the configured figure, arbitrated over the instances of a model (B11)."""

from collections.abc import Iterable, Mapping

from app.estimators.shares import arbitrated
from app.policy.node_answer import NodeAnswer
from app.telemetry.snapshot import Node
from app.telemetry.view import NodeModel


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
                factors.setdefault(model, {})[node.name] = answer.seqs_factor
    sizes: dict[str, int] = {}
    for model, own in bases.items():
        for name, size in arbitrated(own, factors[model]).items():
            sizes[name] = min(size, sizes.get(name, size))
    return sizes
