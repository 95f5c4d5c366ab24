"""Which rules are asked: METADATA says it, and the setting policy.rules has the last word."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches

from app.policy.folder import Problems, Rule
from app.setting_sections import RuleMode

Modes = Mapping[str, RuleMode]
"""Modes by name of rule, as the setting policy.rules gives them."""

NO_MODES: Modes = {}
"""METADATA alone decides."""


def mode_of(rule: Rule, modes: Modes) -> RuleMode:
    """Whether the rule is in force (`on`), only recorded (`shadow`), or checked and not asked (`off`)."""
    return modes.get(rule.name, rule.mode)


def check_names(modes: Modes, rules: Collection[str], problems: Problems) -> None:
    """Note each name in the setting that no rule has: a rule that is misspelt there would stay as it is in silence."""
    for name in modes:
        if name not in rules:
            near = get_close_matches(name, rules, n=1)
            problems.add("setting policy.rules", None, f"no rule is called {name}; {_remedy(near)}")


def _remedy(near: list[str]) -> str:
    return f"is {near[0]} meant?" if near else "take the name out, or add the rule"
