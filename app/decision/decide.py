"""The sentence: ask, look up the terms, choose the node, spend, conclude, and write down what the terms oblige.

When down: the policy engine, the log and the bound on lease records each end in a decision of status 503 with a reason
code of their own; nothing stays spent, and no caller sees an error of ours.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog
from uuid_utils import uuid7

from app.approvals.approvals import Known
from app.catalog.catalog import Catalog
from app.catalog.models import ModelSpec
from app.clock import Clock
from app.decision import conclude
from app.decision.ask import Asker
from app.decision.charges import Buckets, charges, reserved_tokens
from app.decision.decision import Decision, Facts
from app.decision.entries import Records
from app.decision.explain import Stages, explanation
from app.decision.request import Asking, DecideRequest
from app.decision.route import Probes, node_for, take_due
from app.decision.tally import Tally
from app.errors import DependencyDown
from app.limiter.errors import Draining, LeaseRecordsFull
from app.limiter.memory import MemoryLimiter
from app.policy.policy import Policy
from app.policy.question import Question
from app.policy.readings import Readings
from app.policy.terms import QUOTAS, Deny, Terms
from app.policy.unanswered import Unanswered
from app.quota.registry import Registry, Tenant
from app.telemetry.view import ModelView

log = structlog.get_logger()

UNKNOWN = Deny("sluice", "unknown", "the tenant has no quota, or no model spec has this id")
"""Stands in where an operator's rules let them pass: without a quota or a spec nothing would be limited or reserved."""


@dataclass(frozen=True, slots=True)
class Rooms:
    """What a decision needs of the other rooms, built once in main.py."""

    clock: Clock
    catalog: Catalog
    registry: Registry
    approvals: Known
    policy: Policy
    readings: Readings
    limiter: MemoryLimiter
    records: Records
    tally: Tally
    ttl_ms: float
    probes: Probes
    draw: Callable[[], float] = random.random
    """Uniform in 0..1, for shedding and jitter; handed in so that tests can fix it."""


