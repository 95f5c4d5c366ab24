"""Who may have how much: tenants and their quotas, in memory for decisions and in PostgreSQL for good.

A change is one transaction: the new version, its history, its log entry, and the word to other replicas. Once it is
committed, this process's memory follows before the caller hears of it, so the next decision uses it.

When down: decisions go on from memory; changes and history raise DatabaseDown; the follower catches up afterwards.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from typing import Any

import structlog
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.audit.intake.gaps import Gaps
from app.audit.people.people import People
from app.clock import Clock
from app.errors import BadRequest, NotFound, PreconditionFailed, PreconditionRequired
from app.follower import Follower
from app.ids import plain_text, tenant_id
from app.observability.metrics import Metrics
from app.policy.question import Section
from app.quota import store
from app.quota.quota import Quota, merge, parse_quota, time_zone
from app.quota.store import By, Stored, Version
from app.transaction import Transactions

MAX_REASON_CHARS = 2000  # a paragraph; reports print it in one cell
MAX_OPERATOR_CHARS = 200
HISTORY_PAGE = 100  # versions that one page of history has at most
SEED_OPERATOR = "seed"
_NEWEST = 2**62  # above every version


@dataclass(frozen=True, slots=True)
class Tenant:
    """One tenant as decisions use it, built once per version."""

    id: str
    quota: Quota
    version: int
    facts: dict[str, Any]
    """The `tenant` section of a question: the quota's facts, id and version."""
    section: Section
    zoneinfo: tzinfo

    @classmethod
    def of(cls, tenant_id: str, quota: Quota, version: int) -> "Tenant":
        """The tenant `tenant_id` with `version` of its quota."""
        facts = {"id": tenant_id, **quota.facts(), "version": version}
        return cls(tenant_id, quota, version, facts, Section.of(facts), time_zone(quota.zone))


class Tenants:
    """Tenants by id, for reading. From memory, never waiting."""

    def __init__(self, engine: AsyncEngine, clock: Clock, metrics: Metrics, *, timeout_ms: int) -> None:
        self._tenants: dict[str, Tenant] = {}
        self._versions: dict[str, int] = {}  # of deleted tenants too, so that a late read of an old row brings none back
        self._transactions = Transactions(engine, metrics, call="registry", timeout_ms=timeout_ms)
        self._follower = Follower(engine, store.FEED, self._install, clock, metrics, timeout_ms=timeout_ms)
        self._log = structlog.get_logger(__name__)

    def tenant(self, tenant: str) -> Tenant | None:
        """The tenant with this id (in NFC), or None."""
        return self._tenants.get(tenant)

    def tenants(self) -> list[Tenant]:
        """All tenants, by id."""
        return sorted(self._tenants.values(), key=lambda tenant: tenant.id)

    async def load(self) -> None:
        """Read all tenants once, before the first decision. Raises DatabaseDown."""
        await self._follower.load()

    async def follow(self) -> None:
        """Keep up with changes of other processes, for ever: within milliseconds, or 5 s where a notification is lost."""
        await self._follower.follow()

    async def history(self, tenant: str, *, below: int | None = None, most: int = HISTORY_PAGE) -> list[Version]:
        """Versions newest first, deleted tenants included. Raises NotFound for a tenant that never was, and DatabaseDown."""
        name = tenant_id(tenant)

        async def read(connection: AsyncConnection) -> list[Version]:
            return await store.history(connection, name, below=_NEWEST if below is None else below, most=min(most, HISTORY_PAGE))

        versions = await self._transactions.run(read)
        if not versions and below is None:
            raise NotFound(f"no tenant {name!r}", field="tenant")
        return versions

    def _install(self, rows: Iterable[Row[Any]]) -> None:
        for row in rows:
            try:
                self._remember(store.stored(row))
            except (ValueError, ArithmeticError) as error:  # one row that cannot be read leaves the others, and its last good version
                self._log.error("registry.row_unreadable", tenant=row.tenant, version=row.version, error=str(error))

    def _remember(self, newest: Stored) -> None:
        if newest.version <= self._versions.get(newest.tenant, 0):
            return
        if newest.quota is None:
            self._tenants.pop(newest.tenant, None)
        else:
            self._tenants[newest.tenant] = _in_force(newest)
        self._versions[newest.tenant] = newest.version


