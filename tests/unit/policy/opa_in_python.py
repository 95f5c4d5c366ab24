"""An OPA for unit tests: rules are Python functions of what their group is shown."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from app.clock import ManualClock
from app.observability.metrics import Metrics
from app.policy.batch import Batcher
from app.policy.bundle import Compiled, group_rules
from app.policy.folder import Rule
from app.policy.kinds import REQUESTS, Kind
from app.policy.modes import NO_MODES
from app.policy.opa import CallFailed, Failed
from app.policy.policy import Policy
from app.policy.reads import Read, folded
from app.setting_sections import RuleMode

RuleFunction = Callable[[Mapping[str, Any]], dict[str, list[Any]] | CallFailed | None]


def rule(name: str, reads: tuple[str, ...], *, when: tuple[str, ...] = (), mode: RuleMode = "on", kind: Kind = REQUESTS) -> Rule:
    """A rule as METADATA would describe it; `reads` are names as they stand there."""
    read = folded(Read(section, tuple(field)) for section, *field in (each.split(".") for each in reads))
    return Rule(name, name, name, "", read, when, mode, frozenset(), tuple(kind.outputs), f"{kind.folder}/{name}/{name}.rego", kind=kind)


class OpaInPython:
    """Answers like the entry module. `down` fails every call; `calls` records what travelled together."""

    def __init__(self, functions: Mapping[str, RuleFunction], rules: list[Rule], revision: str = "r1") -> None:
        self.functions = dict(functions)
        self.revision = revision
        self.groups = group_rules(rules, NO_MODES)
        self.calls: list[list[tuple[str, dict[str, Any]]]] = []
        self.down: CallFailed | None = None
        self.healthy = True
        self.gate: asyncio.Event | None = None

    @property
    def compiled(self) -> Compiled:
        return Compiled(self.revision, self.groups, {}, b"")

    async def ask(self, items: dict[str, dict[str, Any]], timeout_ms: float) -> tuple[str, dict[str, Any]]:
        self.calls.append([(group, question) for group, questions in items.items() for question in questions.values()])
        await asyncio.sleep(0)
        if self.gate:
            await self.gate.wait()
        if self.down:
            raise self.down
        answers: dict[str, Any] = {}
        for group in self.groups:
            for index, question in items.get(group.name, {}).items():
                outputs = {each.name: self.functions[each.name](question) for each in group.rules}
                for output in outputs.values():
                    if isinstance(output, CallFailed):
                        raise output
                if None not in outputs.values():
                    answers.setdefault(group.name, {})[index] = outputs
        return self.revision, answers

    async def alive(self, timeout_ms: float) -> bool:
        return self.healthy


def conflict(name: str) -> Failed:
    return Failed("two values", name)


async def policy_on(opa: OpaInPython, clock: ManualClock, *, memo_bytes: int = 1 << 20, calls: int = 2) -> tuple[Policy, Metrics]:
    """A policy in force on `opa`."""
    metrics = Metrics()
    policy = Policy(Batcher(opa, clock, metrics, timeout_ms=50, calls=calls), clock, metrics, memo_bytes=memo_bytes, publish_wait_ms=25)
    await policy.activate(opa.compiled)
    return policy, metrics
