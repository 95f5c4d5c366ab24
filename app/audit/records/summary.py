"""Entries that count decisions: one a minute, tenant, model and outcome."""

from datetime import datetime

from app.audit.records.entry import SERVICE, Entry, make_entry
from app.instants import rfc3339


def decisions_minute(
    *, recorded: datetime, minute: datetime, tenant: str | None, model: str | None, outcome: str, count: int, replica: str
) -> Entry:
    """`count` decisions of `replica` in the minute that begins at `minute` ended in `outcome`.

    A tenant or model that is None stands for all that the registry or the catalogue does not know.
    """
    details = {"minute": rfc3339(minute), "model": model, "count": count, "replica": replica}
    return make_entry("decisions.minute", recorded=recorded, operator=SERVICE, tenant=tenant, outcome=outcome, details=details)
