"""Who is calling: keys with roles, and for a gateway the tenants it may speak for.

A key is 32 random bytes, so its SHA-256 is as hard to guess as the key and a slow hash would buy nothing. Only that digest
is stored; the key itself is shown once, to whoever made it.

When down: known keys go on working from memory, revocations made elsewhere included until the outage began; creating and
revoking raise DatabaseDown.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from uuid_utils.compat import uuid7

from app.audit.intake.intake import hand_over
from app.audit.records.key import key_created, key_revoked
from app.clock import Clock
from app.errors import BadRequest, Conflict, Forbidden, NotFound, Unauthorized
from app.follower import Feed, Follower
from app.ids import ANY_TENANT, identifier, tenant_id
from app.observability.metrics import Metrics
from app.transaction import Transactions

Role = Literal["gateway", "operator", "approver", "auditor", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
PREFIX = "sluice_"  # lets secret scanners find a leaked key
KEY_BYTES = 32
_KEY_CHARS = len(PREFIX) + 43  # base64url of 32 bytes without padding

_COLUMNS = "id, name, digest, roles, tenants, created, expires, revoked"
_FEED = Feed("sluice_key", f"SELECT {_COLUMNS} FROM registry.api_key WHERE changed >= CAST(:since AS xid8)")  # noqa: S608 - constants
_INSERT = text("""
    INSERT INTO registry.api_key (id, name, digest, roles, tenants, created, expires)
    VALUES (:id, :name, :digest, :roles, :tenants, :created, :expires)
""")
_LIST = text(f"SELECT {_COLUMNS} FROM registry.api_key ORDER BY created, id")  # noqa: S608 - constants
# An id comes before a name that looks like it, and a key in force before revoked ones of the same name; the newest of those stands for them all.
_FIND = text(
    f"SELECT {_COLUMNS} FROM registry.api_key WHERE CAST(id AS text) = :which OR name = :which "  # noqa: S608 - constants
    "ORDER BY CAST(id AS text) = :which DESC, revoked DESC NULLS FIRST LIMIT 1 FOR UPDATE"
)
_REVOKE = text("UPDATE registry.api_key SET revoked = :at, changed = pg_current_xact_id() WHERE id = :id")
_NOTIFY = text(f"NOTIFY {_FEED.channel}")


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller whose key is in force."""

    key_id: str
    name: str
    roles: frozenset[str]
    tenants: frozenset[str]

    def may_speak_for(self, tenant: str) -> bool:
        """Whether this caller may ask for `tenant`."""
        return tenant in self.tenants or ANY_TENANT in self.tenants

    def require(self, *roles: Role) -> None:
        """Raises Forbidden unless the caller has one of `roles`."""
        if self.roles.isdisjoint(roles):
            raise Forbidden(f"key {self.name!r} has role {', '.join(sorted(self.roles))}; this call needs {' or '.join(roles)}")

    def require_tenant(self, tenant: str) -> None:
        """Raises Forbidden unless the caller may speak for `tenant`."""
        if not self.may_speak_for(tenant):
            raise Forbidden(f"key {self.name!r} may not speak for tenant {tenant!r}", field="tenant")


