"""Trying a question on a policy folder, without a server: each rule's part, and what they combine to."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from app.policy.bundle import Compiled
from app.policy.check import compile_policy
from app.policy.folder import Problems
from app.policy.kinds import KINDS, Kind, kind_of_question
from app.policy.modes import Modes
from app.policy.offline import evaluate, workspace
from app.policy.schema import check_question
from app.setting_sections import RuleMode

_NAME = "question"
_WORD = re.compile(r"[\w.-]+")


async def try_question(folder: Path, binary: Path, modes: Modes, question: Mapping[str, Any]) -> dict[str, Any]:
    """{revision, rules: {rule: outputs}, shadow: [rule], off: [rule]}, and what parts combine to by the name of that (Kind.combined).

    Raises PolicyRefused, Unanswered, BadRequest.
    """
    kind = kind_of_question(question)
    check_question(question, kind.sections, kind.prefix)
    whole = {section: question.get(section, {}) for section in kind.sections}
    compiled = await compile_policy(folder, binary, modes)
    asked = [group for group in compiled.groups_of(kind) if group.mode != "off"]
    problems = Problems()
    async with workspace(binary, compiled.modules) as work:
        answers = await evaluate(work, compiled.modules, [(group, {_NAME: whole}) for group in asked], problems)
    problems.refuse()
    rules: dict[str, Any] = {}
    parts = []
    for group in asked:
        for rule, outputs in answers.get(group.name, {}).get(_NAME, {}).items():
            rules[rule] = outputs
            if group.mode == "on":
                parts.append(kind.parse(rule, outputs))
    return {
        "revision": compiled.revision,
        "rules": rules,
        "shadow": _names(compiled, kind, "shadow"),
        "off": _names(compiled, kind, "off"),
        kind.combined: kind.combine(compiled.revision, parts, whole),
    }


def _names(compiled: Compiled, kind: Kind, mode: RuleMode) -> list[str]:
    """Rules of a kind that are in this mode."""
    return [rule.name for group in compiled.groups_of(kind) if group.mode == mode for rule in group.rules]


def lines(trial: Mapping[str, Any]) -> Iterator[str]:
    """What `try_question` found, for people: a line for each element of each rule and of what they combine to."""
    for rule, outputs in trial["rules"].items():
        yield f"{rule}{' (shadow)' if rule in trial['shadow'] else ''}"
        yield from [_line(output, element) for output, elements in outputs.items() for element in elements] or ["  nothing"]
    yield from (f"{rule} (off)" for rule in trial["off"])
    for kind in KINDS.values():
        if kind.combined in trial:
            yield kind.combined
            yield from (_line(name, element) for name, element in kind.elements(trial[kind.combined]))


def _line(output: str, element: Any) -> str:
    """One element, such as `deny: code=unknown_tenant, message="the tenant has no quota", status=403`."""
    if not isinstance(element, dict):
        return f"  {output}: {_value(element)}"
    return f"  {output}: {', '.join(f'{name}={_value(value)}' for name, value in element.items() if value not in (None, ()))}"


def _value(value: Any) -> str:
    if isinstance(value, str) and _WORD.fullmatch(value):
        return value
    whole = isinstance(value, float) and value.is_integer()
    return json.dumps(int(value) if whole else value, ensure_ascii=False)
