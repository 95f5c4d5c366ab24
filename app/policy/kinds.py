"""The kinds of rules: which folder holds them, what they are asked, what they answer. All else is one mechanism for both.

rules/ is asked once a request, and answers terms; nodes/ once a model, node and change of its readings, and answers what the
node may do.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from app.policy import node_answer, terms
from app.policy.elements import Reader
from app.policy.examples import EXAMPLES, NODE_EXAMPLES
from app.policy.node_parts import NODE_OUTPUTS, parse_node
from app.policy.parts import OUTPUTS, parse
from app.policy.schema import NODE_SECTION_SCHEMAS, SECTION_SCHEMAS
from app.policy.unanswered import PolicyUndefined

Shown = Mapping[str, Any]
"""A combination as it is shown, ready for JSON."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of rules. Rules of all kinds share one space of names, one bundle and one revision."""

    folder: str
    """Where its rules lie in a policy folder; also the second part of their packages: sluice.<folder>.<name>."""
    asked_per: str
    """What one question of it is about."""
    required: bool
    """Whether a policy must have rules of it."""
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
    combined: str
    """What its parts combine to is called."""
    combine: Callable[[str, Iterable[Any], Mapping[str, Any]], Shown]
    """That, of the parts under a revision that answer a question."""
    elements: Callable[[Shown], Iterator[tuple[str, Any]]]
    """The same for people: each name with one element."""
    begins: Mapping[str, str]
    """For each section the field that a new rule begins with, where it names none itself; the first where it names no section."""
    refusal: tuple[str, Mapping[str, Any]]
    """The output by which a new rule refuses, and what that says beside code and message."""
    guide: str
    """Where authors read what its rules see."""

    @property
    def layout(self) -> str:
        """Where a rule of this kind lies."""
        return f"{self.folder}/<name>/<name>.rego"


def _wider_terms(before: terms.Part, after: terms.Part) -> tuple[str, ...]:
    return terms.would_change(terms.combine("", [after], frozenset()), before)


def _wider_answer(before: node_answer.NodePart, after: node_answer.NodePart) -> tuple[str, ...]:
    return node_answer.would_change(node_answer.combine("", [after]), before)


def _combined_terms(revision: str, parts: Iterable[terms.Part], question: Mapping[str, Any]) -> Shown:
    try:
        combined = asdict(terms.combine(revision, parts, frozenset(terms.QUOTAS) & set(question["tenant"])))
    except PolicyUndefined as undefined:
        return {"unanswered": undefined.code, "message": undefined.message}
    return {name: combined[name] for name in ("denies", "waived", "limits", "cost", "factors", "shed", "shed_rule", "obligations")}


def _elements_of_terms(shown: Shown) -> Iterator[tuple[str, Any]]:
    if "unanswered" in shown:
        yield "none", shown
        return
    for name, output in {"denies": "deny", "waived": "waived", "limits": "limit", "obligations": "oblige"}.items():
        yield from ((output, element) for element in shown[name])
    yield "cost", shown["cost"]
    yield from (("scale", {"dimension": dimension, "factor": factor}) for dimension, factor in shown["factors"])
    yield "shed", {"probability": shown["shed"], "rule": shown["shed_rule"]}


def _combined_answer(revision: str, parts: Iterable[node_answer.NodePart], _: Mapping[str, Any]) -> Shown:
    combined = asdict(node_answer.combine(revision, parts))
    return {name: combined[name] for name in ("avoid", "max_num_seqs_factor", "set_points")}


def _elements_of_answer(shown: Shown) -> Iterator[tuple[str, Any]]:
    yield from (("avoid", avoid) for avoid in shown["avoid"])
    yield "max_num_seqs_factor", shown["max_num_seqs_factor"]
    yield from (("set_point", {"signal": signal, "value": value}) for signal, value in shown["set_points"].items())


REQUESTS = Kind(
    folder="rules",
    asked_per="request",
    required=True,
    prefix="",
    sections=SECTION_SCHEMAS,
    outputs=OUTPUTS,
    examples=EXAMPLES,
    may_lack=("readings", "subject", "request", "time"),  # what a tenant or model does not name is not asked for
    parse=parse,
    wider=_wider_terms,
    combined="terms",
    combine=_combined_terms,
    elements=_elements_of_terms,
    begins={
        "request": "request.priority",
        "tenant": "tenant.sla_class",
        "model": "model.id",
        "readings": "readings.live",
        "subject": "subject.attributes.group",
        "time": "time.weekday",
    },
    refusal=("deny", {"status": 403}),
    guide="docs/how-to/write-a-rule.md#what-a-rule-sees",
)
"""Rules that are asked once a request."""

NODES = Kind(
    folder="nodes",
    asked_per="node and change of its readings",
    required=False,
    prefix="node_",
    sections=NODE_SECTION_SCHEMAS,
    outputs=NODE_OUTPUTS,
    examples=NODE_EXAMPLES,
    may_lack=("readings",),
    parse=parse_node,
    wider=_wider_answer,
    combined="answer",
    combine=_combined_answer,
    elements=_elements_of_answer,
    begins={"readings": "readings.waiting", "node": "node.kind", "model": "model.id"},
    refusal=("avoid", {}),
    guide="docs/how-to/write-a-rule.md#rules-for-nodes",
)
"""Rules that are asked once a model, node and change of its readings."""

KINDS = {kind.folder: kind for kind in (REQUESTS, NODES)}
"""All kinds by folder."""


def kind_of_question(question: Mapping[str, Any]) -> Kind:
    """The kind that a question is of, by its sections; the first where they say nothing."""
    return max(KINDS.values(), key=lambda kind: len(kind.sections.keys() & question.keys()))
