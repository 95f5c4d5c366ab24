"""Warnings of `sluice policy check`: rules whose answers the memo can hardly reuse, and fields whose absence opens something."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from app.policy.bundle import Compiled, Group
from app.policy.examples import EXAMPLES
from app.policy.folder import Problems, Rule
from app.policy.offline import evaluate, workspace
from app.policy.parts import parse
from app.policy.terms import Part, combine, would_change

_MAY_LACK = ("readings", "subject", "request", "time")
"""Sections whose fields can be absent while all is configured; what a tenant or model does not name is not asked for."""

_PATH = "{} without {}"


async def advise(compiled: Compiled, binary: Path) -> list[str]:
    """One line per warning, naming file and remedy."""
    return [*_memo_costs(compiled), *await _widenings(compiled, binary)]


def _memo_costs(compiled: Compiled) -> Iterator[str]:
    for group in compiled.groups:
        for rule in group.rules:
            if {"tenant", "readings"} <= set(rule.reads):
                yield (
                    f"{rule.file}: reads tenant and readings, so its answers are as many as tenants times readings; "
                    "split it into one rule for each"
                )
            if "subject" in rule.reads and not rule.when:
                yield f"{rule.file}: reads subject, so each subject needs an answer of its own; set custom.when to ask it only where it matters"


async def _widenings(compiled: Compiled, binary: Path) -> list[str]:
    """Fields whose removal from an example question widens a rule's answer, by the author's leave excepted."""
    questions: dict[str, dict[str, Any]] = dict(EXAMPLES)
    removed: dict[str, tuple[str, str]] = {}
    for name, question in EXAMPLES.items():
        for path in _paths(question):
            less = _PATH.format(name, path)
            questions[less] = _without(question, path.split("."))
            removed[less] = (name, path)
    problems = Problems()
    async with workspace(binary, compiled.modules) as work:
        answers = await evaluate(work, compiled.modules, compiled.groups, questions, problems)
    problems.refuse()
    found: dict[tuple[str, str], str] = {}
    for group in compiled.groups:
        for less, (name, path) in removed.items():
            for rule, outputs in _widened(group, answers.get(group.name, {}), name, less):
                if path not in rule.optional:
                    found.setdefault(
                        (rule.name, path),
                        f"{rule.file}: without {path} its {', '.join(outputs)} is wider (example {name!r}); "
                        f"answer for its absence, or name it in METADATA custom.optional",
                    )
    return [found[key] for key in sorted(found)]


def _widened(group: Group, answers: Mapping[str, Any], name: str, less: str) -> Iterator[tuple[Rule, tuple[str, ...]]]:
    for rule in group.rules:
        if name in answers and less in answers and answers[name] != answers[less]:
            before, after = (parse(rule.name, answers[question][rule.name]) for question in (name, less))
            outputs = wider(before, after)
            if outputs:
                yield rule, outputs


def wider(before: Part, after: Part) -> tuple[str, ...]:
    """Outputs in which `after` allows more than `before`: what `before` would still tighten."""
    return would_change(combine("", [after], frozenset()), before)


def _paths(question: Mapping[str, Any]) -> Iterator[str]:
    for section in _MAY_LACK:
        for name, value in question[section].items():
            yield f"{section}.{name}"
            if isinstance(value, dict):
                yield from (f"{section}.{name}.{inner}" for inner in value)


def _without(question: Mapping[str, Any], path: list[str]) -> dict[str, Any]:
    head, *rest = path
    if not rest:
        return {name: value for name, value in question.items() if name != head}
    return {**question, head: _without(question[head], rest)}
