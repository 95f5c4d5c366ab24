"""Approvals in PostgreSQL: the statements, and nothing that thinks.

When down: the errors of the driver go to the transaction that runs these, which turns them into DatabaseDown.
"""

# ruff: noqa: S608 - statements of constants

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.approvals.approval import Approval, Standing, Step
from app.errors import NotFound
from app.follower import Feed

_STEPS = ("asked", "answered", "revoked")
_COLUMNS = ", ".join(
    ("id, tenant, model, action, purpose, subject, expires, state", *(f"{one}, {one}_by, {one}_key, {one}_reason" for one in _STEPS))
)
# Those that ended long ago tell nobody anything, so a start does not read them; a day, since our clock and the database's may differ.
FEED = Feed(
    "sluice_approval",
    f"SELECT {_COLUMNS} FROM registry.approval WHERE changed >= CAST(:since AS xid8) AND expires > now() - interval '1 day'",
)
_INSERT = text("""
    INSERT INTO registry.approval (id, tenant, model, action, purpose, subject, expires, asked, asked_by, asked_key, asked_reason)
    VALUES (:id, :tenant, :model, :action, :purpose, :subject, :expires, :at, :by, :key_id, :reason)
""")
_COUNT_OPEN = text("""
    SELECT count(*) FROM registry.approval WHERE tenant = :tenant AND state IN ('asked', 'approved') AND expires > :now
""")
_FIND = text(f"SELECT {_COLUMNS} FROM registry.approval WHERE id = :id")
_LOCK = text(f"SELECT {_COLUMNS} FROM registry.approval WHERE id = :id FOR UPDATE")
_MOVE = {
    step: text(f"""
        UPDATE registry.approval
        SET state = :state, {step} = :at, {step}_by = :by, {step}_key = :key_id, {step}_reason = :reason, changed = pg_current_xact_id()
        WHERE id = :id
    """)
    for step in ("answered", "revoked")
}
_NOTIFY = text(f"NOTIFY {FEED.channel}")
_LIST = f"SELECT {_COLUMNS} FROM registry.approval WHERE "
_STANDING: dict[Standing, str] = {
    "asked": "state = 'asked' AND expires > :now",
    "approved": "state = 'approved' AND expires > :now",
    "refused": "state = 'refused'",
    "revoked": "state = 'revoked'",
    "expired": "state IN ('asked', 'approved') AND expires <= :now",
}


@dataclass(frozen=True, slots=True)
class Filters:
    """Which approvals are listed; None: all. `below` is the last id of the page before."""

    tenant: str | None = None
    model: str | None = None
    standing: Standing | None = None
    below: UUID | None = None

    @property
    def as_query(self) -> dict[str, str]:
        """Those that are set, as the record of the reading names them."""
        named = {"tenant": self.tenant, "model": self.model, "state": self.standing, "cursor": self.below}
        return {name: str(value) for name, value in named.items() if value is not None}


def approval(row: Row[Any]) -> Approval:
    """The row as a value."""
    return Approval(
        id=row.id,
        tenant=row.tenant,
        model=row.model,
        action=row.action,
        purpose=row.purpose,
        subject=row.subject,
        expires=row.expires,
        state=row.state,
        asked=_step(row, "asked"),
        answered=None if row.answered is None else _step(row, "answered"),
        revoked=None if row.revoked is None else _step(row, "revoked"),
    )


async def count_open(connection: AsyncConnection, tenant: str, now: datetime) -> int:
    """How many of a tenant are asked for or in force."""
    return int(await connection.scalar(_COUNT_OPEN, {"tenant": tenant, "now": now}) or 0)


async def insert(connection: AsyncConnection, made: Approval) -> None:
    """A new approval, and the word to other replicas."""
    kept = {name: getattr(made, name) for name in ("id", "tenant", "model", "action", "purpose", "subject", "expires")}
    await connection.execute(_INSERT, kept | _told(made.asked))
    await connection.execute(_NOTIFY)


async def find(connection: AsyncConnection, identity: UUID) -> Approval:
    """One approval, whatever became of it. Raises NotFound."""
    return _one((await connection.execute(_FIND, {"id": identity})).one_or_none(), identity)


async def lock(connection: AsyncConnection, identity: UUID) -> Approval:
    """The same, held until the transaction ends: of two who answer at once the second sees what the first did. Raises NotFound."""
    return _one((await connection.execute(_LOCK, {"id": identity})).one_or_none(), identity)


async def move(connection: AsyncConnection, moved: Approval, step: Step) -> None:
    """What `step` made of an approval, and the word to other replicas."""
    statement = _MOVE["revoked" if moved.state == "revoked" else "answered"]
    await connection.execute(statement, {"id": moved.id, "state": moved.state} | _told(step))
    await connection.execute(_NOTIFY)


async def page(connection: AsyncConnection, filters: Filters, *, now: datetime, most: int) -> list[Approval]:
    """At most so many approvals, newest first."""
    given = {"tenant": filters.tenant, "model": filters.model, "below": filters.below}
    wanted = {"tenant": "tenant = :tenant", "model": "model = :model", "below": "id < :below"}
    conditions = [wanted[name] for name, value in given.items() if value is not None]
    if filters.standing is not None:
        conditions.append(_STANDING[filters.standing])
    statement = text(f"{_LIST}{' AND '.join(conditions) or 'true'} ORDER BY id DESC LIMIT :most")
    values: dict[str, Any] = {**given, "now": now, "most": most}
    rows = await connection.execute(statement, {name: values[name] for name in statement.compile().params})
    return [approval(row) for row in rows]


def _one(row: Row[Any] | None, identity: UUID) -> Approval:
    if row is None:
        raise NotFound(f"no approval {str(identity)!r}", field="approval_id")
    return approval(row)


def _step(row: Row[Any], name: str) -> Step:
    return Step(getattr(row, f"{name}_by"), getattr(row, f"{name}_key"), getattr(row, name), getattr(row, f"{name}_reason"))


def _told(step: Step) -> dict[str, Any]:
    return {"at": step.at, "by": step.by, "key_id": step.key_id, "reason": step.reason}
