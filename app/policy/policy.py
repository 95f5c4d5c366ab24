"""The policy in force: questions in, terms out; a warm question is answered from memory without waiting.

When down: what the memo holds is exact whether OPA lives or not. A miss takes the newest answer that differs in readings
alone, at half of its limits and with at least half shed; without one, and for sensitive models, PolicyUnavailable.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import structlog

from app.clock import Clock
from app.observability.metrics import Metrics
from app.policy.answers import Answer, Answers, model_of
from app.policy.batch import Batcher, Reply
from app.policy.bundle import Compiled, Group
from app.policy.failures import Failures
from app.policy.memo import Entry
from app.policy.parts import parse
from app.policy.plan import Plan, Plans, group_key, shown, values_of
from app.policy.question import EMPTY, Question, Section
from app.policy.reads import Read
from app.policy.shadow import Judged, ShadowWatch
from app.policy.terms import Part, Terms, combine, degrade
from app.policy.unanswered import PolicyUnavailable, PolicyUndefined, Unanswered

MOST_WARMED = 64
"""Questions answered ahead of one change, hottest first; more would make live misses wait behind them."""

_CANDIDATES = 4
"""Offered bundles remembered until OPA runs one: the newest, the last good one, and some in between."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Generation:
    """One snapshot as questions see it: readings sections by model id."""

    number: int
    readings: Mapping[str, Section] = field(default_factory=dict)


class _Moved(Unanswered):
    """OPA runs another revision than the one asked under."""

    code = PolicyUnavailable.code


