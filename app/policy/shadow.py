"""Shadow rules: asked after the answer, only recorded. They can neither break traffic nor slow it.

When down: nothing is recorded; traffic does not notice.
"""

import asyncio
from collections import deque
from dataclasses import dataclass

import structlog

from app.clock import Clock
from app.observability.metrics import Metrics
from app.policy.batch import Batcher, Reply
from app.policy.bundle import Group
from app.policy.parts import parse
from app.policy.plan import Plans, group_key, holds, shown, values_of
from app.policy.question import Question
from app.policy.terms import Part, Terms, would_change
from app.policy.unanswered import PolicyUndefined, Unanswered

MOST_WAITING = 256
"""Decisions that wait to be watched; the oldest are left out when traffic is faster than the watch."""

MOST_KEPT = 2048
"""Answers of shadow rules kept; all are dropped together when there are more."""

PAUSE_MS = 1000.0
"""How long a group that failed is left alone, so that a shadow rule which loops costs OPA little."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Judged:
    """What one shadow rule answers to a question and which outputs of the terms it would change, or why it gives no answer."""

    rule: str
    part: Part | None = None
    changes: tuple[str, ...] = ()
    failure: Unanswered | None = None


@dataclass(frozen=True, slots=True)
class _Seen:
    plans: Plans
    question: Question
    terms: Terms
    decision_id: str


@dataclass(frozen=True, slots=True)
class _Paused:
    until_ms: float
    failure: Unanswered


class ShadowWatch:
    """Compares the terms that were given with what they would be if shadow rules counted."""

    def __init__(self, batcher: Batcher, clock: Clock, metrics: Metrics) -> None:
        self._batcher = batcher
        self._clock = clock
        self._metrics = metrics
        self._waiting: deque[_Seen] = deque(maxlen=MOST_WAITING)
        self._answers: dict[tuple[object, ...], tuple[Part, ...]] = {}
        self._paused: dict[str, _Paused] = {}
        self._task: asyncio.Task[None] | None = None

    def watch(self, plans: Plans, question: Question, terms: Terms, decision_id: str) -> None:
        """Note a decision; it is looked at when the loop has time."""
        self._waiting.append(_Seen(plans, question, terms, decision_id))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    async def judge(self, plans: Plans, question: Question, terms: Terms) -> list[Judged]:
        """Each shadow rule's part beside `terms`; asked now, where the answer is not there yet."""
        groups = [group for group in plans.shadow if holds(group, question)]
        return [judged for group in groups for judged in await self._judge(group, plans, question, terms)]

    async def close(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._batcher.close()

    async def _work(self) -> None:
        while self._waiting:
            seen = self._waiting.popleft()
            for judged in await self.judge(seen.plans, seen.question, seen.terms):
                if judged.part is not None and judged.changes:
                    self._record(seen, judged.part, judged.changes)

    def _record(self, seen: _Seen, part: Part, changes: tuple[str, ...]) -> None:
        self._metrics.shadow_overrides.labels(self._metrics.rule(part.rule)).inc()
        answered = part.answered
        log.info(
            "shadow_override",
            rule=part.rule,
            decision_id=seen.decision_id,
            tenant=seen.question.tenant.value.get("id"),
            model=seen.question.model.value.get("id"),
            changes={output: answered[output] for output in changes},
        )

    async def _judge(self, group: Group, plans: Plans, question: Question, terms: Terms) -> list[Judged]:
        now_ms = self._clock.monotonic_ms()
        paused = self._paused.get(group.name)
        if paused is None or now_ms >= paused.until_ms:
            try:
                parts = await self._parts(group, plans, question)
                return [Judged(part.rule, part, would_change(terms, part)) for part in parts]
            except Unanswered as failure:
                paused = self._paused[group.name] = _Paused(now_ms + PAUSE_MS, failure)
                log.warning("shadow_rule_failed", rule=failure.rule or group.name, code=failure.code, detail=failure.message)
        return [Judged(rule.name, failure=paused.failure) for rule in group.rules]

    async def _parts(self, group: Group, plans: Plans, question: Question) -> tuple[Part, ...]:
        key = group_key(plans.revision, group, question)
        if key in self._answers:
            return self._answers[key]
        asked = shown(group, question)
        flight = self._batcher.ask(key, group, values_of(asked, group), _as_it_is)
        await asyncio.wait([flight])
        reply = flight.result()
        if isinstance(reply, Unanswered):
            raise reply
        if reply.outputs is None or reply.revision != plans.revision:
            raise PolicyUndefined("no answer", ",".join(rule.name for rule in group.rules))
        parts = tuple(parse(name, outputs) for name, outputs in reply.outputs.items())
        if len(self._answers) >= MOST_KEPT:
            self._answers.clear()
        self._answers[key] = parts
        return parts


def _as_it_is(reply: Reply | Unanswered) -> Reply | Unanswered:
    return reply