class Registry(Tenants):
    """Tenants by id, and the changes of their quotas."""

    def __init__(
        self,
        engine: AsyncEngine,
        clock: Clock,
        metrics: Metrics,
        people: People,
        *,
        timeout_ms: int,
        gaps: Gaps | None = None,
    ) -> None:
        super().__init__(engine, clock, metrics, timeout_ms=timeout_ms)
        self._clock = clock
        self._people = people
        self._gaps = gaps or Gaps(clock)  # a command that only makes one change tells nobody of its failure but its caller

    async def put(
        self, tenant: str, document: object, *, if_match: int | None, operator: str, reason: str = "", must_be_new: bool = False
    ) -> Tenant:
        """Create or replace a quota. A create needs no `if_match`; `must_be_new` (If-None-Match: *) refuses to replace.

        The same quota again changes nothing, not even the version. Raises BadRequest, PreconditionRequired,
        PreconditionFailed, DatabaseDown.
        """
        quota = parse_quota(document)

        def replaced(current: Stored) -> Quota:
            if current.quota and must_be_new:
                raise PreconditionFailed(f"tenant {current.tenant!r} exists, in version {current.version}")
            if current.quota or if_match is not None:
                _check_version(current, if_match)
            return quota

        return _in_force(await self._change(tenant, replaced, operator, reason))

    async def patch(self, tenant: str, patch: object, *, if_match: int | None, operator: str, reason: str = "") -> Tenant:
        """Change a quota by a JSON merge patch (RFC 7396: null removes). Raises as `put` does, and NotFound."""
        if not isinstance(patch, Mapping):
            raise BadRequest("the patch must be a JSON object")

        def patched(current: Stored) -> Quota:
            quota = _existing(current)
            _check_version(current, if_match)
            return parse_quota(merge(quota.facts(), patch))

        return _in_force(await self._change(tenant, patched, operator, reason))

    async def delete(self, tenant: str, *, if_match: int | None, operator: str, reason: str = "") -> None:
        """Delete a quota; its history stays, and a quota created anew goes on counting versions. Raises as `patch` does."""

        def deleted(current: Stored) -> None:
            _existing(current)
            _check_version(current, if_match)

        await self._change(tenant, deleted, operator, reason)

    async def seed(self, documents: Mapping[str, object]) -> None:
        """Create each tenant that never existed: an operator's edit or deletion is never undone. Raises as `put` does."""
        for tenant, document in documents.items():
            await self._change(tenant, _if_never(parse_quota(document)), SEED_OPERATOR, "example")

    async def _change(self, tenant: str, decide: Callable[[Stored], Quota | None], operator: str, reason: str) -> Stored:
        """Put in force what `decide` makes of the newest state, which is locked meanwhile; `decide` refuses by raising."""
        name = tenant_id(tenant)
        operator, reason = plain_text(operator, "operator", MAX_OPERATOR_CHARS), plain_text(reason, "reason", MAX_REASON_CHARS)

        async def change(connection: AsyncConnection, by: By) -> Stored:
            current = await store.lock(connection, name, by.at)
            wanted = decide(current)
            return current if wanted == current.quota else await store.write(connection, current, wanted, by)

        with self._gaps.refusing():
            # Outside of the transaction, which holds a connection of the same pool already.
            by = By(operator, reason, self._clock.utcnow(), await self._people.operator_key(operator))
            newest = await self._transactions.run(partial(change, by=by))
        self._remember(newest)
        return newest


def _in_force(state: Stored) -> Tenant:
    return Tenant.of(state.tenant, _existing(state), state.version)


def _existing(state: Stored) -> Quota:
    if state.quota is None:
        raise NotFound(f"no tenant {state.tenant!r}", field="tenant")
    return state.quota


def _check_version(current: Stored, if_match: int | None) -> None:
    if if_match is None:
        raise PreconditionRequired(f"tenant {current.tenant!r} exists, in version {current.version}; If-Match is missing")
    if current.quota is None or if_match != current.version:
        newest = f"its newest version is {current.version}" if current.quota else "it does not exist"
        raise PreconditionFailed(f"If-Match names version {if_match} of tenant {current.tenant!r}, but {newest}")


def _if_never(quota: Quota) -> Callable[[Stored], Quota | None]:
    return lambda current: current.quota if current.version else quota