class Policy:
    """Answers questions under the revision in force and the current generation of readings."""

    def __init__(self, batcher: Batcher, clock: Clock, metrics: Metrics, *, memo_bytes: int, publish_wait_ms: float) -> None:
        self.generation = Generation(0)
        self._batcher = batcher
        self._metrics = metrics
        self._publish_wait_s = publish_wait_ms / 1000
        self._answers = Answers(memo_bytes, clock, metrics)
        self._plans: Plans | None = None
        self._candidates: dict[str, Plans] = {}
        self._shadow = ShadowWatch(batcher.beside(), clock, metrics)
        self._failures = Failures(clock, metrics)

    @property
    def revision(self) -> str | None:
        """Revision of the policy in force; None before the first."""
        return self._plans.revision if self._plans else None

    @property
    def in_force(self) -> Compiled | None:
        """The policy that `revision` names, with the groups of all kinds."""
        return self._plans.compiled if self._plans else None

    async def terms(self, question: Question, *, sensitive: bool, dimensions: frozenset[str]) -> Terms:
        """What this caller may do. Waits for OPA only where the memo lacks an answer. Raises Unanswered.

        `dimensions` are those that the tenant's quota names; `sensitive` models never get a substitute answer.
        """
        plans = self._plans
        if plans is None:
            raise self._failures.note(PolicyUnavailable("no policy is in force yet"))
        terms = self._answers.settled(plans.revision, plans.choose(question), question, dimensions)
        if terms is None:
            try:
                terms = await self._settle(plans, question, sensitive=sensitive, dimensions=dimensions)
            except Unanswered as failure:
                raise self._failures.note(failure) from None
        return terms

    def watch(self, question: Question, terms: Terms, decision_id: str) -> None:
        """Have shadow rules looked at beside a decision that was made on `terms`; it is recorded later, and nothing waits for it."""
        plans = self._candidates.get(terms.revision)
        if plans is not None and plans.shadow:
            self._shadow.watch(plans, question, terms, decision_id)

    async def shadows(self, question: Question, terms: Terms) -> list[Judged]:
        """What each shadow rule answers to the question; waits for OPA, so only for those who ask to have it explained."""
        plans = self._candidates.get(terms.revision)
        return await self._shadow.judge(plans, question, terms) if plans is not None else []

    async def prefetch(self, questions: Iterable[Question]) -> None:
        """Ask for everything that the memo lacks of these, together."""
        plans = self._plans
        if plans is not None:
            await asyncio.gather(*(self._fetch_all(plans, plans.choose(question), question) for question in questions))

    async def publish(self, generation: Generation) -> None:
        """Make `generation` current once the hot questions are answered for it, or after the publish wait."""
        if self._plans is not None:
            heirs = islice(self._heirs(self._plans, generation), MOST_WARMED)
            await self._warm(self._fetch(answer.revision, answer.group, asked, answer.model, entry) for entry, answer, asked in heirs)
        self.generation = generation
        self._metrics.snapshot_generation.set(generation.number)

    def offer(self, compiled: Compiled) -> None:
        """Remember a bundle that OPA may run from now on."""
        self._candidates.setdefault(compiled.revision, Plans(compiled))
        while len(self._candidates) > _CANDIDATES:
            del self._candidates[next(revision for revision in self._candidates if revision != self.revision)]

    async def activate(self, compiled: Compiled) -> None:
        """Put the bundle that OPA runs now in force, once its hot questions are answered, or after the publish wait."""
        self.offer(compiled)
        fresh = self._candidates[compiled.revision]
        if self.revision != compiled.revision:
            hot = ((entry, answer, fresh.group(answer.group.name)) for entry, answer in islice(self._answers.hot(), MOST_WARMED))
            await self._warm(
                self._fetch(fresh.revision, group, answer.shown, answer.model, entry) for entry, answer, group in hot if group is not None
            )
        self.move(compiled.revision)

    async def close(self) -> None:
        """Stop watching shadow rules."""
        await self._shadow.close()

    async def _settle(self, plans: Plans, question: Question, *, sensitive: bool, dimensions: frozenset[str]) -> Terms:
        """Terms that are not in the memo, under whatever revision OPA runs."""
        while True:
            plan = plans.choose(question)
            answers = await self._fetch_all(plans, plan, question)
            if not any(isinstance(answer, _Moved) for answer in answers):
                break
            if self._plans is None or self._plans is plans:
                raise PolicyUnavailable("OPA runs a policy that this process did not offer")
            plans = self._plans
        usable = [self._usable(plans, group, question, answer, sensitive) for group, answer in zip(plan.groups, answers, strict=True)]
        terms = combine(plans.revision, (part for answer in usable for part in answer.parts), dimensions)
        if any(used is not answer for used, answer in zip(usable, answers, strict=True)):
            self._metrics.policy_substitutes.inc()
            return degrade(terms)
        self._answers.settle(terms, plan, question, dimensions)
        return terms

    def _usable(self, plans: Plans, group: Group, question: Question, answer: Answer | Unanswered, sensitive: bool) -> Answer:
        """The answer itself, or its substitute during an outage. Raises what it failed with."""
        if isinstance(answer, Answer):
            return answer
        outage = isinstance(answer, PolicyUnavailable) and not sensitive
        substitute = self._answers.newest(plans.revision, group, question) if outage else None
        if substitute is None:
            raise answer
        return substitute

    async def _fetch_all(self, plans: Plans, plan: Plan, question: Question) -> list[Answer | Unanswered]:
        """One per group of the plan, in its order; what the memo lacks is asked together."""
        found = [
            self._answers.find(plans.revision, group, question) or self._fetch(plans.revision, group, question, model_of(question))
            for group in plan.groups
        ]
        flights = [each for each in found if isinstance(each, asyncio.Future)]
        if flights:
            await asyncio.wait(flights)
        return [each.result() if isinstance(each, asyncio.Future) else each for each in found]

    def _fetch(
        self, revision: str, group: Group, question: Question, model: str, heir_of: Entry[Any] | None = None
    ) -> asyncio.Future[Answer | Unanswered]:
        """Ask OPA; the answer is kept whether or not the caller is still there."""
        asked = shown(group, question)

        def receive(reply: Reply | Unanswered) -> Answer | Unanswered:
            if isinstance(reply, Unanswered):
                return reply
            if reply.revision != revision:
                self.move(reply.revision)
                return _Moved("OPA runs another revision")
            if reply.outputs is None:
                return PolicyUndefined("no answer", ",".join(rule.name for rule in group.rules))
            try:
                answer = Answer(revision, group, asked, model, _parts(reply.outputs))
            except Unanswered as invalid:
                return invalid
            self._answers.keep(answer, heir_of)
            return answer

        return self._batcher.ask(group_key(revision, group, asked), group, values_of(asked, group), receive)

    def _heirs(self, plans: Plans, generation: Generation) -> Iterator[tuple[Entry[Any], Answer, Question]]:
        """Hot answers whose readings change with `generation`, and the question that takes their place."""
        changed: dict[Read, dict[bytes, list[tuple[str, Section]]]] = {}
        for entry, answer in self._answers.hot():
            read = answer.group.reading("readings") if answer.revision == plans.revision else None
            if read is None:
                continue
            if read not in changed:
                changed[read] = _changes(read, self.generation, generation)
            for model, section in changed[read].get(answer.shown.readings.key, ()):
                if not answer.group.reading("model") or answer.model == model:
                    yield entry, replace(answer, model=model), replace(answer.shown, readings=section)

    async def _warm(self, flights: Iterable[asyncio.Future[Any]]) -> None:
        waiting = list(flights)
        if waiting:
            await asyncio.wait(waiting, timeout=self._publish_wait_s)

    def move(self, revision: str) -> None:
        """Put a revision in force at once, where it was offered: OPA answers under it."""
        plans = self._candidates.get(revision)
        if plans is not None and self.revision != revision:
            self._plans = plans
            self._metrics.policy_revision.info({"revision": revision})
            log.info("policy_in_force", revision=revision)


def _changes(read: Read, old: Generation, new: Generation) -> dict[bytes, list[tuple[str, Section]]]:
    """By key of what was read of a model's old readings: each model where that differs now, and what is read now."""
    changed: dict[bytes, list[tuple[str, Section]]] = {}
    for model, readings in new.readings.items():
        was, section = old.readings.get(model, EMPTY).only(read), readings.only(read)
        if was.key != section.key:
            changed.setdefault(was.key, []).append((model, section))
    return changed


def _parts(outputs: Mapping[str, Mapping[str, Any]]) -> tuple[Part, ...]:
    return tuple(parse(rule, answered) for rule, answered in outputs.items())
