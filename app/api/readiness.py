"""How each part of a replica is, in one sentence: what /readyz shows, and the gauges that are computed when somebody looks."""

from dataclasses import dataclass

from sqlalchemy import text

from app.api.status import Health
from app.background import Background
from app.decision.decide import Rooms
from app.errors import DependencyDown
from app.limiter.in_flight import Place
from app.observability.metrics import Metrics
from app.policy.loader import Loader
from app.policy.opa import OpaClient
from app.transaction import Transactions

LOOK_MS = 200
"""A part that needs longer to say that it is well is not."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one replica that can be unwell."""

    rooms: Rooms
    loader: Loader
    opa: OpaClient
    looks: Transactions
    """Bounded by LOOK_MS, since a frozen server holds whoever waits for it."""
    background: Background

    def health(self, metrics: Metrics) -> Health:
        """Only the absence of any policy makes a replica unready: all other parts have a written outage."""
        parts = {
            "policy_engine": self.policy_engine,
            "database": self.database,
            "telemetry": self.telemetry,
            "engines": self.engines,
            "models": self.models,
            "background": self.beside,
        }
        return Health(required={"policy": self.policy}, parts=parts, before_scrape=[lambda: _gauges(self.rooms, metrics)])

    async def policy(self) -> tuple[bool, str]:
        """Whether any policy is in force, and why the newest was refused."""
        state = self.loader.state
        if state.in_force is None:
            return False, state.problem or "no policy is in force yet"
        return True, f"revision {state.in_force}" + (f"; the newest was refused: {state.problem}" if state.problem else "")

    async def policy_engine(self) -> tuple[bool, str]:
        """Whether OPA answers."""
        alive = await self.opa.alive(LOOK_MS)
        return alive, "answers" if alive else "silent: known questions are answered from memory, others as policy_unavailable"

    async def database(self) -> tuple[bool, str]:
        """Whether PostgreSQL answers."""
        try:
            await self.looks.run(lambda connection: connection.execute(text("SELECT 1")))
        except DependencyDown:
            return False, "silent: quotas and keys from memory; changes and what must be logged are refused"
        return True, f"{len(self.rooms.registry.tenants())} tenants"

    async def telemetry(self) -> tuple[bool, str]:
        """Whether every model has a live node."""
        view = self.rooms.readings.view
        blind = sorted(name for name, model in view.models.items() if not model.live)
        if not view.models or blind:
            return False, f"no live node for {', '.join(blind) or 'any model'}; GET /telemetry says why"
        return True, f"generation {view.generation}"

    async def engines(self) -> tuple[bool, str]:
        """Whether the newest engines of the settings file are polled."""
        view = self.rooms.readings.view
        problem = view.loads.problem
        return (
            problem is None,
            f"the last good ones stay: {problem}" if problem else f"{len({state.node for state in view.nodes})} configured",
        )

    async def models(self) -> tuple[bool, str]:
        """Whether the newest models file is in force."""
        problem = self.rooms.catalog.problem
        return problem is None, problem or f"{len(self.rooms.catalog.all())} models"

    async def beside(self) -> tuple[bool, str]:
        """Whether the work beside requests goes on."""
        failing = self.background.failing
        return not failing, f"failed within the last minute: {', '.join(failing)}; the log says why" if failing else "goes on"


def _gauges(rooms: Rooms, metrics: Metrics) -> None:
    _quota_used(rooms, metrics)
    _nodes(rooms, metrics)
    _in_flight(rooms, metrics)


def _quota_used(rooms: Rooms, metrics: Metrics) -> None:
    metrics.quota_used.clear()
    for (tenant_id, model), tokens in rooms.limiter.spent_last_minute().items():
        tenant = rooms.registry.tenant(tenant_id)
        if tenant is not None:
            labels = (
                metrics.tenant(tenant_id),
                metrics.model(model),
                metrics.region(tenant.quota.region),
                metrics.sla_class(tenant.quota.sla_class),
            )
            metrics.quota_used.labels(*labels).inc(tokens)


def _in_flight(rooms: Rooms, metrics: Metrics) -> None:
    """Of every node and model that is configured, 0 included, and of those that are not any more as long as they hold something."""
    metrics.in_flight_requests.clear()
    metrics.in_flight_tokens.clear()
    places: set[Place] = {(state.node, state.model) for state in rooms.readings.view.nodes}
    for node, model in places.union(rooms.limiter.busy()):
        held = rooms.limiter.in_flight(node, model)
        labels = (node or "", metrics.model(model))
        metrics.in_flight_requests.labels(*labels).inc(held.requests)
        metrics.in_flight_tokens.labels(*labels).inc(held.tokens)


def _nodes(rooms: Rooms, metrics: Metrics) -> None:
    view = rooms.readings.view
    for gauge in (
        metrics.node_live,
        metrics.node_kv,
        metrics.node_waiting,
        metrics.node_frozen,
        metrics.node_max_in_flight,
        metrics.node_max_num_seqs,
        metrics.model_blind,
    ):
        gauge.clear()
    live: dict[str, bool] = {}
    for state in view.nodes:
        live[state.node] = live.get(state.node, True) and not state.why
        if state.reading.kv_ratio is not None:
            metrics.node_kv.labels(state.node, state.model).set(state.reading.kv_ratio)
        if state.reading.waiting is not None:
            metrics.node_waiting.labels(state.node, state.model).set(state.reading.waiting)
        metrics.node_frozen.labels(state.node, state.model).set(state.why == "frozen")
        if state.standing.max_in_flight is not None:
            metrics.node_max_in_flight.labels(state.node, state.model).set(state.standing.max_in_flight)
        if state.standing.max_num_seqs is not None:
            metrics.node_max_num_seqs.labels(state.node).set(state.standing.max_num_seqs)
    for node, every_model in live.items():
        metrics.node_live.labels(node).set(every_model)
    elapsed_ms = rooms.clock.monotonic_ms() - view.taken_ms
    for name, model in view.models.items():
        metrics.model_blind.labels(name).set(not model.live)
        if model.age_ms is not None:
            metrics.snapshot_age.labels(name).set((model.age_ms + elapsed_ms) / 1000)
