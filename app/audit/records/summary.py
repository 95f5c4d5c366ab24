"""Entries that count decisions: one a minute, tenant, model and outcome."""

from collections.abc import Mapping
from datetime import datetime

from app.audit.records.entry import SERVICE, Entry, seal
from app.instants import rfc3339


def decisions_minute(
    *,
    recorded: datetime,
    minute: datetime,
    tenant: str | None,
    model: str | None,
    outcome: str,
    count: int,
    replica: str,
    reasons: Mapping[str, int] | None = None,
) -> Entry:
    """`count` decisions of `replica` in the minute that begins at `minute` ended in `outcome`; `reasons` counts them by first code.

    A tenant or model that is None stands for all that the registry or the catalogue does not know.
    """
    told = [{"code": code, "count": reasons[code]} for code in sorted(reasons)] if reasons else None
    details = {"minute": rfc3339(minute), "model": model, "count": count, "replica": replica, "reasons": told}
    return seal("decisions.minute", recorded=recorded, operator=SERVICE, tenant=tenant, outcome=outcome, details=details)
