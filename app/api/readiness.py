"""How each part of a replica is, in one sentence: what /readyz shows."""

from dataclasses import dataclass

from sqlalchemy import text

from app.api.gauges import show
from app.api.status import Health
from app.audit.reading.lag import Watch
from app.background import Background
from app.decision.decide import Rooms
from app.errors import DependencyDown
from app.observability.metrics import Metrics
from app.policy.loader import Loader
from app.policy.opa import OpaClient
from app.telemetry.view import View
from app.transaction import Transactions

LOOK_MS = 200
"""A part that needs longer to say that it is well is not."""
MOST_NODES = 3
"""Nodes of a model that are named; GET /telemetry has them all."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one replica that can be unwell."""

    rooms: Rooms
    loader: Loader
    opa: OpaClient
    looks: Transactions
    """Bounded by LOOK_MS, since a frozen server holds whoever waits for it."""
    background: Background
    log: Watch

    def health(self, metrics: Metrics) -> Health:
        """Only the absence of any policy makes a replica unready: all other parts have a written outage."""
        parts = {
            "policy_engine": self.policy_engine,
            "database": self.database,
            "telemetry": self.telemetry,
            "engines": self.engines,
            "models": self.models,
            "background": self.beside,
            "log": self.log.told,
        }
        return Health(required={"policy": self.policy}, parts=parts, before_scrape=[lambda: show(self.rooms, self.log, metrics)])

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
        """Whether every model has a live node to go to."""
        view = self.rooms.readings.view
        nowhere = [name for name, model in sorted(view.models.items()) if not model.nodes]
        if not view.models or nowhere:
            return False, "no node takes requests of " + ("; ".join(_why(name, view) for name in nowhere) or "any model")
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


def _why(model: str, view: View) -> str:
    """A model and why its nodes get no requests, the first few of them."""
    nodes = [f"{state.node} {state.shut_out or state.why}" for state in view.nodes if state.model == model]
    more = f" and {len(nodes) - MOST_NODES} more" if len(nodes) > MOST_NODES else ""
    return f"{model} ({', '.join(nodes[:MOST_NODES]) or 'no engine serves it'}{more})"
