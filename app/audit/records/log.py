"""Entries that the log keeps about itself: who read it.

Its gaps are in app/audit/intake/gaps.py, what stands for no entry in app/audit/sequencing/admission.py.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.audit.records.entry import Entry, make_entry


def log_read(
    *,
    recorded: datetime,
    operator: str,
    read: str,
    tenant: str | None = None,
    query: Mapping[str, Any] | None = None,
    first: int | None = None,
    end: int | None = None,
    count: int | None = None,
    subject: str | None = None,
) -> Entry:
    """Somebody read of the log what `read` names: `query` gave `count` entries of [first, end). `subject` is a pseudonym."""
    details = {"read": read, "query": query, "first": first, "end": end, "count": count, "subject": subject}
    return make_entry("log.read", recorded=recorded, operator=operator, tenant=tenant, outcome="done", details=details)
