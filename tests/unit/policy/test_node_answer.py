"""What rules for nodes answer: shapes, and how parts combine."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.policy.node_answer import SIGNALS, Avoid, NodeAnswer, NodePart, combine, would_change
from app.policy.node_parts import parse_node
from app.policy.unanswered import PolicyInvalid

AVOID = {"code": "x", "message": "m"}
AIM = {"signal": "kv", "value": 0.8}

parts = st.lists(
    st.builds(
        NodePart,
        rule=st.sampled_from(["a", "b", "c"]),
        avoids=st.lists(st.builds(Avoid, st.sampled_from(["a", "b"]), st.sampled_from(["x", "y"]), st.just("m")), max_size=2).map(tuple),
        max_num_seqs_factors=st.lists(st.floats(0, 1), max_size=2).map(tuple),
        set_points=st.lists(st.tuples(st.sampled_from(SIGNALS), st.floats(0.001, 1000)), max_size=3).map(tuple),
    ),
    max_size=5,
)


def test_every_output_is_read() -> None:
    """One element of each output becomes the value of its kind."""
    part = parse_node("mine", {"avoid": [AVOID], "max_num_seqs": [0.7, 0], "set_point": [AIM]})

    assert part.avoids == (Avoid("mine", "x", "m"),)
    assert part.max_num_seqs_factors == (0.7, 0)
    assert part.set_points == (("kv", 0.8),)
    assert part.answered == {"avoid": [AVOID], "max_num_seqs": [0.7, 0], "set_point": [AIM]}


@pytest.mark.parametrize(
    ("outputs", "names"),
    [
        ({"avoid": True}, "avoid must be a set"),
        ({"avoid": [{**AVOID, "status": 403}]}, "avoid.status is unknown; expected code, message"),
        ({"avoid": [{"code": "x"}]}, "avoid.message is missing"),
        ({"max_num_seqs": [1.01]}, "max_num_seqs must be from 0 to 1"),
        ({"max_num_seqs": ["0.7"]}, "max_num_seqs must be a number, not a text"),
        ({"set_point": [{**AIM, "value": 0}]}, "set_point.value must be from 1e-06"),
        ({"set_point": [{**AIM, "value": 80}]}, "set_point.value must be from 1e-06 to 1,"),
        ({"set_point": [{**AIM, "signal": "memory"}]}, "set_point.signal must be one of kv, waiting, iteration_ms"),
        ({"set_point": [{"signal": "waiting", "value": float("inf")}]}, "set_point.value must be from"),
        ({"deny": []}, "deny is no output; rules answer avoid, max_num_seqs, set_point"),
    ],
)
def test_whatever_is_not_exactly_right_names_rule_and_field(outputs: dict[str, object], names: str) -> None:
    """Nothing is guessed or converted; the message says which rule and which field."""
    with pytest.raises(PolicyInvalid, match="rule mine: ") as refused:
        parse_node("mine", outputs)

    assert names in refused.value.message
    assert refused.value.rule == "mine"


def test_the_least_counts_and_any_avoids() -> None:
    """The least factor and the least aim per signal are in force, and every reason to avoid the node is named."""
    first = NodePart("a", avoids=(Avoid("a", "y", "m"),), max_num_seqs_factors=(0.7,), set_points=(("kv", 0.8), ("waiting", 10)))
    second = NodePart("b", avoids=(Avoid("b", "x", "m"),), max_num_seqs_factors=(0.3,), set_points=(("kv", 0.9), ("waiting", 4)))

    assert combine("r", [first, second], ["d", "c"]) == NodeAnswer(
        avoid=(Avoid("a", "y", "m"), Avoid("b", "x", "m")),
        max_num_seqs_factor=0.3,
        set_points={"kv": 0.8, "waiting": 4},
        revision="r",
        stale=("c", "d"),
    )


def test_without_rules_a_node_may_do_everything() -> None:
    """No rule: nothing is avoided, the whole batch is left, and there is no aim."""
    assert combine("r", []) == NodeAnswer(avoid=(), max_num_seqs_factor=1.0, set_points={}, revision="r")


@given(parts, st.randoms())
def test_the_order_of_parts_does_not_matter(given_parts: list[NodePart], random: object) -> None:
    """The same parts in any order give the same answer."""
    shuffled = list(given_parts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert combine("r", shuffled) == combine("r", given_parts)


@given(parts, parts)
def test_more_rules_never_allow_more(some: list[NodePart], more: list[NodePart]) -> None:
    """Whatever a further rule answers, the node may do no more than before, and within bounds."""
    before, after = combine("r", some), combine("r", some + more)

    assert set(before.avoid) <= set(after.avoid)
    assert 0 <= after.max_num_seqs_factor <= before.max_num_seqs_factor <= 1
    assert all(after.set_points[signal] <= value for signal, value in before.set_points.items())


@given(parts, parts.filter(bool))
def test_a_part_that_would_change_nothing_changes_nothing(some: list[NodePart], more: list[NodePart]) -> None:
    """`would_change` tells exactly the outputs in which an answer becomes another, but for further reasons to avoid a node."""
    before, after = combine("r", some), combine("r", [*some, more[0]])
    changed = {
        "avoid": bool(after.avoid) != bool(before.avoid),
        "max_num_seqs": after.max_num_seqs_factor != before.max_num_seqs_factor,
        "set_point": after.set_points != before.set_points,
    }

    assert set(would_change(before, more[0])) == {output for output, is_other in changed.items() if is_other}
    assert would_change(replace(after, revision="s"), more[0]) == ()
