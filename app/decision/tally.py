"""Decisions counted: for metrics with bounded label values, for the log by minute, tenant, model and outcome."""

from typing import Any

from app.audit.intake.summaries import Summaries
from app.catalog.models import ModelSpec
from app.decision.decision import Decision
from app.observability.metrics import Metrics
from app.quota.registry import Tenant

UNKNOWN = "unknown"
"""Tenants and models that the registry and the catalogue don't know share one label, so that callers can't make series."""


class Tally:
    """Counts decisions. Children of the counters are kept, because finding one costs more than counting."""

    def __init__(self, metrics: Metrics, summaries: Summaries) -> None:
        self._metrics = metrics
        self._summaries = summaries
        self._children: dict[tuple[str, ...], Any] = {}

    async def count(self, tenant: Tenant | None, spec: ModelSpec | None, decision: Decision, took_ms: float) -> None:
        """Count one decision of a tenant and a model, where they are known, and the time it took inside Sluice."""
        reason = decision.reasons[0].code if decision.reasons else ""
        key = (
            decision.outcome,
            self._metrics.reason(reason),
            self._metrics.tenant(tenant.id) if tenant else UNKNOWN,
            self._metrics.model(spec.id) if spec else UNKNOWN,
            self._metrics.region(tenant.quota.region) if tenant else "",
            self._metrics.sla_class(tenant.quota.sla_class) if tenant else "",
        )
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._metrics.decisions.labels(*key)
        child.inc()
        self._metrics.decision_seconds.observe(took_ms / 1000)
        await self._summaries.count(tenant.id if tenant else None, spec.id if spec else None, decision.outcome)
