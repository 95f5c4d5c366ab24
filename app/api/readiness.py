"""How each part of a replica is, in one sentence: what /readyz shows, and the gauges that are computed when somebody looks."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.api.status import Health
from app.decision.decide import Rooms
from app.errors import DependencyDown
from app.observability.metrics import Metrics
from app.policy.loader import Loader
from app.policy.opa import OpaClient
from app.transaction import Transactions

LOOK_S = 0.2
"""A part that needs longer to say that it is well is not."""


def health_of(rooms: Rooms, loader: Loader, opa: OpaClient, engine: AsyncEngine, metrics: Metrics) -> Health:
    """The checks of one replica. Only the absence of any policy makes it unready: all other parts have a written outage."""

    async def policy() -> tuple[bool, str]:
        state = loader.state
        if state.in_force is None:
            return False, state.problem or "no policy is in force yet"
        return True, f"revision {state.in_force}" + (f"; the newest was refused: {state.problem}" if state.problem else "")

    async def policy_engine() -> tuple[bool, str]:
        alive = await opa.alive(LOOK_S * 1000)
        return alive, "answers" if alive else "silent: known questions are answered from memory, others as policy_unavailable"

    # Not a time-out of our own around a connection: giving that up would wait for the server that is silent.
    looks = Transactions(engine, metrics, call="readyz", timeout_ms=round(LOOK_S * 1000))

    async def database() -> tuple[bool, str]:
        try:
            await looks.run(lambda connection: connection.execute(text("SELECT 1")))
        except DependencyDown:
            return False, "silent: quotas and keys from memory; changes and what must be logged are refused"
        return True, f"{len(rooms.registry.tenants())} tenants"

    async def telemetry() -> tuple[bool, str]:
        models = rooms.readings.view.models
        blind = sorted(name for name, model in models.items() if not model.nodes)
        if not models or blind:
            return False, f"no live node for {', '.join(blind) or 'any model'}: half of its requests are shed"
        return True, f"generation {rooms.readings.view.generation}"

    async def models() -> tuple[bool, str]:
        problem = rooms.catalog.problem
        return problem is None, problem or f"{len(rooms.catalog.models)} models"

    def gauges() -> None:
        _quota_used(rooms, metrics)
        _nodes(rooms, metrics)

    parts = {"policy_engine": policy_engine, "database": database, "telemetry": telemetry, "models": models}
    return Health(required={"policy": policy}, parts=parts, before_scrape=[gauges])


def _quota_used(rooms: Rooms, metrics: Metrics) -> None:
    metrics.quota_used.clear()
    for (tenant_id, model), tokens in rooms.limiter.spent_last_minute().items():
        tenant = rooms.registry.tenant(tenant_id)
        if tenant is not None:
            labels = (metrics.tenant(tenant_id), metrics.model(model), tenant.quota.region, tenant.quota.sla_class)
            metrics.quota_used.labels(*labels).inc(tokens)


def _nodes(rooms: Rooms, metrics: Metrics) -> None:
    view = rooms.readings.view
    for gauge in (metrics.node_live, metrics.node_kv, metrics.node_waiting):
        gauge.clear()
    for state in view.nodes:
        metrics.node_live.labels(state.node).set(not state.why)
        if state.reading.kv_ratio is not None:
            metrics.node_kv.labels(state.node, state.model).set(state.reading.kv_ratio)
        if state.reading.waiting is not None:
            metrics.node_waiting.labels(state.node, state.model).set(state.reading.waiting)
    elapsed_ms = rooms.clock.monotonic_ms() - view.taken_ms
    for name, model in view.models.items():
        if model.age_ms is not None:
            metrics.snapshot_age.labels(name).set((model.age_ms + elapsed_ms) / 1000)
