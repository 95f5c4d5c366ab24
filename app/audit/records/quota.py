"""Entries of changes of quotas (B15). The operator's reason is sealed, since people write about people."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from app.audit.records.entry import Entry, Sealed, make_entry


def quota_in_force(
    *,
    recorded: datetime,
    operator: str,
    tenant: str,
    version: int,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any],
    diff: Sequence[Mapping[str, Any]],
    sealed: Sealed,
) -> Entry:
    """A quota was created or changed, and `version` is in force; `sealed` has the reason."""
    details = {"quota_version": version, "before": before, "after": after, "diff": diff}
    return make_entry("quota.in_force", recorded=recorded, operator=operator, tenant=tenant, outcome="done", details=details, sealed=sealed)


def quota_deleted(
    *,
    recorded: datetime,
    operator: str,
    tenant: str,
    version: int,
    before: Mapping[str, Any],
    diff: Sequence[Mapping[str, Any]],
    sealed: Sealed,
) -> Entry:
    """A tenant's quota was deleted; `version` is the version of its absence, `sealed` has the reason."""
    details = {"quota_version": version, "before": before, "diff": diff}
    return make_entry("quota.deleted", recorded=recorded, operator=operator, tenant=tenant, outcome="done", details=details, sealed=sealed)
