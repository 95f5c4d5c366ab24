"""The policy in force: questions in, terms out; a warm question is answered from memory without waiting.

When down: what the memo holds is exact whether OPA lives or not. A miss takes the newest answer that differs in readings
alone, at half of its limits and with at least half shed; without one, and for sensitive models, PolicyUnavailable.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from app.clock import Clock
from app.observability.metrics import Metrics
from app.policy.batch import Batcher, Reply
from app.policy.bundle import Compiled, Group
from app.policy.memo import Entry, Memo
from app.policy.parts import parse
from app.policy.plan import Key, Plan, Plans, group_key, newest_key, shown, terms_key
from app.policy.question import EMPTY, Question, Section
from app.policy.shadow import ShadowWatch
from app.policy.terms import Part, Terms, combine, degrade
from app.policy.unanswered import PolicyUnavailable, PolicyUndefined, Unanswered

HOT_MS = 1000.0
"""A question used within it is answered for a new snapshot before that becomes current."""

MOST_WARMED = 64
"""Questions answered ahead of one change, hottest first; more would make live misses wait behind them."""

_CANDIDATES = 4
"""Offered bundles remembered until OPA runs one: the newest, the last good one, and some in between."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Generation:
    """One snapshot as questions see it: readings sections by model id; `payload` is the owner's, handed out with it."""

    number: int
    readings: Mapping[str, Section] = field(default_factory=dict)
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A group's answer to what it was shown, under one revision; `model` is whose readings they were."""

    group: Group
    shown: Question
    model: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest answer that differs from others in readings alone."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Settled:
    """Combined terms, and the keys of the answers that they are made of."""

    terms: Terms
    answers: tuple[Key, ...]


class Moved(PolicyUnavailable):
    """OPA runs another revision than the one asked under."""


