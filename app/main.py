"""Builds everything once and passes it down: rooms, routes, and the tasks that keep them current."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, FastAPI, Request
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Lifespan

from app import __version__, garbage
from app.api.approvals import approval_router
from app.api.audit import audit_router
from app.api.bundles import bundle_routes
from app.api.decide import HotRoutes
from app.api.edge import Edge
from app.api.failures import install_failures
from app.api.leases import lease_router
from app.api.openapi import install_openapi
from app.api.quotas import quota_router
from app.api.readers import Readers
from app.api.readiness import LOOK_MS, Parts
from app.api.status import Health, status_router
from app.approvals.approvals import Approvals
from app.audit.intake.writers import Writers
from app.audit.people.people import People
from app.audit.reading.lag import LOOK_EVERY_S
from app.audit.reading.log import Log
from app.audit.reading.refusals import Refusals
from app.auth.keys import Keys, Principal
from app.background import Background
from app.clock import Clock
from app.database import create_engine
from app.decision.decide import Decider, Rooms
from app.decision.entries import Records
from app.decision.incidents import LOOK_EVERY_S as OWED_EVERY_S
from app.decision.incidents import Incidents
from app.decision.leases import Leases
from app.decision.once import Once
from app.decision.tally import Tally
from app.limiter.memory import MemoryLimiter
from app.observability.metrics import Metrics
from app.policy.loader import Loader
from app.quota.registry import Registry
from app.reports.nights.missed import Missing
from app.setting_sections import EMBEDDED
from app.settings import Settings
from app.telemetry.describe import describe
from app.transaction import Transactions
from app.wiring import Fleet, Nights, Rules, Surroundings, Tables, Works

EXPIRE_EVERY_S = 1.0
SHELF_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class Service:
    """The built service; `app` is what the HTTP server runs."""

    app: ASGIApp
    registry: Registry
    approvals: Approvals
    keys: Keys
    people: People
    loader: Loader
    limiter: MemoryLimiter
    health: Health
    background: Background
    missing_reports: Callable[[datetime], Awaitable[Missing]]
    """Nights of report.zone that are over and not made, by the log. Raises DatabaseDown."""

    async def drain(self) -> None:
        """Stop admitting: from now on every decision that would be is refused as `draining`."""
        self.health.draining = True
        await self.limiter.drain()

    async def close(self) -> None:
        """Answer open polls, so that connections can end, and follow nobody any more, so that nobody who ends is missed."""
        await asyncio.gather(self.background.stop(), self.loader.close())


def build(settings: Settings, around: Surroundings, clock: Clock, metrics: Metrics) -> Service:
    """All rooms, wired. Raises ConfigError for a bad models.yaml or secrets folder; nothing is connected yet."""
    engines = {role: create_engine(getattr(around.urls, role), settings.database) for role in ("registry", "intake", "log")}
    timeout_ms, ttl_ms = settings.database.timeout_ms, settings.lease.ttl_ms
    writers = Writers.of(engines["intake"], clock, metrics, marker=around.waiting, timeout_ms=timeout_ms)
    tables = Tables.of(settings, around, engines["registry"], clock, metrics, writers=writers)
    registry, approvals, keys, people = tables.registry, tables.approvals, tables.keys, tables.people
    rules = Rules.of(settings, around, clock, metrics, writers)
    fleet = Fleet.of(settings, around, clock, metrics, rules, catalog=tables.catalog)
    limiter, readings = fleet.limiter, fleet.readings
    records = Records(writers.intake, writers.pending, people, clock, approvals)
    audit = Log(engines["log"], writers.intake, clock, metrics, timeout_ms=timeout_ms)
    tally = Tally(metrics, writers.summaries)
    policy, probes = rules.policy, fleet.nodes.watch
    rooms = Rooms(clock, tables.catalog, registry, approvals, policy, readings, limiter, records, tally, ttl_ms, probes=probes)
    once = Once(Decider(rooms), limiter, metrics)
    background = Background(clock, metrics)
    looks = Transactions(engines["registry"], metrics, call="readyz", timeout_ms=LOOK_MS, logs=False)
    own_log_process = settings.database.url == EMBEDDED
    health = Parts(rooms, rules.loader, rules.opa, looks, background, audit.lag, own_log_process=own_log_process).health(metrics)
    nights = Nights.of(settings, around, engines["log"], clock, metrics)
    works = {**tables.works(), "policy": rules.loader.watch, **fleet.works()}
    lifespan = _Life(works, background, rules, fleet, writers, Incidents(limiter, records), audit, nights, engines).span
    refusals = Refusals(writers.pending, clock)
    routers = (
        status_router(health, metrics, lambda: describe(readings.view)),
        quota_router(registry, _principal),
        approval_router(approvals, registry, audit, Readers(_principal, refusals), clock),
        lease_router(limiter, registry, _principal),
        audit_router(audit, people, refusals, _principal),
        nights.router(audit, refusals, _principal),
    )
    cold = _cold(lifespan, routers, bundle_routes(rules.loader, around.opa_token))
    hot = HotRoutes(once, Leases(limiter, records, ttl_ms, metrics))
    edge = Edge(cold, hot.match, keys, metrics)
    return Service(edge, registry, approvals, keys, people, rules.loader, limiter, health, background, nights.missing)


@dataclass(frozen=True, slots=True)
class _Life:
    """What goes on beside requests, from the start of the service to its end."""

    works: Works
    background: Background
    rules: Rules
    fleet: Fleet
    writers: Writers
    incidents: Incidents
    audit: Log
    nights: Nights
    engines: Mapping[str, AsyncEngine]

    @contextlib.asynccontextmanager
    async def span(self, _: FastAPI) -> AsyncIterator[None]:
        """All of it goes on within, and what waits for the log is written at the end."""
        background = self.background
        async with self.rules.opa:
            for name, work in self.works.items():
                background.start(name, work)
            background.every("log", LOOK_EVERY_S, self.audit.lag.look)
            self.writers.begin(background)
            # Answers are exact without it; the gauge of leases and the memory of ended ones are current where nobody asks.
            background.every("leases", EXPIRE_EVERY_S, self.fleet.limiter.expire_due)
            background.every("obligations", OWED_EVERY_S, self.incidents.look)
            background.every("reports", SHELF_EVERY_S, self.nights.age.look)
            background.every("garbage", garbage.FULL_EVERY_S, garbage.collect)
            yield
            await background.stop()
            await self.incidents.stop()
            await self.writers.summaries.stop()
            await self.fleet.nodes.close()
            await self.rules.close()
            for engine in self.engines.values():
                await engine.dispose()


def _cold(lifespan: Lifespan[FastAPI], routers: Iterable[APIRouter], routes: Iterable[BaseRoute]) -> FastAPI:
    """All routes but the hot ones, which bypass the framework."""
    cold = FastAPI(title="Sluice", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    for router in routers:
        cold.include_router(router)
    cold.router.routes.extend(routes)
    install_failures(cold)
    install_openapi(cold)
    return cold


def _principal(request: Request) -> Principal:
    """The caller, whom the edge has checked before the body was read."""
    principal: Principal = request.state.principal
    return principal
