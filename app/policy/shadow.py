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
from app.policy.plan import Plans, group_key, holds, shown
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
class _Seen:
    plans: Plans
    question: Question
    terms: Terms


class ShadowWatch:
    """Compares the terms that were given with what they would be if shadow rules counted."""

    def __init__(self, batcher: Batcher, clock: Clock, metrics: Metrics) -> None:
        self._batcher = batcher
        self._clock = clock
        self._metrics = metrics
        self._waiting: deque[_Seen] = deque(maxlen=MOST_WAITING)
        self._answers: dict[tuple[object, ...], tuple[Part, ...]] = {}
        self._paused_until_ms: dict[str, float] = {}
        self._task: asyncio.Task[None] | None = None

    def watch(self, plans: Plans, question: Question, terms: Terms) -> None:
        """Note a decision; it is looked at when the loop has time."""
        self._waiting.append(_Seen(plans, question, terms))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    async def close(self) -> None:
        """Stop watching."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._batcher.close()

    async def _work(self) -> None:
        while self._waiting:
            seen = self._waiting.popleft()
            for group in seen.plans.shadow:
                if holds(group, seen.question) and self._clock.monotonic_ms() >= self._paused_until_ms.get(group.name, 0.0):
                    await self._look(group, seen)

    async def _look(self, group: Group, seen: _Seen) -> None:
        try:
            parts = await self._parts(group, seen)
        except Unanswered as failure:
            self._paused_until_ms[group.name] = self._clock.monotonic_ms() + PAUSE_MS
            log.warning("shadow_rule_failed", rule=failure.rule or group.name, code=failure.code, detail=failure.message)
            return
        for part in parts:
            changes = would_change(seen.terms, part)
            if changes:
                self._metrics.shadow_overrides.labels(part.rule).inc()
                log.info("shadow_override", rule=part.rule, changes=changes, tenant=seen.question.tenant.value.get("id"))

    async def _parts(self, group: Group, seen: _Seen) -> tuple[Part, ...]:
        key = group_key(seen.plans.revision, group, seen.question)
        if key in self._answers:
            return self._answers[key]
        asked = shown(group, seen.question)
        values = {section: getattr(asked, section).value for section in group.reads}
        flight = self._batcher.ask(key, group, values, _as_it_is)
        await asyncio.wait([flight])
        reply = flight.result()
        if isinstance(reply, Unanswered):
            raise reply
        if reply.outputs is None or reply.revision != seen.plans.revision:
            raise PolicyUndefined("no answer", ",".join(rule.name for rule in group.rules))
        parts = tuple(parse(name, outputs) for name, outputs in reply.outputs.items())
        if len(self._answers) >= MOST_KEPT:
            self._answers.clear()
        self._answers[key] = parts
        return parts


def _as_it_is(reply: Reply | Unanswered) -> Reply | Unanswered:
    return reply
