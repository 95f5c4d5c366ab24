"""Log entries: one envelope, one canonical form, one builder for each kind of event.

The bytes made here are what is hashed and signed later, so they are made once, stored as bytes, and never serialised again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

import orjson
from uuid_utils.compat import uuid7

from app.errors import BadRequest
from app.ids import plain_text

ENVELOPE_VERSION = 1
MAX_INTEGER = 2**53 - 1  # beyond it JSON readers disagree about the last digit
DEFAULT_RETENTION = "d400"  # days; more than the six months that Chinese law asks of logs, with a year's comparison

AccessOutcome = Literal["allowed", "refused", "unconfirmed", "confirmed"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One log entry. `body` is the canonical envelope; the other fields repeat what the database must see of it."""

    id: UUID
    kind: str
    retention: str
    """Retention class: `d` and the days, such as d365."""
    recorded: datetime
    body: bytes


def retention_class(days: int | None) -> str:
    """The class that keeps an entry for `days` days; the default where no policy names any."""
    return DEFAULT_RETENTION if days is None else f"d{days}"


def rfc3339(instant: datetime) -> str:
    """`2026-01-02T03:04:05.000006Z`: UTC, always with microseconds, so that spelling never differs for equal instants."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def canonical(body: Mapping[str, Any] | Sequence[Any]) -> bytes:
    """The one byte form of `body`: RFC 8785 for what the schema allows, which is text, booleans, null, integers, lists, objects.

    Decimals become text in plain notation. Raises ValueError naming the path of a float, an integer beyond 2^53-1, U+0000,
    a lone surrogate, a key that is not ASCII text, or another type: callers check input at their edge, so that is our fault.
    """
    # Under this schema sorting by bytes and RFC 8785's sorting by UTF-16 units agree, and so do the escapes of strings.
    return orjson.dumps(_plain(body, "$"), option=orjson.OPT_SORT_KEYS)


def decimal_text(number: Decimal) -> str:
    """`number` in plain notation without trailing zeros: 0.8, 50, 1000000."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _plain(value: Any, path: str) -> Any:
    match value:
        case bool() | None:
            return value
        case str():
            return _text(value, path)
        case int():
            if abs(value) > MAX_INTEGER:
                raise ValueError(f"{path}: integer beyond 2^53-1; record it as text")
            return value
        case Decimal() if value.is_finite():
            return decimal_text(value)
        case Mapping():
            return {_key(key, path): _plain(item, f"{path}.{key}") for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, f"{path}[{index}]") for index, item in enumerate(value)]
    raise ValueError(f"{path}: {type(value).__name__} has no canonical form; record numbers as integers or decimals")


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str) or not key.isascii() or "\x00" in key:
        raise ValueError(f"{path}: key {key!r} is not ASCII text; record names chosen by users as values")
    return key


def _text(value: str, path: str) -> str:
    try:
        return plain_text(value, path, most_chars=len(value))
    except BadRequest as error:
        raise ValueError(error.message) from None


def seal(
    kind: str,
    *,
    recorded: datetime,
    operator: str,
    tenant: str | None,
    outcome: str,
    retention_days: int | None = None,
    details: Mapping[str, Any],
) -> Entry:
    """An entry of `kind` with its envelope in canonical form. Details that are None are left out: missing is absent."""
    identity = uuid7()
    envelope = {name: value for name, value in details.items() if value is not None} | {
        "v": ENVELOPE_VERSION,
        "id": str(identity),
        "kind": kind,
        "recorded": rfc3339(recorded),
        "operator": operator,
        "tenant": tenant,
        "outcome": outcome,
    }
    return Entry(identity, kind, retention_class(retention_days), recorded, canonical(envelope))


def quota_in_force(
    *,
    recorded: datetime,
    operator: str,
    tenant: str,
    version: int,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any],
    diff: Sequence[Mapping[str, Any]],
    reason: str,
) -> Entry:
    """A quota was created or changed, and `version` is in force (B15)."""
    details = {"quota_version": version, "before": before, "after": after, "diff": diff, "reason": reason}
    return seal("quota.in_force", recorded=recorded, operator=operator, tenant=tenant, outcome="done", details=details)


def quota_deleted(
    *,
    recorded: datetime,
    operator: str,
    tenant: str,
    version: int,
    before: Mapping[str, Any],
    diff: Sequence[Mapping[str, Any]],
    reason: str,
) -> Entry:
    """A tenant's quota was deleted; `version` is the version of its absence (B15)."""
    details = {"quota_version": version, "before": before, "diff": diff, "reason": reason}
    return seal("quota.deleted", recorded=recorded, operator=operator, tenant=tenant, outcome="done", details=details)


def key_created(
    *, recorded: datetime, operator: str, key_id: str, name: str, roles: Sequence[str], tenants: Sequence[str], expires: datetime | None
) -> Entry:
    """A key was made. Neither the key nor its digest is in the entry."""
    after = {"name": name, "roles": sorted(roles), "tenants": sorted(tenants), "expires": rfc3339(expires) if expires else None}
    details = {"key": key_id, "after": after}
    return seal("key.created", recorded=recorded, operator=operator, tenant=None, outcome="done", details=details)


def key_revoked(*, recorded: datetime, operator: str, key_id: str, name: str) -> Entry:
    """A key was revoked."""
    details = {"key": key_id, "before": {"name": name}}
    return seal("key.revoked", recorded=recorded, operator=operator, tenant=None, outcome="done", details=details)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a decision's entry says of the request: who asked for what, by which rules. Subject and address are pseudonyms."""

    operator: str
    """Name of the credential that spoke."""
    tenant: str
    model: str
    action: str
    decision_id: str
    policy_revision: str
    quota_version: int | None = None
    subject: str | None = None
    address: str | None = None
    purpose: str | None = None
    approval_id: str | None = None

    def details(self) -> dict[str, Any]:
        """The members that only decisions have."""
        return {
            "model": self.model,
            "action": self.action,
            "decision_id": self.decision_id,
            "policy_revision": self.policy_revision,
            "quota_version": self.quota_version,
            "subject": self.subject,
            "address": self.address,
            "purpose": self.purpose,
            "approval_id": self.approval_id,
        }


def sensitive_access(
    asked: Asked, outcome: AccessOutcome, *, recorded: datetime, retention_days: int | None, reasons: Sequence[Mapping[str, Any]] = ()
) -> Entry:
    """Access to a sensitive model (B16): allowed or refused now, later unconfirmed or confirmed by what the gateway reports."""
    details = asked.details() | {"reasons": reasons}
    return seal(
        "sensitive.access",
        recorded=recorded,
        operator=asked.operator,
        tenant=asked.tenant,
        outcome=outcome,
        retention_days=retention_days,
        details=details,
    )


def policy_refusal(asked: Asked, *, recorded: datetime, reasons: Sequence[Mapping[str, Any]], retention_days: int | None = None) -> Entry:
    """A refusal by policy (403): `reasons` are objects {code, rule, …} of text and integers."""
    details = asked.details() | {"reasons": reasons}
    return seal(
        "policy.refusal",
        recorded=recorded,
        operator=asked.operator,
        tenant=asked.tenant,
        outcome="refused",
        retention_days=retention_days,
        details=details,
    )
