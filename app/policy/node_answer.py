"""What rules for nodes say of one model on one node, combined from what each rule contributes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from app.policy.unanswered import Unanswered

SIGNALS = ("kv", "waiting", "iteration_ms")
"""What the in-flight controller (A3) can aim at: KV cache in use 0..1, waiting requests, mean time of one step."""


@dataclass(frozen=True, slots=True)
class Avoid:
    """Why new requests stay away from the node."""

    rule: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class NodePart:
    """What one rule contributes, checked (policy/node_parts.py makes it). `outputs` is what OPA gave, as JSON."""

    rule: str
    avoids: tuple[Avoid, ...] = ()
    max_num_seqs_factors: tuple[float, ...] = ()
    set_points: tuple[tuple[str, float], ...] = ()
    outputs: bytes = b"{}"

    @property
    def answered(self) -> dict[str, list[Any]]:
        """Its outputs as OPA gave them."""
        return orjson.loads(self.outputs)  # type: ignore[no-any-return]  # node_parts.py encoded it


Place = tuple[str, str]
"""Name of a node and id of a model on it."""

MOST_PLACES = 4096
"""Places of which anything is remembered; those asked about longest ago leave first."""

Outcome = tuple[NodePart | Unanswered, ...]
"""Of a group of rules, in their order: each one's part, or why it has none."""


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """The combination, under one revision."""

    avoid: tuple[Avoid, ...] = ()
    """Any of them keeps new requests away; ordered by rule, code and message."""
    max_num_seqs_factor: float = 1.0
    """Factor on the node's max_num_seqs, 0..1: the least that a rule answers."""
    set_points: Mapping[str, float] = field(default_factory=dict)
    """The least aim per signal; a signal that no rule names is absent."""
    revision: str = ""
    stale: tuple[str, ...] = ()
    """Rules that gave no answer this time: their last one for this model and node stands in, where there is one."""


def combine(revision: str, parts: Iterable[NodePart], stale: Iterable[str] = ()) -> NodeAnswer:
    """The answer for one model on one node; the order of `parts` does not matter."""
    parts = list(parts)
    avoids = {avoid for part in parts for avoid in part.avoids}
    aims = [aim for part in parts for aim in part.set_points]
    return NodeAnswer(
        avoid=tuple(sorted(avoids, key=lambda avoid: (avoid.rule, avoid.code, avoid.message))),
        max_num_seqs_factor=min((factor for part in parts for factor in part.max_num_seqs_factors), default=1.0),
        set_points={signal: min(value for name, value in aims if name == signal) for signal in sorted({name for name, _ in aims})},
        revision=revision,
        stale=tuple(sorted(stale)),
    )


def would_change(answer: NodeAnswer, part: NodePart) -> tuple[str, ...]:
    """What one more part would change of `answer`, by output name: how a shadow rule is judged."""
    changes = {
        "avoid": bool(part.avoids) and not answer.avoid,
        "max_num_seqs": any(factor < answer.max_num_seqs_factor for factor in part.max_num_seqs_factors),
        "set_point": any(value < answer.set_points.get(signal, float("inf")) for signal, value in part.set_points),
    }
    return tuple(output for output, changed in changes.items() if changed)
