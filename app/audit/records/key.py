"""Entries of keys: those that callers of the API present, and those that the log is signed with. No key is in any of them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from app.audit.records.entry import Entry, make_entry
from app.instants import rfc3339

Use = Literal["api", "log"]


def key_created(
    *, recorded: datetime, operator: str, key_id: str, name: str, roles: Sequence[str], tenants: Sequence[str], expires: datetime | None
) -> Entry:
    """A key of the API was made."""
    after = {"name": name, "roles": sorted(roles), "tenants": sorted(tenants), "expires": rfc3339(expires) if expires else None}
    return _key("key.created", recorded, operator, key_id, "api", after=after)


def key_revoked(*, recorded: datetime, operator: str, key_id: str, name: str) -> Entry:
    """A key of the API was revoked."""
    return _key("key.revoked", recorded, operator, key_id, "api", before={"name": name})


def signer_created(*, recorded: datetime, operator: str, signer: Mapping[str, Any]) -> Entry:
    """The log's first signing key was made. `signer`: what signer_facts gives."""
    return _key("key.created", recorded, operator, signer["fingerprint"], "log", after=signer)


def signer_rotated(*, recorded: datetime, operator: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Entry:
    """The log is signed with another key from now on. `before`, `after`: what signer_facts gives."""
    return _key("key.rotated", recorded, operator, after["fingerprint"], "log", before=before, after=after)


def signer_facts(*, fingerprint: str, subject: str, not_before: datetime, not_after: datetime) -> dict[str, Any]:
    """What entries say of a signer: its certificate by fingerprint (hex), subject and time."""
    return {"fingerprint": fingerprint, "subject": subject, "not_before": rfc3339(not_before), "not_after": rfc3339(not_after)}


def _key(kind: str, recorded: datetime, operator: str, key_id: str, use: Use, **states: Mapping[str, Any]) -> Entry:
    details = {"key": key_id, "use": use, **states}
    return make_entry(kind, recorded=recorded, operator=operator, tenant=None, outcome="done", details=details)
