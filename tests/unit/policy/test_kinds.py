"""The kinds of rules."""

from typing import Any

import pytest

from app.policy.kinds import KINDS, NODES, REQUESTS, Kind, kind_of_question
from app.policy.node_parts import parse_node
from app.policy.parts import parse


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        *((example, kind) for kind in KINDS.values() for example in kind.examples.values()),
        ({"node": {"name": "a"}}, NODES),
        ({"tenant": {"id": "a"}}, REQUESTS),
        ({"readings": {}}, REQUESTS),
        ({"wishes": {}}, REQUESTS),
        ({}, REQUESTS),
    ],
)
def test_the_kind_of_a_question_is_told_by_its_sections(question: dict[str, Any], kind: Kind) -> None:
    """A question is of the kind that has most of its sections, and about a request where they don't say."""
    assert kind_of_question(question) is kind


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_new_rule_can_begin_in_every_section(kind: Kind) -> None:
    """Each section has a field that a new rule begins with, which lies in it."""
    assert {section: field.split(".")[0] for section, field in kind.begins.items()} == {section: section for section in kind.sections}


def test_terms_are_shown_element_by_element() -> None:
    """People read the elements of a combination under the names by which rules answer them."""
    part = parse("a", {"deny": [{"code": "shut", "message": "not now", "status": 403}], "shed": [0.5]})
    shown = REQUESTS.combine("r1", [part], {"tenant": {"qps": 5}})

    assert [name for name, _ in REQUESTS.elements(shown)] == ["deny", "cost", "shed"]
    assert dict(REQUESTS.elements(shown))["shed"] == {"probability": 0.5, "rule": "a"}


def test_a_quota_that_no_rule_limits_is_shown_as_unanswered() -> None:
    """Where terms would leave a dimension of the quota open there are none."""
    shown = REQUESTS.combine("r1", [], {"tenant": {"qps": 5}})

    told = {"unanswered": "policy_undefined", "message": "no rule limits qps, which the quota names"}
    assert list(REQUESTS.elements(shown)) == [("none", told)]


def test_answers_are_shown_element_by_element() -> None:
    """What rules for nodes say of one is shown reason by reason, with the factor, and aim by aim."""
    part = parse_node("a", {"avoid": [{"code": "full", "message": "m"}], "set_point": [{"signal": "kv", "value": 0.8}]})

    assert list(NODES.elements(NODES.combine("r1", [part], {}))) == [
        ("avoid", {"rule": "a", "code": "full", "message": "m"}),
        ("max_num_seqs_factor", 1.0),
        ("set_point", {"signal": "kv", "value": 0.8}),
    ]