@dataclass(frozen=True, slots=True)
class Key:
    """What is known of a key; never the key itself."""

    id: UUID
    digest: bytes = field(repr=False)
    principal: Principal
    created: datetime
    expires: datetime | None
    revoked: datetime | None


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A new key with its text, which exists here and nowhere else."""

    text: str
    key: Key

    def __repr__(self) -> str:
        return f"CreatedKey({self.key.principal.name!r})"


class Keys:
    """Keys by digest. Checking one is from memory and never waits."""

    def __init__(self, engine: AsyncEngine, clock: Clock, metrics: Metrics, *, timeout_ms: int) -> None:
        self._clock = clock
        self._keys: dict[bytes, Key] = {}
        self._transactions = Transactions(engine, metrics, call="keys", timeout_ms=timeout_ms)
        self._follower = Follower(engine, _FEED, self._install, clock, metrics, timeout_ms=timeout_ms)

    def principal(self, bearer: str | None) -> Principal:
        """The caller who holds the key `bearer`. Raises Unauthorized for a missing, unknown, revoked or expired one."""
        if not bearer:
            raise Unauthorized("no key was sent")
        if len(bearer) != _KEY_CHARS or not bearer.isascii():
            raise Unauthorized("the key is unknown")
        digest = _digest(bearer)
        key = self._keys.get(digest)
        # What a lookup's time can tell is about the digest, which nobody can choose; the comparison is constant all the same.
        if key is None or not hmac.compare_digest(key.digest, digest):
            raise Unauthorized("the key is unknown")
        if key.revoked is not None:
            raise Unauthorized(f"key {key.principal.name!r} is revoked")
        if key.expires is not None and key.expires <= self._clock.utcnow():
            raise Unauthorized(f"key {key.principal.name!r} has expired")
        return key.principal

    async def load(self) -> None:
        """Read all keys once, before the first call. Raises DatabaseDown."""
        await self._follower.load()

    async def follow(self) -> None:
        """Keep up with keys made and revoked by other processes, for ever."""
        await self._follower.follow()

    async def create(
        self, *, name: str, roles: Collection[str], tenants: Collection[str] = (), expires: datetime | None = None, operator: str
    ) -> CreatedKey:
        """A new key, logged in the same transaction. Raises BadRequest, Conflict where the name is in use, DatabaseDown."""
        secret = PREFIX + base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).rstrip(b"=").decode()
        now = self._clock.utcnow()
        if expires is not None and expires <= now:
            raise BadRequest("expires: lies in the past", field="expires")
        identity = uuid7()
        principal = Principal(str(identity), identifier(name, "name"), _roles(roles), _tenants(tenants, roles))
        key = Key(identity, _digest(secret), principal, now, expires, None)
        try:
            await self._transactions.run(lambda connection: _insert(connection, key, operator))
        except IntegrityError:
            raise Conflict(f"a key named {name!r} is in force", hint="Revoke it first, or choose another name.", field="name") from None
        self._remember(key)
        return CreatedKey(secret, key)

    async def list(self) -> list[Key]:
        """All keys, revoked and expired ones included, oldest first. Raises DatabaseDown."""

        async def read(connection: AsyncConnection) -> list[Key]:
            return [_key(row) for row in await connection.execute(_LIST)]

        return await self._transactions.run(read)

    async def revoke(self, which: str, *, operator: str) -> Key:
        """Revoke the key with id or name `which`; a revoked one stays as it is. Raises NotFound, DatabaseDown."""
        at = self._clock.utcnow()

        async def revoke(connection: AsyncConnection) -> Key:
            row = (await connection.execute(_FIND, {"which": which})).one_or_none()
            if row is None:
                raise NotFound(f"no key with id or name {which!r}", hint="`sluice key list` shows ids and names.")
            return _key(row) if row.revoked else await _revoke(connection, _key(row), at, operator)

        key = await self._transactions.run(revoke)
        self._remember(key)
        return key

    def _install(self, rows: Iterable[Row[Any]]) -> None:
        for row in rows:
            self._remember(_key(row))

    def _remember(self, key: Key) -> None:
        known = self._keys.get(key.digest)
        # A read that began before a revocation must not bring the key back.
        if known is None or known.revoked is None:
            self._keys[key.digest] = key


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _roles(roles: Collection[str]) -> frozenset[str]:
    if unknown := sorted(set(roles) - set(ROLES)):
        raise BadRequest(f"role: unknown role {unknown[0]!r}", hint=f"Roles are {', '.join(ROLES)}.", field="role")
    if not roles:
        raise BadRequest("role: name at least one", hint=f"Roles are {', '.join(ROLES)}.", field="role")
    return frozenset(roles)


def _tenants(tenants: Collection[str], roles: Collection[str]) -> frozenset[str]:
    if "gateway" in roles and not tenants:
        raise BadRequest("tenant: a gateway key names the tenants it speaks for", hint="Name each one, or * for all.", field="tenant")
    return frozenset(tenant if tenant == ANY_TENANT else tenant_id(tenant) for tenant in tenants)


async def _insert(connection: AsyncConnection, key: Key, operator: str) -> None:
    principal = key.principal
    named = {"name": principal.name, "roles": sorted(principal.roles), "tenants": sorted(principal.tenants)}
    await connection.execute(_INSERT, {"id": key.id, "digest": key.digest, "created": key.created, "expires": key.expires} | named)
    entry = key_created(
        recorded=key.created,
        operator=operator,
        key_id=principal.key_id,
        name=principal.name,
        roles=sorted(principal.roles),
        tenants=sorted(principal.tenants),
        expires=key.expires,
    )
    await hand_over(connection, entry)
    await connection.execute(_NOTIFY)


async def _revoke(connection: AsyncConnection, key: Key, at: datetime, operator: str) -> Key:
    await connection.execute(_REVOKE, {"id": key.id, "at": at})
    await hand_over(connection, key_revoked(recorded=at, operator=operator, key_id=key.principal.key_id, name=key.principal.name))
    await connection.execute(_NOTIFY)
    return Key(key.id, key.digest, key.principal, key.created, key.expires, at)


def _key(row: Row[Any]) -> Key:
    principal = Principal(str(row.id), row.name, frozenset(row.roles), frozenset(row.tenants))
    return Key(row.id, bytes(row.digest), principal, row.created, row.expires, row.revoked)
