"""How each part of a replica is, in one sentence: what /readyz shows."""

from dataclasses import dataclass

from sqlalchemy import text

from app.api.gauges import show
from app.api.status import Health
from app.audit.reading.lag import LagWatch
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
    log: LagWatch
    own_log_process: bool
    """Whether serve starts the process of the log, and has its lines among its own."""

    def health(self, metrics: Metrics) -> Health:
        """Only the absence of any policy makes a replica unready: all other parts have a written outage."""
        parts = {
            "policy_engine": self.policy_engine,
            "database": self.database,
            "telemetry": self.telemetry,
            "engines": self.engines,
            "models": self.models,
            "background": self.beside,
            "log": self.log_kept,
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

    async def log_kept(self) -> tuple[bool, str]:
        """Whether the log keeps up, and who does not where it does not."""
        lag, waited_s, signed_s = self.log.newest, self.log.backlog_age_s(), self.log.checkpoint_age_s()
        if lag is None or waited_s is None:
            return False, "unknown: the log cannot be read; decisions go on where nothing must be logged first"
        signed = "nothing is signed" if signed_s is None else f"{lag.signed_size} of them signed {signed_s:.0f} s ago"
        waiting = f"; {lag.backlog} wait, the first for {waited_s:.0f} s" if lag.backlog else ""
        trouble = self._log_trouble(led=lag.led)
        told = f"{lag.size} entries, {signed}{waiting}"
        return not trouble, f"{told}; {trouble}. Decisions go on" if trouble else told

    def _log_trouble(self, *, led: bool) -> str:
        """Why the log does not get on, and where to look; nothing where it does."""
        process = "the child `audit` of serve" if self.own_log_process else "the process that leads it"
        lines = "the lines of `audit` in this log say why" if self.own_log_process else "its own log says why"
        if not led and self.own_log_process:
            return f"nobody leads it: {process} does not run, or refuses to; {lines}"
        if not led:
            return "nobody leads it: start `sluice audit run`, or see why the one that runs refuses to"
        if since := self.log.stands_since:
            return f"{process} runs but stands still since {since:%Y-%m-%d %H:%M:%S} UTC; {lines}"
        return f"{process} does not get on; {lines}" if self.log.late else ""


def _why(model: str, view: View) -> str:
    """A model and why its nodes get no requests, the first few of them."""
    nodes = [f"{state.node} {state.shut_out or state.why}" for state in view.nodes if state.model == model]
    more = f" and {len(nodes) - MOST_NODES} more" if len(nodes) > MOST_NODES else ""
    return f"{model} ({', '.join(nodes[:MOST_NODES]) or 'no engine serves it'}{more})"
