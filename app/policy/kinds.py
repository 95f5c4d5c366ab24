"""The kinds of rules: which folder holds them, what they are asked, what they answer. All else is one mechanism for both.

rules/ is asked once a request, and answers terms; nodes/ once a model, node and change of its readings, and answers what the
node may do.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.policy import node_answer, terms
from app.policy.elements import Reader
from app.policy.examples import EXAMPLES, NODE_EXAMPLES
from app.policy.node_parts import NODE_OUTPUTS, parse_node
from app.policy.parts import OUTPUTS, parse
from app.policy.schema import NODE_SECTION_SCHEMAS, SECTION_SCHEMAS


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of rules. Rules of all kinds share one space of names, one bundle and one revision."""

    folder: str
    """Where its rules lie in a policy folder; also the second part of their packages: sluice.<folder>.<name>."""
    asked_per: str
    """What one question of it is about."""
    prefix: str
    """Before names of its groups and of its files of schemas, so that they differ from those of other kinds."""
    sections: Mapping[str, Mapping[str, Any]]
    """The schema of each section of its question, in the order in which group names and memo keys list them."""
    outputs: Mapping[str, Reader]
    """What its rules may answer, and who reads one element of it."""
    examples: Mapping[str, Mapping[str, Any]]
    """Questions that every rule must answer in the right shape before a bundle is offered to OPA."""
    may_lack: tuple[str, ...]
    """Sections whose fields can be absent while all is configured."""
    parse: Callable[[str, Mapping[str, Any]], Any]
    """The checked part of a rule by its name and outputs. Raises PolicyInvalid."""
    wider: Callable[[Any, Any], tuple[str, ...]]
    """Outputs in which the second part allows more than the first: what the first would still tighten."""

    @property
    def layout(self) -> str:
        """Where a rule of this kind lies."""
        return f"{self.folder}/<name>/<name>.rego"


def _wider_terms(before: terms.Part, after: terms.Part) -> tuple[str, ...]:
    return terms.would_change(terms.combine("", [after], frozenset()), before)


def _wider_answer(before: node_answer.NodePart, after: node_answer.NodePart) -> tuple[str, ...]:
    return node_answer.would_change(node_answer.combine("", [after]), before)


REQUESTS = Kind(
    folder="rules",
    asked_per="request",
    prefix="",
    sections=SECTION_SCHEMAS,
    outputs=OUTPUTS,
    examples=EXAMPLES,
    may_lack=("readings", "subject", "request", "time"),  # what a tenant or model does not name is not asked for
    parse=parse,
    wider=_wider_terms,
)
"""Rules that are asked once a request."""

NODES = Kind(
    folder="nodes",
    asked_per="node and change of its readings",
    prefix="node_",
    sections=NODE_SECTION_SCHEMAS,
    outputs=NODE_OUTPUTS,
    examples=NODE_EXAMPLES,
    may_lack=("readings",),
    parse=parse_node,
    wider=_wider_answer,
)
"""Rules that are asked once a model, node and change of its readings."""

KINDS = {kind.folder: kind for kind in (REQUESTS, NODES)}
"""All kinds by folder."""