class Decider:
    """Decides requests. Holds nothing but sections of questions that many requests share."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._asker = Asker(rooms.clock, rooms.approvals)
        self._buckets = Buckets()

    async def decide(self, asking: Asking, *, explain: bool = False) -> Decision:
        """One decision. What a rule, a limit or an outage says is the decision, never an exception."""
        rooms, request = self._rooms, asking.request
        stages = Stages(rooms.clock)
        tenant, spec = rooms.registry.tenant(request.tenant), rooms.catalog.model(request.model)
        terms: Terms | None = None
        failed: Unanswered | None = None
        try:
            question, terms = await self._judged(request, tenant, spec)
            stages.end("terms_ms")
            decision = await self._start(asking, tenant, spec, terms, stages)
            rooms.policy.watch(question, terms, decision.facts.id)
        except Unanswered as failure:
            failed = failure
            stages.end("terms_ms")
            decision = conclude.unanswered(self._facts(request, tenant), failure.code, failure.rule, rooms.draw())
            decision = await self._write(asking, spec, None, decision)
        await rooms.tally.count(tenant, spec, decision, stages.total_ms())
        if explain:
            shadows = await rooms.policy.shadows(question, terms) if terms else []
            told = explanation(terms, failed, shadows, stages.took_ms, probe=decision.probe)
            decision = replace(decision, facts=replace(decision.facts, explain=told))
        return decision

    async def prefetch(self, requests: Sequence[DecideRequest]) -> None:
        """Have the policies answered for all of these together, so that deciding them one after the other finds them warm."""
        tenant, model, generation = self._rooms.registry.tenant, self._rooms.catalog.model, self._rooms.policy.generation
        await self._rooms.policy.prefetch([self._asker.ask(one, tenant(one.tenant), model(one.model), generation) for one in requests])

    async def _judged(self, request: DecideRequest, tenant: Tenant | None, spec: ModelSpec | None) -> tuple[Question, Terms]:
        """What the rules say, and to which question.

        It is asked again where the approval moved on meanwhile: one that was taken back while the rules were thinking opens nothing.
        Each of its few steps can make that happen once.
        """
        while True:
            question = self._asker.ask(request, tenant, spec, self._rooms.policy.generation)
            terms = await self._terms(question, tenant, spec)
            if request.approval_id is None or self._asker.subject(request) == question.subject:
                return question, terms

    async def _terms(self, question: Question, tenant: Tenant | None, spec: ModelSpec | None) -> Terms:
        sensitive = spec is not None and spec.sensitive is not None
        dimensions = frozenset([name for name in QUOTAS if name in tenant.facts]) if tenant else frozenset()
        return await self._rooms.policy.terms(question, sensitive=sensitive, dimensions=dimensions)

    async def _start(self, asking: Asking, tenant: Tenant | None, spec: ModelSpec | None, terms: Terms, stages: Stages) -> Decision:
        """Choose the node, spend and write. A probe that does not start after all is there for the next request."""
        probes, request = self._rooms.probes, asking.request
        probe = None if terms.denies else take_due(probes, request, self._model(request))
        started = False
        try:
            decision = await self._spend(asking, tenant, spec, terms, self._facts(request, tenant, terms, spec=spec, probe=probe))
            stages.end("spend_ms")
            decision = await self._write(asking, spec, terms, decision)
            stages.end("write_ms")
            started = decision.allow
        finally:
            if probe is not None and not started:
                probes.give_back(probe, request.model)
        return decision

    async def _spend(self, asking: Asking, tenant: Tenant | None, spec: ModelSpec | None, terms: Terms, facts: Facts) -> Decision:
        """Refuse or shed before anything is spent, else spend all or nothing. What sheds is what shuts a node out: a probe passes."""
        rooms = self._rooms
        if terms.denies or tenant is None or spec is None:
            return conclude.denied(facts, terms.denies or (UNKNOWN,), rooms.draw())
        if terms.shed > 0 and not facts.probe and rooms.draw() < terms.shed:
            return conclude.shed(facts, terms, rooms.draw())
        model = self._model(asking.request)
        buckets = self._buckets.of(terms, asking.request, pool=model.pool if model else "")
        charge = charges(asking, spec, terms, buckets, facts, ttl_ms=rooms.ttl_ms)
        try:
            spent = await rooms.limiter.spend(charge)
        except (LeaseRecordsFull, Draining) as error:
            return conclude.unanswered(facts, error.code, None, rooms.draw())
        if spent.admitted:
            return conclude.admitted(facts, terms, spent)
        return conclude.refused(facts, terms, spent, rooms.draw())

    async def _write(self, asking: Asking, spec: ModelSpec | None, terms: Terms | None, decision: Decision) -> Decision:
        """Commit what is owed to the log before the answer leaves; without it nothing is granted and nothing stays spent."""
        try:
            owed = await self._rooms.records.write(asking, spec, terms, decision)
            if owed is not None:
                await self._rooms.limiter.keep_note(decision.facts.id, owed.pack())
        except Exception as error:  # whatever it is, what must be in the log first is not
            if not isinstance(error, DependencyDown):
                log.exception("the log entry of a decision was not written", decision_id=decision.facts.id)
            if decision.allow:
                await self._rooms.limiter.cancel(decision.facts.id, asking.caller.key_id)
            return conclude.unanswered(decision.facts, "audit_unavailable", None, self._rooms.draw())
        return decision

    def _model(self, request: DecideRequest) -> ModelView | None:
        return self._rooms.readings.view.models.get(request.model)

    def _facts(
        self,
        request: DecideRequest,
        tenant: Tenant | None,
        terms: Terms | None = None,
        *,
        spec: ModelSpec | None = None,
        probe: str | None = None,
    ) -> Facts:
        model = self._model(request)
        live = model if model is not None and model.live else None
        node = probe
        if node is None and live is not None:
            tokens = request.prompt_tokens + (reserved_tokens(request, spec) if spec else 0)
            node = node_for(request, live, tokens, self._rooms.limiter.on_node)
        elapsed_ms = self._rooms.clock.monotonic_ms() - self._rooms.readings.view.taken_ms
        return Facts(
            id=str(uuid7()),
            revision=terms.revision if terms else None,
            quota_version=tenant.version if tenant else None,
            generation=self._rooms.policy.generation.number,
            age_ms=round(live.age_ms + elapsed_ms) if live is not None and live.age_ms is not None else None,
            degraded=live is None or (terms is not None and terms.degraded),
            node=node,
            probe=probe is not None,
        )