class Policy:
    """Answers questions under the revision in force and the current generation of readings."""

    def __init__(
        self,
        batcher: Batcher,
        clock: Clock,
        metrics: Metrics,
        *,
        memo_bytes: int,
        publish_wait_ms: float,
        shadow_batcher: Batcher | None = None,
    ) -> None:
        self.generation = Generation(0)
        self._batcher = batcher
        self._clock = clock
        self._metrics = metrics
        self._publish_wait_ms = publish_wait_ms
        self._memo: Memo[Answer | Newest | Settled] = Memo(memo_bytes, metrics)
        self._plans: Plans | None = None
        self._candidates: dict[str, Plans] = {}
        self._shadow = ShadowWatch(shadow_batcher or batcher, clock, metrics)

    @property
    def revision(self) -> str | None:
        """Revision of the policy in force; None before the first."""
        return self._plans.revision if self._plans else None

    async def terms(self, question: Question, *, sensitive: bool, dimensions: frozenset[str]) -> Terms:
        """What this caller may do. Waits for OPA only where the memo lacks an answer. Raises Unanswered.

        `dimensions` are those that the tenant's quota names; `sensitive` models never get a substitute answer.
        """
        plans = self._plans
        if plans is None:
            raise self._counted(PolicyUnavailable("no policy is in force yet"))
        plan = plans.choose(question)
        now_ms = self._clock.monotonic_ms()
        settled = self._memo.use(terms_key(plans.revision, plan, question, dimensions), now_ms)
        if isinstance(settled, Settled):
            for key in settled.answers:
                self._memo.use(key, now_ms)
            for group in plan.groups:
                self._metrics.memo_lookups.labels(group.name, "hit").inc()
            terms = settled.terms
        else:
            terms = await self._settle(question, sensitive, dimensions)
        if plans.shadow:
            self._shadow.watch(plans, question, terms)
        return terms

    async def prefetch(self, questions: Iterable[Question]) -> None:
        """Ask for everything that the memo lacks of these, together."""
        plans = self._plans
        if plans is None:
            return
        now_ms = self._clock.monotonic_ms()
        flights = {
            self._fetch(plans.revision, group, question)
            for question in questions
            for group in plans.choose(question).groups
            if self._memo.use(group_key(plans.revision, group, question), now_ms) is None
        }
        if flights:
            await asyncio.wait(flights)

    async def publish(self, generation: Generation) -> None:
        """Make `generation` current once the hot questions are answered for it, or after the publish wait."""
        plans = self._plans
        if plans is not None:
            warmed = sorted(self._heirs(plans, generation), key=_uses, reverse=True)[:MOST_WARMED]
            await self._warm(
                [self._fetch(plans.revision, answer.group, question, entry) for entry, answer, question in warmed], self._publish_wait_ms
            )
        self.generation = generation
        self._metrics.snapshot_generation.set(generation.number)

    def offer(self, compiled: Compiled) -> None:
        """Remember a bundle that OPA may run from now on."""
        self._candidates.pop(compiled.revision, None)
        self._candidates[compiled.revision] = Plans(compiled)
        while len(self._candidates) > _CANDIDATES:
            self._candidates.pop(next(revision for revision in self._candidates if revision != self.revision))

    async def activate(self, compiled: Compiled) -> None:
        """Put the bundle that OPA runs now in force, once its hot questions are answered, or after the publish wait."""
        self.offer(compiled)
        if self._plans is not None and self._plans.revision != compiled.revision:
            fresh = self._candidates[compiled.revision]
            hot = [(entry, entry.value) for _, entry in self._hot() if isinstance(entry.value, Answer)]
            flights = []
            for entry, answer in sorted(hot, key=_uses, reverse=True)[:MOST_WARMED]:
                group = fresh.group(answer.group.name)
                if group is not None:
                    flights.append(self._fetch(compiled.revision, group, answer.shown, entry))
            await self._warm(flights, self._publish_wait_ms)
        self._move(compiled.revision)

    async def close(self) -> None:
        """Stop watching shadow rules."""
        await self._shadow.close()

    async def _settle(self, question: Question, sensitive: bool, dimensions: frozenset[str]) -> Terms:
        """Terms that are not in the memo, under whatever revision OPA runs."""
        try:
            while True:
                plans = self._plans
                assert plans is not None  # noqa: S101 - terms() looked, and a policy in force is only ever replaced
                plan = plans.choose(question)
                answers = await self._answers(plans, plan, question)
                if not any(isinstance(answer, Moved) for answer in answers):
                    return self._combined(plans, plan, question, answers, sensitive=sensitive, dimensions=dimensions)
                if self._plans is plans:
                    raise PolicyUnavailable("OPA runs a policy that this process did not offer")
        except Unanswered as failure:
            raise self._counted(failure) from None

    async def _answers(self, plans: Plans, plan: Plan, question: Question) -> list[Answer | Unanswered]:
        """One per group of the plan, in its order."""
        now_ms = self._clock.monotonic_ms()
        found: list[Any] = []
        for group in plan.groups:
            kept = self._memo.use(group_key(plans.revision, group, question), now_ms)
            self._metrics.memo_lookups.labels(group.name, "miss" if kept is None else "hit").inc()
            found.append(kept or self._fetch(plans.revision, group, question))
        flights = [each for each in found if isinstance(each, asyncio.Future)]
        if flights:
            await asyncio.wait(flights)
        return [each.result() if isinstance(each, asyncio.Future) else each for each in found]

    def _combined(
        self,
        plans: Plans,
        plan: Plan,
        question: Question,
        answers: list[Answer | Unanswered],
        *,
        sensitive: bool,
        dimensions: frozenset[str],
    ) -> Terms:
        parts: list[Part] = []
        degraded = False
        for group, answer in zip(plan.groups, answers, strict=True):
            usable = answer
            if isinstance(answer, PolicyUnavailable) and not sensitive:
                usable, degraded = self._substitute(plans, group, question) or answer, True
            if isinstance(usable, Unanswered):
                raise usable
            parts += usable.parts
        terms = combine(plans.revision, parts, dimensions)
        if degraded:
            self._metrics.policy_substitutes.inc()
            return degrade(terms)
        settled = Settled(terms, tuple(group_key(plans.revision, group, question) for group in plan.groups))
        key = terms_key(plans.revision, plan, question, dimensions)
        self._memo.put(key, settled, _TERMS_BYTES + _key_bytes(key), self._clock.monotonic_ms())
        return terms

    def _substitute(self, plans: Plans, group: Group, question: Question) -> Answer | None:
        if "readings" not in group.reads:
            return None
        kept = self._memo.use(newest_key(plans.revision, group, question, _model(question)), self._clock.monotonic_ms())
        return kept.answer if isinstance(kept, Newest) else None

    def _fetch(
        self, revision: str, group: Group, question: Question, heir_of: Entry[Any] | None = None
    ) -> asyncio.Future[Answer | Unanswered]:
        """Ask OPA; the answer is kept whether or not the caller is still there."""
        key, part = group_key(revision, group, question), shown(group, question)
        model = _model(question)

        def receive(reply: Reply | Unanswered) -> Answer | Unanswered:
            if isinstance(reply, Unanswered):
                return reply
            if reply.revision != revision:
                self._move(reply.revision)
                return Moved("OPA runs another revision")
            if reply.outputs is None:
                return PolicyUndefined("no answer", ",".join(rule.name for rule in group.rules))
            try:
                answer = Answer(group, part, model, tuple(parse(name, outputs) for name, outputs in reply.outputs.items()))
            except Unanswered as invalid:
                return invalid
            self._keep(key, answer, heir_of)
            return answer

        return self._batcher.ask(key, group, {section: getattr(part, section).value for section in group.reads}, receive)

    def _keep(self, key: Key, answer: Answer, heir_of: Entry[Any] | None) -> None:
        now_ms = self._clock.monotonic_ms()
        size = _ANSWER_BYTES * len(answer.parts) + _SHARE_OF_SECTIONS * _key_bytes(key)
        self._memo.put(key, answer, size, now_ms, heir_of=heir_of)
        if "readings" in answer.group.reads:
            newest = newest_key(key[0], answer.group, answer.shown, answer.model)
            self._memo.put(newest, Newest(answer), size, now_ms)

    def _hot(self) -> Iterator[tuple[Key, Entry[Any]]]:
        return self._memo.hot(self._clock.monotonic_ms() - HOT_MS)

    def _heirs(self, plans: Plans, generation: Generation) -> Iterator[tuple[Entry[Any], Answer, Question]]:
        """Hot answers whose readings change with `generation`, and the question that takes their place."""
        changed: dict[bytes, list[tuple[str, Section]]] = {}
        for model, section in generation.readings.items():
            old = self.generation.readings.get(model, EMPTY)
            if old.key != section.key:
                changed.setdefault(old.key, []).append((model, section))
        for key, entry in self._hot():
            answer = entry.value
            if not isinstance(answer, Answer) or key[0] != plans.revision or "readings" not in answer.group.reads:
                continue
            for model, section in changed.get(answer.shown.readings.key, ()):
                if "model" not in answer.group.reads or _model(answer.shown) == model:
                    yield entry, answer, replace(answer.shown, readings=section)

    async def _warm(self, flights: list[asyncio.Future[Any]], wait_ms: float) -> None:
        if flights:
            await asyncio.wait(flights, timeout=wait_ms / 1000)

    def _move(self, revision: str) -> None:
        """Put a revision in force at once, where it was offered."""
        plans = self._candidates.get(revision)
        if plans is not None and self.revision != revision:
            self._plans = plans
            self._metrics.policy_revision.info({"revision": revision})
            log.info("policy_in_force", revision=revision)

    def _counted(self, failure: Unanswered) -> Unanswered:
        self._metrics.policy_errors.labels(failure.code, failure.rule or "").inc()
        log.warning("policy_unanswered", code=failure.code, rule=failure.rule, detail=failure.message)
        return failure


_TERMS_BYTES = 2000
_ANSWER_BYTES = 1500
"""Estimates of one part and of combined terms, from tracemalloc over the rules that come with Sluice."""

_SHARE_OF_SECTIONS = 4
"""A section's value takes about three times its encoded bytes, and the key holds these once."""


def _key_bytes(key: Key) -> int:
    return sum(len(part) for part in key if isinstance(part, bytes))


def _model(question: Question) -> str:
    return str(question.model.value.get("id", ""))


def _uses(item: tuple[Any, ...]) -> int:
    entry: Entry[Any] = item[0]
    return entry.uses
