"""The shape and types of what a rule for nodes answers, checked once when it comes from OPA."""

from collections.abc import Mapping
from typing import Any

from app.policy.elements import Reader, fields_of, number, one_of, read_outputs, text
from app.policy.node_answer import SIGNALS, Avoid, NodePart
from app.policy.question import encoded

LEAST_AIM = 1e-6
"""An aim of 0 could never be met, and would close the node for good."""

MOST_AIM = {"kv": 1.0, "waiting": 1e6, "iteration_ms": 60_000.0}
"""By signal: above it the aim is in another unit than it should be, such as per cent."""


def parse_node(rule: str, outputs: Mapping[str, Any]) -> NodePart:
    """The checked part of `rule`. Raises PolicyInvalid naming rule and field."""
    found = read_outputs(rule, outputs, NODE_OUTPUTS)
    return NodePart(
        rule=rule,
        avoids=found.get("avoid", ()),
        max_num_seqs_factors=found.get("max_num_seqs", ()),
        set_points=found.get("set_point", ()),
        outputs=encoded(outputs),
    )


def _avoid(rule: str, element: Any) -> Avoid:
    fields = fields_of(element, required=("code", "message"))
    return Avoid(rule, text(fields, "code"), text(fields, "message"))


def _max_num_seqs(_: str, element: Any) -> float:
    return number({"": element}, "", 0, 1)


def _set_point(_: str, element: Any) -> tuple[str, float]:
    fields = fields_of(element, required=("signal", "value"))
    signal = one_of(fields, "signal", SIGNALS)
    return signal, number(fields, "value", LEAST_AIM, MOST_AIM[signal])


NODE_OUTPUTS: dict[str, Reader] = {
    "avoid": _avoid,
    "max_num_seqs": _max_num_seqs,
    "set_point": _set_point,
}
"""What a rule for nodes may answer, and who reads one element of it."""
