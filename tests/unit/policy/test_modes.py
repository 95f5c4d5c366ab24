"""Which rules are asked."""

import pytest

from app.errors import PolicyRefused
from app.policy.bundle import group_rules, modules_of
from app.policy.folder import Problems
from app.policy.modes import NO_MODES, Modes, check_names, mode_of
from app.setting_sections import RuleMode
from tests.unit.policy.opa_in_python import rule


@pytest.mark.parametrize("said", ["on", "off", "shadow"])
@pytest.mark.parametrize("own", ["on", "off", "shadow"])
def test_the_setting_has_the_last_word(own: RuleMode, said: RuleMode) -> None:
    """A rule is in the mode of its METADATA, unless the setting names another."""
    latency = rule("latency", ("tenant",), mode=own)

    assert (mode_of(latency, NO_MODES), mode_of(latency, {"latency": said}), mode_of(latency, {"other": said})) == (own, said, own)


def test_rules_of_different_modes_are_groups_of_their_own() -> None:
    """What is in force, in shadow and off is never asked together, though it reads the same."""
    rules = [rule(name, ("tenant",)) for name in ("a", "b", "c")]
    groups = group_rules(rules, {"b": "shadow", "c": "off"})

    assert [(group.name, group.mode, [each.name for each in group.rules]) for group in groups] == [
        ("tenant", "on", ["a"]),
        ("tenant_off", "off", ["c"]),
        ("tenant_shadow", "shadow", ["b"]),
    ]


def test_a_bundle_asks_no_rule_that_is_off_and_every_mode_has_its_revision() -> None:
    """The same texts under other modes are another revision, so what is remembered under one is never used under the other."""
    rules, texts = [rule("a", ("tenant",)), rule("b", ("tenant",))], {"rules/a/a.rego": "a", "rules/b/b.rego": "b"}
    modes: list[Modes] = [{}, {"b": "shadow"}, {"b": "off"}, {"a": "off"}, {"a": "off", "b": "off"}]
    made = [modules_of(texts, group_rules(rules, mode)) for mode in modes]

    assert len({revision for revision, _ in made}) == len(modes)
    assert [("rules.a.deny" in modules["entry.rego"], "rules.b.deny" in modules["entry.rego"]) for _, modules in made] == [
        (True, True),
        (True, True),
        (True, False),
        (False, True),
        (False, False),
    ]
    assert modules_of(texts, group_rules(rules, {"a": "on"})) == made[0]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("latncy", "setting policy.rules: no rule is called latncy; is latency meant?"),
        ("weather", "setting policy.rules: no rule is called weather; take the name out, or add the rule"),
    ],
)
def test_a_name_that_no_rule_has_is_refused_with_the_nearest_one(name: str, says: str) -> None:
    """A rule that is misspelt in the setting does not stay as it is in silence."""
    problems = Problems()
    check_names({name: "off", "latency": "on"}, ["latency", "pressure"], problems)

    with pytest.raises(PolicyRefused) as refused:
        problems.refuse()
    assert refused.value.message == says
