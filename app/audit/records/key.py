"""Entries of keys: those that callers of the API present, and those that the log and the reports are signed with. No key is in any."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from app.audit.records.entry import Entry, make_entry
from app.instants import rfc3339
from app.signing.certificates import Certificate

Use = Literal["api", "log", "report"]
Signs = Literal["log", "report"]


def key_created(
    *, recorded: datetime, operator: str, key_id: str, name: str, roles: Sequence[str], tenants: Sequence[str], expires: datetime | None
) -> Entry:
    """A key of the API was made."""
    after = {"name": name, "roles": sorted(roles), "tenants": sorted(tenants), "expires": rfc3339(expires) if expires else None}
    return _key("key.created", recorded, operator, key_id, "api", after=after)


def key_revoked(*, recorded: datetime, operator: str, key_id: str, name: str) -> Entry:
    """A key of the API was revoked."""
    return _key("key.revoked", recorded, operator, key_id, "api", before={"name": name})


def signer_created(*, recorded: datetime, operator: str, signer: Certificate, use: Signs = "log") -> Entry:
    """The first key that signs the log, or the reports, was made."""
    after = _facts(signer)
    return _key("key.created", recorded, operator, after["fingerprint"], use, after=after)


def signer_rotated(*, recorded: datetime, operator: str, before: Certificate, after: Certificate, use: Signs = "log") -> Entry:
    """The log is, or the reports are, signed with another key from now on."""
    states = {"before": _facts(before), "after": _facts(after)}
    return _key("key.rotated", recorded, operator, states["after"]["fingerprint"], use, **states)


def _facts(certificate: Certificate) -> dict[str, Any]:
    """What entries say of a signer: its certificate by fingerprint (hex), subject and time."""
    return {
        "fingerprint": certificate.fingerprint.hex(),
        "subject": certificate.subject,
        "not_before": rfc3339(certificate.not_before),
        "not_after": rfc3339(certificate.not_after),
    }


def _key(kind: str, recorded: datetime, operator: str, key_id: str, use: Use, **states: Mapping[str, Any]) -> Entry:
    details = {"key": key_id, "use": use, **states}
    return make_entry(kind, recorded=recorded, operator=operator, tenant=None, outcome="done", details=details)
