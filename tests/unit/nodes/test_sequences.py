"""The size of each node's batch, by hand."""

from app.nodes.sequences import BatchSizes, batch_sizes
from app.policy.node_answer import NodeAnswer
from app.telemetry.snapshot import Node


def node(name: str, base: int, *models: str) -> Node:
    return Node(name, models or ("m",), max_num_seqs=base)


def test_nobody_spoke() -> None:
    """Without an answer there is no figure: an engine keeps its own."""
    assert batch_sizes([node("a", 64)], {}) == {}


def test_base_times_factor() -> None:
    """64 x 0.7 = 44.8, rounded down."""
    assert batch_sizes([node("a", 64)], {("a", "m"): NodeAnswer(max_num_seqs_factor=0.7)}) == {"a": 44}


def test_instances_of_a_model_are_rounded_together() -> None:
    """Three instances of 5 at 0.7 have 10.5, so 10 in all: 4 and two times 3, where each alone would have 3."""
    answers = {(name, "m"): NodeAnswer(max_num_seqs_factor=0.7) for name in "abc"}
    assert batch_sizes([node(name, 5) for name in "abc"], answers) == {"a": 4, "b": 3, "c": 3}


def test_no_batch_is_empty() -> None:
    """However small the factor, one sequence runs."""
    assert batch_sizes([node("a", 2)], {("a", "m"): NodeAnswer(max_num_seqs_factor=0.0)}) == {"a": 1}


def test_a_node_of_two_models_gets_the_lesser() -> None:
    """What one of its models must not have, its batch must not have."""
    answers = {("a", "m"): NodeAnswer(max_num_seqs_factor=1.0), ("a", "n"): NodeAnswer(max_num_seqs_factor=0.3)}
    assert batch_sizes([node("a", 100, "m", "n")], answers) == {"a": 30}


def test_figures_follow_every_change() -> None:
    """Worked out anew only where something changed, they are at any time what they would be without a memory."""
    sizes, whole, less = BatchSizes(), {("a", "m"): NodeAnswer()}, {("a", "m"): NodeAnswer(max_num_seqs_factor=0.5)}
    asked = [([node("a", 64)], whole), ([node("a", 64)], whole), ([node("a", 64)], less), ([node("a", 32)], less), ([], less)]

    assert [sizes.of(nodes, answers) for nodes, answers in asked] == [{"a": 64}, {"a": 64}, {"a": 32}, {"a": 16}, {}]
    assert sizes.of([node("a", 64)], whole) is sizes.of(iter([node("a", 64)]), whole)
