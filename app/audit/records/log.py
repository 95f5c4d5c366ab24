"""Entries that the log keeps about itself: who read it.

Its gaps are in app/audit/intake/gaps.py, what stands for no entry in app/audit/sequencing/admission.py.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from app.audit.records.entry import Entry, make_entry


def log_read(
    *,
    recorded: datetime,
    operator: str,
    read: str,
    outcome: Literal["done", "refused"] = "done",
    query: Mapping[str, Any] | None = None,
    first: int | None = None,
    end: int | None = None,
    count: int | None = None,
    report: str | None = None,
    file: str | None = None,
) -> Entry:
    """Somebody read of the log what `read` names, or wanted to: `query` gave `count` entries of [first, end), or `file` of a `report`.

    Its tenant and its subject, a pseudonym, are the entry's own, so that a later search finds it by them.
    """
    said = dict(query or {})
    tenant, subject = said.get("tenant"), said.pop("subject", None)
    details = {"read": read, "query": None if query is None else said, "first": first, "end": end, "count": count, "subject": subject}
    details |= {"report": report, "file": file}
    return make_entry("log.read", recorded=recorded, operator=operator, tenant=tenant, outcome=outcome, details=details)
