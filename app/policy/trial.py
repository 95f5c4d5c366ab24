"""Trying a question on a policy folder, without a server: each rule's part, and the terms that they combine to."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.errors import BadRequest
from app.policy.check import compile_policy
from app.policy.folder import Problems
from app.policy.offline import evaluate, workspace
from app.policy.parts import parse
from app.policy.question import SECTIONS
from app.policy.terms import DIMENSIONS, combine
from app.policy.unanswered import PolicyUndefined

_NAME = "question"


async def try_question(folder: Path, binary: Path, shadow: frozenset[str], question: Mapping[str, Any]) -> dict[str, Any]:
    """{revision, rules: {rule: outputs}, shadow: [rule], terms}. Raises PolicyRefused, Unanswered, BadRequest."""
    for section, value in question.items():
        if section not in SECTIONS or not isinstance(value, dict):
            raise BadRequest(
                f"{section} is no section with fields", hint=f"A question has the objects {', '.join(SECTIONS)}.", field=section
            )
    whole = {section: question.get(section, {}) for section in SECTIONS}
    compiled = await compile_policy(folder, binary, shadow)
    problems = Problems()
    async with workspace(binary, compiled.modules) as work:
        answers = await evaluate(work, compiled.modules, compiled.groups, {_NAME: whole}, problems)
    problems.refuse()
    rules: dict[str, Any] = {}
    parts = []
    for group in compiled.groups:
        for rule, outputs in answers.get(group.name, {}).get(_NAME, {}).items():
            rules[rule] = outputs
            if not group.shadow:
                parts.append(parse(rule, outputs))
    in_shadow = [rule.name for group in compiled.groups if group.shadow for rule in group.rules]
    return {"revision": compiled.revision, "rules": rules, "shadow": in_shadow, "terms": _terms(compiled.revision, parts, whole["tenant"])}


def _terms(revision: str, parts: list[Any], tenant: Mapping[str, Any]) -> dict[str, Any]:
    try:
        terms = asdict(combine(revision, parts, frozenset(DIMENSIONS) & set(tenant)))
    except PolicyUndefined as undefined:
        return {"unanswered": undefined.code, "message": undefined.message}
    return {name: terms[name] for name in ("denies", "waived", "limits", "cost", "factors", "shed", "shed_rule", "obligations")}
