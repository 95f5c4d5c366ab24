"""The sentence: ask, look up the terms, spend, conclude, and write down what the terms oblige.

When down: the policy engine, the log and the bound on lease records each end in a decision of status 503 with a reason
code of their own; nothing stays spent, and no caller sees an error of ours.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog
from uuid_utils import uuid7

from app.catalog.catalog import Catalog
from app.catalog.models import ModelSpec
from app.clock import Clock
from app.decision import conclude
from app.decision.ask import Asker
from app.decision.charges import Buckets, charges
from app.decision.decision import Decision, Facts
from app.decision.entries import Records
from app.decision.explain import explanation
from app.decision.request import Asking, DecideRequest
from app.decision.tally import Tally
from app.errors import DependencyDown
from app.limiter.errors import Draining, LeaseRecordsFull
from app.limiter.memory import MemoryLimiter
from app.policy.policy import Policy
from app.policy.question import Question
from app.policy.readings import Readings
from app.policy.terms import Deny, Terms
from app.policy.unanswered import Unanswered
from app.quota.registry import Registry, Tenant
from app.telemetry.view import ModelView

log = structlog.get_logger()

QUOTA_DIMENSIONS = frozenset(("qps", "tpm", "concurrency"))
"""What a quota can name; a rule must limit each that it does name."""

UNKNOWN = Deny("sluice", "unknown", "the tenant has no quota, or no model spec has this id")
"""Stands in where an operator's rules let them pass: without a quota or a spec nothing would be limited or reserved."""


@dataclass(frozen=True, slots=True)
class Rooms:
    """What a decision needs of the other rooms, built once in main.py."""

    clock: Clock
    catalog: Catalog
    registry: Registry
    policy: Policy
    readings: Readings
    limiter: MemoryLimiter
    records: Records
    tally: Tally
    ttl_ms: float
    draw: Callable[[], float] = random.random
    """Uniform in 0..1, for shedding and jitter; handed in so that tests can fix it."""


class Decider:
    """Decides requests. Holds nothing but sections of questions that many requests share."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._asker = Asker(rooms.clock)
        self._buckets = Buckets()

    async def decide(self, asking: Asking, *, explain: bool = False) -> Decision:
        """One decision. What a rule, a limit or an outage says is the decision, never an exception."""
        rooms, request = self._rooms, asking.request
        started = rooms.clock.monotonic_ms()
        tenant, spec = rooms.registry.tenant(request.tenant), rooms.catalog.model(request.model)
        question = self._asker.ask(request, tenant, spec, rooms.policy.generation)
        terms: Terms | None = None
        failed: Unanswered | None = None
        try:
            terms = await self._terms(question, tenant, spec)
            facts = self._facts(request, tenant, terms)
            answered = rooms.clock.monotonic_ms()
            decision = await self._spend(asking, tenant, spec, terms, facts)
            spent = rooms.clock.monotonic_ms()
            decision = await self._write(asking, spec, terms, decision)
            rooms.policy.watch(question, terms, facts.id)
        except Unanswered as failure:
            failed = failure
            answered = spent = rooms.clock.monotonic_ms()
            decision = conclude.unanswered(self._facts(request, tenant), failure.code, failure.rule, rooms.draw())
        ended = rooms.clock.monotonic_ms()
        rooms.tally.count(tenant, spec, decision, ended - started)
        if explain:
            stages = {"terms_ms": answered - started, "spend_ms": spent - answered, "write_ms": ended - spent}
            shadows = await rooms.policy.shadows(question, terms) if terms else []
            decision = replace(decision, facts=replace(decision.facts, explain=explanation(terms, failed, shadows, stages)))
        return decision

    async def prefetch(self, requests: Sequence[DecideRequest]) -> None:
        """Have the policies answered for all of these together, so that deciding them one after the other finds them warm."""
        questions = []
        for request in requests:
            tenant, spec = self._rooms.registry.tenant(request.tenant), self._rooms.catalog.model(request.model)
            questions.append(self._asker.ask(request, tenant, spec, self._rooms.policy.generation))
        await self._rooms.policy.prefetch(questions)

    async def _terms(self, question: Question, tenant: Tenant | None, spec: ModelSpec | None) -> Terms:
        sensitive = spec is not None and spec.sensitive is not None
        dimensions = frozenset(QUOTA_DIMENSIONS.intersection(tenant.facts)) if tenant else frozenset()
        return await self._rooms.policy.terms(question, sensitive=sensitive, dimensions=dimensions)

    async def _spend(self, asking: Asking, tenant: Tenant | None, spec: ModelSpec | None, terms: Terms, facts: Facts) -> Decision:
        """Refuse or shed before anything is spent, else spend all or nothing."""
        rooms = self._rooms
        if terms.denies or tenant is None or spec is None:
            return conclude.denied(facts, terms.denies or (UNKNOWN,), rooms.draw())
        if terms.shed > 0 and rooms.draw() < terms.shed:
            return conclude.shed(facts, terms, rooms.draw())
        charge = charges(asking, spec, terms, self._buckets.of(terms, asking.request), lease_id=facts.id, ttl_ms=rooms.ttl_ms)
        try:
            spent = await rooms.limiter.spend(charge)
        except (LeaseRecordsFull, Draining) as error:
            return conclude.unanswered(facts, error.code, None, rooms.draw())
        if spent.admitted:
            return conclude.admitted(facts, terms, spent)
        return conclude.refused(facts, terms, spent, rooms.draw())

    async def _write(self, asking: Asking, spec: ModelSpec | None, terms: Terms, decision: Decision) -> Decision:
        """Commit what is owed to the log before the answer leaves; without it nothing is granted and nothing stays spent."""
        try:
            await self._rooms.records.write(asking, spec, terms, decision)
        except Exception as error:  # whatever it is, what must be in the log first is not
            if not isinstance(error, DependencyDown):
                log.exception("the log entry of a decision was not written", decision_id=decision.facts.id)
            if decision.allow:
                await self._rooms.limiter.cancel(decision.facts.id, asking.caller.key_id)
            return conclude.unanswered(decision.facts, "audit_unavailable", None, self._rooms.draw())
        return decision

    def _facts(self, request: DecideRequest, tenant: Tenant | None, terms: Terms | None = None) -> Facts:
        view = self._rooms.readings.view
        model = view.models.get(request.model)
        live = model if model is not None and model.live else None
        elapsed_ms = self._rooms.clock.monotonic_ms() - view.taken_ms
        return Facts(
            id=str(uuid7()),
            revision=terms.revision if terms else None,
            quota_version=tenant.version if tenant else None,
            generation=self._rooms.policy.generation.number,
            age_ms=round(live.age_ms + elapsed_ms) if live is not None and live.age_ms is not None else None,
            degraded=live is None or (terms is not None and terms.degraded),
            node=_node(request, live) if live is not None else None,
        )


def _node(request: DecideRequest, model: ModelView) -> str | None:
    """The node that the gateway named where it is live, else the best one."""
    return request.node if request.node in model.nodes else model.best_node()
