"""docs/reference/rules.md and reasons.md, from the rules that come with Sluice and app/decision/reasons.py."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.decision.reasons import CODES
from app.policy.bundle import Compiled
from app.policy.check import compile_policy
from app.policy.folder import Rule
from app.policy.kinds import KINDS
from app.policy.program import find_opa
from app.policy.reads import names_of
from app.settings import RULES
from docs.generate.markdown import code, page, table

RULES_INTRO = """
The rules that come with Sluice: those in `rego/rules/` are asked for requests, those in `rego/nodes/` for nodes. Each is a folder with the rule and its tests.
How to change one and how to add one: [write a rule](../how-to/write-a-rule.md).
`requirement` is the `row` of a rule's METADATA: what asked for it, from the [list of requirements](../explanation.md#requirements).
"""

REASONS_INTRO = """
A decision with `allow: false` has one or more `reasons`. `code` is stable; `message` is for people and may change.
Codes of limits carry `rule`, `bucket`, `dimension`, `limit` and `observed`, and `frees_in_ms` where that can be computed.
"""

_TEXT = re.compile(r'"([^"]*)"')
_FIELDS = ("code", "message", "status", "waivable")
_CONSTANT = re.compile(r"((?:^# [^\n]*\n)*)^(\w+) := (?:[0-9.]+|\{.*\})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Denial:
    """One way in which a rule refuses."""

    rule: str
    code: str
    message: str


def rules_page() -> str:
    """Every rule as its METADATA describes it, with the constants that an operator may want to change."""
    compiled = _compiled()
    return page("Rules", RULES_INTRO.strip(), *(_rule(rule, compiled.modules[rule.file]) for rule in _rules(compiled)))


def reasons_page() -> str:
    """Every reason code: those of Sluice itself and those that the shipped rules deny with."""
    own = table(("code", "meaning"), [(code(name), text) for name, text in CODES.items()])
    denies = table(("code", "rule", "message"), [(code(denial.code), denial.rule, denial.message) for denial in denials()])
    return page("Reason codes", REASONS_INTRO.strip(), "## From Sluice itself", own, "## From the rules that come with Sluice", denies)


def denials() -> list[Denial]:
    """Every code that the shipped rules deny with, once for each rule."""
    compiled = _compiled()
    found = [denial for rule in _rules(compiled) for denial in _denials(rule, compiled.modules[rule.file])]
    return list(dict.fromkeys(found))


def _compiled() -> Compiled:
    return asyncio.run(compile_policy(RULES, find_opa()))


def _rules(compiled: Compiled) -> list[Rule]:
    """Those for requests first, each kind by name."""
    by_kind = ([rule for group in compiled.groups_of(kind) for rule in group.rules] for kind in KINDS.values())
    return [rule for rules in by_kind for rule in sorted(rules, key=lambda rule: rule.name)]


def _denials(rule: Rule, text: str) -> Iterator[Denial]:
    """Code and message are the first two texts of what `deny` contains, whether it is an object or a call that makes one."""
    for chunk in text.split("deny contains ")[1:]:
        texts = [each for each in _TEXT.findall(chunk) if each not in _FIELDS]
        yield Denial(rule.name, texts[0], texts[1])


def _rule(rule: Rule, text: str) -> str:
    facts = [
        ("reads", ", ".join(map(code, names_of(rule.reads)))),
        ("answers", ", ".join(map(code, rule.outputs))),
        ("asked", _asked(rule)),
        ("may be absent", ", ".join(map(code, sorted(rule.optional))) or "nothing"),
        ("requirement", rule.row),
        ("file", code(f"rego/{rule.file}")),
    ]
    constants = list(_constants(text))
    tunable = table(("constant", "meaning"), [(code(name), meaning) for name, meaning in constants]) if constants else ""
    return "\n\n".join(filter(None, (f"## {rule.name}: {rule.title}", rule.description, table(("", ""), facts), tunable)))


def _asked(rule: Rule) -> str:
    if rule.mode == "off":
        return f"not before `policy.rules` has `{rule.name}: on`"
    per = f"once a {rule.kind.asked_per}"
    return f"{per}, when {code('.'.join(rule.when))} exists" if rule.when else per


def _constants(text: str) -> Iterator[tuple[str, str]]:
    """Named values and the comment above them; values of one comment stand below each other."""
    meaning = ""
    for comment, name in _CONSTANT.findall(text):
        meaning = comment.replace("# ", "") or meaning
        yield name, meaning
