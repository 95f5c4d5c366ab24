"""Entries that the log keeps about itself: who read it, and what went by retention.

Its gaps are in app/audit/gaps.py, what stands for no entry in app/audit/admission.py.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.audit.entry import Entry, Sealed, seal


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
    address: str | None = None,
    subject: str | None = None,
    sealed: Sealed | None = None,
) -> Entry:
    """Somebody read the log: the route `read` with `query`, which gave `count` entries of [first, end).

    `address` and `subject` are pseudonyms; what a query says about a person belongs there or into `sealed`.
    """
    details = {"read": read, "query": query, "first": first, "end": end, "count": count, "address": address, "subject": subject}
    return seal("log.read", recorded=recorded, operator=operator, tenant=tenant, outcome="done", details=details, sealed=sealed)


def audit_purge(
    *,
    recorded: datetime,
    operator: str,
    shelf: str,
    first: int,
    last: int,
    count: int,
    sm3: str | None = None,
) -> Entry:
    """The bodies of a shelf went: `count` entries between the numbers `first` and `last`; `sm3` of the export that was made before."""
    details = {"shelf": shelf, "first": first, "last": last, "count": count, "sm3": sm3}
    return seal("audit.purge", recorded=recorded, operator=operator, tenant=None, outcome="done", details=details)
