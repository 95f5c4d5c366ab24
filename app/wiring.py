"""Rooms of serve that belong together, built and connected to each other: rules, tables, nodes, nights."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from sqlalchemy.ext.asyncio import AsyncEngine

from app.api.reports import reports_router
from app.approvals.approvals import Approvals
from app.audit.intake.writers import Writers
from app.audit.people.people import People
from app.audit.reading.log import Log
from app.audit.reading.refusals import Refusals
from app.auth.keys import Keys
from app.catalog.catalog import Catalog
from app.clock import Clock
from app.database import DatabaseUrls
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
from app.settings import Settings
from app.telemetry.follow import Follower, follow
from app.transaction import Transactions

MIB = 1024 * 1024
Works = Mapping[str, Callable[[], Coroutine[Any, Any, None]]]
"""What goes on beside requests, until it is stopped, by name."""


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
class Rules:
    """The policy, whom it asks, and what keeps it current."""

    opa: OpaClient
    batcher: Batcher
    policy: Policy
    loader: Loader

    @classmethod
    def of(cls, settings: Settings, around: Surroundings, clock: Clock, metrics: Metrics, writers: Writers) -> "Rules":
        """As the settings have it."""
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
        return cls(opa, batcher, policy, loader)

    async def close(self) -> None:
        """End what is under way."""
        await self.policy.close()
        await self.batcher.close()


@dataclass(frozen=True, slots=True)
class Tables:
    """What the tables of the registry and the file of models say, each kept current in memory."""

    people: People
    registry: Registry
    keys: Keys
    catalog: Catalog
    approvals: Approvals

    @classmethod
    def of(
        cls, settings: Settings, around: Surroundings, engine: AsyncEngine, clock: Clock, metrics: Metrics, *, writers: Writers
    ) -> "Tables":
        """With an engine of role sluice_registry. Raises ConfigError for a bad models.yaml or secrets folder."""
        timeout_ms, gaps = settings.database.timeout_ms, writers.gaps
        people = People(engine, around.secrets, clock, metrics, timeout_ms=timeout_ms)
        registry = Registry(engine, clock, metrics, people, timeout_ms=timeout_ms, gaps=gaps)
        keys = Keys(engine, clock, metrics, timeout_ms=timeout_ms)
        catalog = Catalog(Path(settings.models), metrics)
        approvals = Approvals(engine, clock, metrics, people, catalog.model, timeout_ms=timeout_ms, gaps=gaps)
        return cls(people, registry, keys, catalog, approvals)

    def works(self) -> Works:
        """What keeps them current."""
        return {
            "quotas": self.registry.follow,
            "approvals": self.approvals.follow,
            "keys": self.keys.follow,
            "models": self.catalog.watch,
        }


@dataclass(frozen=True, slots=True)
class Fleet:
    """The nodes that models run on: what is measured of them, and which a request may go to."""

    readings: Readings
    limiter: MemoryLimiter
    nodes: Nodes
    follow: Callable[[], Coroutine[Any, Any, None]]
    """Follows what is measured."""

    @classmethod
    def of(cls, settings: Settings, around: Surroundings, clock: Clock, metrics: Metrics, rules: Rules, *, catalog: Catalog) -> "Fleet":
        """As the settings have it."""
        readings = Readings(rules.policy)
        limiter = MemoryLimiter(clock, keep_ms=settings.lease.keep_ms, records_bytes=settings.lease.records_mib * MIB, metrics=metrics)
        stale_ms = settings.telemetry.stale_ms
        nodes = Nodes(NodePolicy(rules.policy, rules.batcher, clock, metrics), limiter, clock, metrics, catalog.all, stale_ms=stale_ms)
        follower = Follower([readings.see, nodes.see], clock, metrics, catalog.all, stale_ms=stale_ms, judge=nodes.watch)
        return cls(readings, limiter, nodes, lambda: follow(around.telemetry, follower, clock, token=around.telemetry_token))

    def works(self) -> Works:
        """What keeps it current."""
        return {"readings": self.readings.publish, "telemetry": self.follow, **self.nodes.work()}


@dataclass(frozen=True, slots=True)
class Nights:
    """The finished nights on the shelf, and what the log says was made."""

    shelf: Shelf
    age: ShelfAge
    states: States
    zone: str
    transactions: Transactions
    clock: Clock

    @classmethod
    def of(cls, settings: Settings, around: Surroundings, engine: AsyncEngine, clock: Clock, metrics: Metrics) -> "Nights":
        """With an engine of role sluice_log."""
        shelf = Shelf(around.reports)
        transactions = Transactions(engine, metrics, call="reports", timeout_ms=settings.database.timeout_ms, logs=False)
        states = States(checked_under(around.report_root), around.report_root)
        return cls(shelf, ShelfAge(shelf, clock, metrics), states, settings.report.zone, transactions, clock)

    def router(self, audit: Log, refusals: Refusals, principal: Callable[..., Any]) -> APIRouter:
        """The routes under /reports."""

        async def made() -> dict[str, str | None]:
            return await manifests_of(self.transactions, self.clock.utcnow())

        return reports_router(self.shelf, self.states, made, audit, refusals=refusals, principal=principal)

    async def missing(self, now: datetime) -> Missing:
        """Nights of report.zone that are over and not made, by the log. Raises DatabaseDown."""
        return await not_made(self.transactions, now, self.zone)
