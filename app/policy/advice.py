"""Warnings of `sluice policy check`: rules whose answers the memo can hardly reuse, and fields whose absence opens something."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from app.policy.bundle import Compiled, Group
from app.policy.folder import Problems, Rule
from app.policy.kinds import KINDS, Kind
from app.policy.offline import evaluate, workspace
from app.policy.reads import Read

_PATH = "{} without {}"

_FEW = {"tenant": ("sla_class", "region", "zone"), "readings": ("live", "known", "frozen", "avoided"), "subject": ("roles",)}
"""Fields that have few values, however many tenants, snapshots or subjects there are."""


async def advise(compiled: Compiled, binary: Path) -> list[str]:
    """One line per warning, naming file and remedy."""
    return [*_memo_costs(compiled), *[each for kind in KINDS.values() for each in await _widenings(compiled, kind, binary)]]


def _memo_costs(compiled: Compiled) -> Iterator[str]:
    for group in compiled.groups:
        for rule in group.rules:
            many = {read.section: ", ".join(read.names) for read in rule.reads if _has_many_values(read)}
            if {"tenant", "readings"} <= set(many):
                yield (
                    f"{rule.file}: reads {many['tenant']} and {many['readings']}, so its answers are as many as tenants times readings; "
                    f"split it into one rule for each, or read fields that tenants share, such as {_few_of('tenant')}"
                )
            if "subject" in many and not rule.when:
                yield (
                    f"{rule.file}: reads {many['subject']}, so each subject needs an answer of its own; "
                    f"set custom.when to ask it only where it matters, or read {_few_of('subject')} alone"
                )


def _has_many_values(read: Read) -> bool:
    return not read.fields or not set(read.fields) <= set(_FEW.get(read.section, ()))


def _few_of(section: str) -> str:
    return " or ".join(f"{section}.{field}" for field in _FEW[section])


async def _widenings(compiled: Compiled, kind: Kind, binary: Path) -> list[str]:
    """Fields whose removal from an example question widens a rule's answer, by the author's leave excepted."""
    groups = compiled.groups_of(kind)
    questions: dict[str, Mapping[str, Any]] = dict(kind.examples)
    removed: dict[str, tuple[str, str]] = {}
    for name, question in kind.examples.items():
        for path in _paths(question, kind):
            less = _PATH.format(name, path)
            questions[less] = _without(question, path.split("."))
            removed[less] = (name, path)
    problems = Problems()
    async with workspace(binary, compiled.modules) as work:
        answers = await evaluate(work, compiled.modules, [(group, questions) for group in groups], problems)
    problems.refuse()
    found: dict[tuple[str, str], str] = {}
    for group in groups:
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
    if name not in answers or less not in answers:
        return
    for rule in group.rules:
        whole, lacking = answers[name][rule.name], answers[less][rule.name]
        changed = {output for output in rule.outputs if whole.get(output) != lacking.get(output)}
        if not changed:
            continue
        wider = group.kind.wider(group.kind.parse(rule.name, whole), group.kind.parse(rule.name, lacking))
        outputs = tuple(output for output in wider if output in changed)
        if outputs:
            yield rule, outputs


def _paths(question: Mapping[str, Any], kind: Kind) -> Iterator[str]:
    for section in kind.may_lack:
        for name, value in question[section].items():
            yield f"{section}.{name}"
            if isinstance(value, dict):
                yield from (f"{section}.{name}.{inner}" for inner in value)


def _without(question: Mapping[str, Any], path: list[str]) -> dict[str, Any]:
    head, *rest = path
    if not rest:
        return {name: value for name, value in question.items() if name != head}
    return {**question, head: _without(question[head], rest)}
