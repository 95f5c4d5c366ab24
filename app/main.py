"""Builds everything once and passes it down: rooms, routes, and the tasks that keep them current."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
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
from app.api.reports import reports_router
from app.api.status import Health, status_router
from app.approvals.approvals import Approvals
from app.audit.intake.writers import Writers
from app.audit.people.people import People
from app.audit.reading.lag import LOOK_EVERY_S
from app.audit.reading.log import Log
from app.audit.reading.refusals import Refusals
from app.auth.keys import Keys, Principal
from app.background import Background
from app.catalog.catalog import Catalog
from app.clock import Clock
from app.database import DatabaseUrls, create_engine
from app.decision.decide import Decider, Rooms
from app.decision.entries import Records
from app.decision.incidents import LOOK_EVERY_S as OWED_EVERY_S
from app.decision.incidents import Incidents
from app.decision.leases import Leases
from app.decision.once import Once
from app.decision.tally import Tally
from app.limiter.memory import MemoryLimiter
from app.nodes.nodes import Nodes
from app.observability.metrics import Metrics
from app.policy.batch import Batcher
from app.policy.last_good import LastGood
from app.policy.loader import Loader
from app.policy.nodes import NodePolicy
from app.policy.opa import OpaClient
from app.policy.policy import Policy
from app.policy.readings import Readings
from app.policy.record import PolicyRecord
from app.quota.registry import Registry
from app.reports.checking.shelved import checked_under
from app.reports.nights.missed import Missing
from app.reports.shelf.age import ShelfAge
from app.reports.shelf.made import manifests_of, not_made
from app.reports.shelf.shelf import Shelf
from app.reports.shelf.states import States
from app.setting_sections import EMBEDDED
from app.settings import Settings
from app.telemetry.describe import describe
from app.telemetry.follow import Follower, follow
from app.transaction import Transactions

MIB = 1024 * 1024
EXPIRE_EVERY_S = 1.0
SHELF_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is outside of the service: where its dependencies are and its own token for OPA."""

    urls: DatabaseUrls
    opa_url: str
    opa_binary: Path
    opa_token: str = field(repr=False)
    opa_cores: int
    telemetry: str
    telemetry_token: str | None = field(repr=False)
    secrets: Path
    last_good: Path
    """Where the last policy that ran is kept."""
    waiting: Path
    """Where it is kept since when something waits in memory for the log."""
    reports: Path
    """Where the finished nights are."""
    report_root: Path
    """The root certificate of the report keys, which vouches for them."""


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
    timeout_ms = settings.database.timeout_ms
    writers = Writers.of(engines["intake"], clock, metrics, marker=around.waiting, timeout_ms=timeout_ms)
    people = People(engines["registry"], around.secrets, clock, metrics, timeout_ms=timeout_ms)
    registry = Registry(engines["registry"], clock, metrics, people, timeout_ms=timeout_ms, gaps=writers.gaps)
    keys = Keys(engines["registry"], clock, metrics, timeout_ms=timeout_ms)
    catalog = Catalog(Path(settings.models), metrics)
    approvals = Approvals(engines["registry"], clock, metrics, people, catalog.model, timeout_ms=timeout_ms, gaps=writers.gaps)
    rules = _rules(settings, around, clock, metrics, writers)
    readings = Readings(rules.policy)
    limiter = MemoryLimiter(clock, keep_ms=settings.lease.keep_ms, records_bytes=settings.lease.records_mib * MIB, metrics=metrics)
    stale_ms = settings.telemetry.stale_ms
    nodes = Nodes(NodePolicy(rules.policy, rules.batcher, clock, metrics), limiter, clock, metrics, catalog.all, stale_ms=stale_ms)
    follower = Follower([readings.see, nodes.see], clock, metrics, catalog.all, stale_ms=stale_ms, judge=nodes.watch)
    records = Records(writers.intake, writers.pending, people, clock, approvals)
    audit = Log(engines["log"], writers.intake, clock, metrics, timeout_ms=timeout_ms)
    tally = Tally(metrics, writers.summaries)
    rooms = Rooms(
        clock, catalog, registry, approvals, rules.policy, readings, limiter, records, tally, settings.lease.ttl_ms, probes=nodes.watch
    )
    incidents = Incidents(limiter, records)
    once = Once(Decider(rooms), limiter, metrics)
    background = Background(clock, metrics)
    looks = Transactions(engines["registry"], metrics, call="readyz", timeout_ms=LOOK_MS, logs=False)
    health = Parts(rooms, rules.loader, rules.opa, looks, background, audit.lag, own_log_process=settings.database.url == EMBEDDED).health(
        metrics
    )

    def follow_telemetry() -> Coroutine[Any, Any, None]:
        return follow(around.telemetry, follower, clock, token=around.telemetry_token)

    shelf = Shelf(around.reports)
    shelf_age = ShelfAge(shelf, clock, metrics)
    works: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
        "quotas": registry.follow,
        "approvals": approvals.follow,
        "keys": keys.follow,
        "models": catalog.watch,
        "policy": rules.loader.watch,
        "readings": readings.publish,
        "telemetry": follow_telemetry,
        **nodes.work(),
    }

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with rules.opa:
            for name, work in works.items():
                background.start(name, work)
            background.every("log", LOOK_EVERY_S, audit.lag.look)
            writers.begin(background)
            # Answers are exact without it; the gauge of leases and the memory of ended ones are current where nobody asks.
            background.every("leases", EXPIRE_EVERY_S, limiter.expire_due)
            background.every("obligations", OWED_EVERY_S, incidents.look)
            background.every("reports", SHELF_EVERY_S, shelf_age.look)
            background.every("garbage", garbage.FULL_EVERY_S, garbage.collect)
            yield
            await background.stop()
            await incidents.stop()
            await writers.summaries.stop()
            await nodes.close()
            await rules.close()
            for engine in engines.values():
                await engine.dispose()

    refusals = Refusals(writers.pending, clock)
    nights = Transactions(engines["log"], metrics, call="reports", timeout_ms=timeout_ms, logs=False)
    routers = (
        status_router(health, metrics, lambda: describe(readings.view)),
        quota_router(registry, _principal),
        approval_router(approvals, registry, audit, Readers(_principal, refusals), clock),
        lease_router(limiter, registry, _principal),
        audit_router(audit, people, refusals, _principal),
        reports_router(
            shelf,
            States(checked_under(around.report_root)),
            lambda: manifests_of(nights, clock.utcnow()),
            audit,
            refusals=refusals,
            principal=_principal,
        ),
    )
    cold = _cold(lifespan, routers, bundle_routes(rules.loader, around.opa_token))
    hot = HotRoutes(once, Leases(limiter, records, settings.lease.ttl_ms))
    return Service(
        Edge(cold, hot.match, keys, metrics),
        registry,
        approvals,
        keys,
        people,
        rules.loader,
        limiter,
        health,
        background,
        lambda now: not_made(nights, now, settings.report.zone),
    )


@dataclass(frozen=True, slots=True)
class _Rules:
    """The policy, whom it asks, and what keeps it current."""

    opa: OpaClient
    batcher: Batcher
    policy: Policy
    loader: Loader

    async def close(self) -> None:
        """End what is under way."""
        await self.policy.close()
        await self.batcher.close()


def _rules(settings: Settings, around: Surroundings, clock: Clock, metrics: Metrics, writers: Writers) -> _Rules:
    opa = OpaClient(around.opa_url, connections=4 * around.opa_cores, metrics=metrics)
    batcher = Batcher(opa, clock, metrics, timeout_ms=settings.opa.timeout_ms, calls=around.opa_cores)
    policy = Policy(batcher, clock, metrics, memo_bytes=settings.policy.memo_mib * MIB, publish_wait_ms=settings.policy.publish_wait_ms)
    loader = Loader(
        Path(settings.policy.path),
        around.opa_binary,
        policy,
        PolicyRecord(writers.pending.add, clock),
        metrics,
        modes=settings.policy.rules,
        last_good=LastGood(around.last_good),
    )
    return _Rules(opa, batcher, policy, loader)


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
