"""Trying a question on a policy folder, without a server: each rule's part, and what they combine to."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.policy import node_answer
from app.policy.bundle import Compiled
from app.policy.check import compile_policy
from app.policy.folder import Problems
from app.policy.kinds import NODES, REQUESTS, Kind
from app.policy.modes import Modes
from app.policy.offline import evaluate, workspace
from app.policy.schema import check_question
from app.policy.terms import QUOTAS, combine
from app.policy.unanswered import PolicyUndefined
from app.settings import RuleMode

_NAME = "question"
_WORD = re.compile(r"[\w.-]+")
_OUTPUTS = {"denies": "deny", "waived": "waived", "limits": "limit", "obligations": "oblige"}
"""Combined elements, and the name of the output that they come from."""


async def try_question(folder: Path, binary: Path, modes: Modes, question: Mapping[str, Any]) -> dict[str, Any]:
    """{revision, rules: {rule: outputs}, shadow: [rule], off: [rule]}, and `terms`, or `answer` where `question` has a `node`.

    Raises PolicyRefused, Unanswered, BadRequest.
    """
    kind = NODES if "node" in question else REQUESTS
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
    combined = _answer(parts) if kind is NODES else _terms(compiled.revision, parts, whole["tenant"])
    return {
        "revision": compiled.revision,
        "rules": rules,
        "shadow": _names(compiled, kind, "shadow"),
        "off": _names(compiled, kind, "off"),
        "answer" if kind is NODES else "terms": combined,
    }


def _names(compiled: Compiled, kind: Kind, mode: RuleMode) -> list[str]:
    """Rules of a kind that are in this mode."""
    return [rule.name for group in compiled.groups_of(kind) if group.mode == mode for rule in group.rules]


def _answer(parts: list[Any]) -> dict[str, Any]:
    answer = asdict(node_answer.combine("", parts))
    return {name: answer[name] for name in ("avoid", "max_num_seqs_factor", "set_points")}


def _terms(revision: str, parts: list[Any], tenant: Mapping[str, Any]) -> dict[str, Any]:
    try:
        terms = asdict(combine(revision, parts, frozenset(QUOTAS) & set(tenant)))
    except PolicyUndefined as undefined:
        return {"unanswered": undefined.code, "message": undefined.message}
    return {name: terms[name] for name in ("denies", "waived", "limits", "cost", "factors", "shed", "shed_rule", "obligations")}


def lines(trial: Mapping[str, Any]) -> Iterator[str]:
    """What `try_question` found, for people: a line for each element of each rule and of what they combine to."""
    for rule, outputs in trial["rules"].items():
        yield f"{rule}{' (shadow)' if rule in trial['shadow'] else ''}"
        yield from [_line(output, element) for output, elements in outputs.items() for element in elements] or ["  nothing"]
    yield from (f"{rule} (off)" for rule in trial["off"])
    yield from _lines_of_answer(trial["answer"]) if "answer" in trial else _lines_of_terms(trial["terms"])


def _lines_of_answer(answer: Mapping[str, Any]) -> Iterator[str]:
    yield "answer"
    yield from (_line("avoid", avoid) for avoid in answer["avoid"])
    yield _line("max_num_seqs_factor", answer["max_num_seqs_factor"])
    yield from (_line("set_point", {"signal": signal, "value": value}) for signal, value in answer["set_points"].items())


def _lines_of_terms(terms: Mapping[str, Any]) -> Iterator[str]:
    yield "terms"
    if "unanswered" in terms:
        yield f"  none: {terms['unanswered']}, {terms['message']}"
        return
    for name, output in _OUTPUTS.items():
        yield from (_line(output, element) for element in terms[name])
    yield _line("cost", terms["cost"])
    yield from (_line("scale", {"dimension": dimension, "factor": factor}) for dimension, factor in terms["factors"])
    yield _line("shed", {"probability": terms["shed"], "rule": terms["shed_rule"]})


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
