"""Quotas in PostgreSQL: the statements, and nothing that thinks.

When down: the errors of the driver go to the transaction that runs these, which turns them into DatabaseDown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.intake.intake import hand_over
from app.audit.people.subject_keys import SubjectKey
from app.audit.records.entry import Entry, canonical
from app.audit.records.quota import quota_deleted, quota_in_force
from app.follower import Feed
from app.quota.quota import Quota, decimals, diff

_COLUMNS = "tenant, version, deleted, qps, tpm, concurrency, rate_factors, costs, sla_class, region, zone"
FEED = Feed("sluice_quota", f"SELECT {_COLUMNS} FROM registry.tenant_quota WHERE changed >= CAST(:since AS xid8)")  # noqa: S608 - constants

# A tenant that never was gets a row of version 0, so that there always is one row to lock: creations queue up like changes.
_ENSURE = text(
    "INSERT INTO registry.tenant_quota (tenant, version, deleted, updated) VALUES (:tenant, 0, true, :at) ON CONFLICT DO NOTHING"
)
_LOCK = text(f"SELECT {_COLUMNS} FROM registry.tenant_quota WHERE tenant = :tenant FOR UPDATE")  # noqa: S608 - constants
_UPDATE = text("""
    UPDATE registry.tenant_quota
    SET version = :version, deleted = :deleted, qps = :qps, tpm = :tpm, concurrency = :concurrency,
        rate_factors = CAST(:rate_factors AS jsonb), costs = CAST(:costs AS jsonb),
        sla_class = :sla_class, region = :region, zone = :zone, updated = :at, changed = pg_current_xact_id()
    WHERE tenant = :tenant
""")
_RECORD = text("""
    INSERT INTO registry.quota_history (tenant, version, operation, before, after, diff, operator, reason, at)
    VALUES (:tenant, :version, :operation, CAST(:before AS json), CAST(:after AS json), CAST(:diff AS json), :operator, :reason, :at)
""")
_NOTIFY = text(f"NOTIFY {FEED.channel}")
_HISTORY = text("""
    SELECT version, operation, CAST(before AS text) AS before, CAST(after AS text) AS after, CAST(diff AS text) AS diff, operator, reason, at
    FROM registry.quota_history WHERE tenant = :tenant AND version < :below ORDER BY version DESC LIMIT :most
""")


@dataclass(frozen=True, slots=True)
class Stored:
    """A tenant's row: version 0 and no quota where it never was, no quota where it was deleted."""

    tenant: str
    version: int
    quota: Quota | None


@dataclass(frozen=True, slots=True)
class By:
    """Who changes, when and why."""

    operator: str
    reason: str
    at: datetime
    key: SubjectKey
    """Of the operator: seals the reason in the log."""


@dataclass(frozen=True, slots=True)
class Version:
    """One line of a tenant's history. `before`, `after` and `diff` are in recorded form (see app/quota/quota.py)."""

    version: int
    operation: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    diff: list[dict[str, Any]]
    operator: str
    reason: str
    at: datetime


def stored(row: Row[Any]) -> Stored:
    """The row as a value. Numbers come as the database keeps them, exact."""
    if row.deleted:
        return Stored(row.tenant, row.version, None)
    quota = Quota(
        qps=row.qps,
        tpm=row.tpm,
        concurrency=row.concurrency,
        rate_factors=decimals(row.rate_factors),
        costs=decimals(row.costs),
        sla_class=row.sla_class,
        region=row.region,
        zone=row.zone,
    )
    return Stored(row.tenant, row.version, quota)


async def lock(connection: AsyncConnection, tenant: str, at: datetime) -> Stored:
    """The tenant's newest state, held until the transaction ends: of several writers one goes on, the others see its result."""
    await connection.execute(_ENSURE, {"tenant": tenant, "at": at})
    row = (await connection.execute(_LOCK, {"tenant": tenant})).one()
    return stored(row)


async def write(connection: AsyncConnection, current: Stored, wanted: Quota | None, by: By) -> Stored:
    """The next version, with its history, its log entry and the word to other replicas, all in the caller's transaction."""
    changed = Stored(current.tenant, current.version + 1, wanted)
    await connection.execute(_UPDATE, _row(changed, by.at))
    await connection.execute(_RECORD, _history_row(current, changed, by))
    await hand_over(connection, _entry(current, changed, by))
    await connection.execute(_NOTIFY)
    return changed


async def history(connection: AsyncConnection, tenant: str, *, below: int, most: int) -> list[Version]:
    """Versions under `below`, newest first."""
    rows = await connection.execute(_HISTORY, {"tenant": tenant, "below": below, "most": most})
    return [
        Version(row.version, row.operation, _json(row.before), _json(row.after), _json(row.diff), row.operator, row.reason, row.at)
        for row in rows
    ]


def _row(changed: Stored, at: datetime) -> dict[str, Any]:
    quota = changed.quota or Quota()
    return {
        "tenant": changed.tenant,
        "version": changed.version,
        "deleted": changed.quota is None,
        "qps": quota.qps,
        "tpm": quota.tpm,
        "concurrency": quota.concurrency,
        "rate_factors": _jsonb(quota.rate_factors),
        "costs": _jsonb(quota.costs),
        "sla_class": quota.sla_class,
        "region": quota.region,
        "zone": quota.zone,
        "at": at,
    }


def _jsonb(numbers: Mapping[str, Any]) -> str:
    return orjson.dumps({model: str(number) for model, number in numbers.items()}).decode()


def _json(recorded: str | None) -> Any:
    return None if recorded is None else orjson.loads(recorded)


def _diff(current: Stored, changed: Stored) -> list[dict[str, Any]]:
    return [change.record() for change in diff(current.quota, changed.quota)]


def _history_row(current: Stored, changed: Stored, by: By) -> dict[str, Any]:
    operation = "delete" if changed.quota is None else "create" if current.quota is None else "update"
    return {
        "tenant": changed.tenant,
        "version": changed.version,
        "operation": operation,
        "before": canonical(current.quota.record()).decode() if current.quota else None,
        "after": canonical(changed.quota.record()).decode() if changed.quota else None,
        "diff": canonical(_diff(current, changed)).decode(),
        "operator": by.operator,
        "reason": by.reason,
        "at": by.at,
    }


def _entry(current: Stored, changed: Stored, by: By) -> Entry:
    common: dict[str, Any] = {
        "recorded": by.at,
        "operator": by.operator,
        "tenant": changed.tenant,
        "version": changed.version,
        "before": current.quota.record() if current.quota else None,
        "diff": _diff(current, changed),
        "sealed": by.key.seal({"reason": by.reason}),
    }
    if changed.quota is None:
        return quota_deleted(**common)
    return quota_in_force(after=changed.quota.record(), **common)
