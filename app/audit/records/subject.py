"""Entries of what people ask for about themselves (GDPR Art. 12 to 22), and of what became of it.

The person stands in them as a pseudonym; the id and what operators write stand sealed, under the key of the person they are about.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from app.audit.records.entry import Entry, Sealed, make_entry
from app.instants import rfc3339

HANDLING_DAYS = 1096
"""Three years and a leap day: what PIPL Art. 56 asks of records of handling; GDPR Art. 5(2) names no time."""


def subject_request(
    *,
    recorded: datetime,
    operator: str,
    tenant: str | None,
    request: str,
    subject: str,
    article: str,
    received: datetime,
    due: datetime,
    sealed: Sealed,
) -> Entry:
    """Somebody asked under `article`, such as `GDPR Art. 15`; `sealed` has who."""
    details = {"request": request, "article": article, "subject": subject, "from": rfc3339(received), "expires": rfc3339(due)}
    return _entry("subject.request", "done", details, sealed, recorded=recorded, operator=operator, tenant=tenant)


def subject_answer(
    *,
    recorded: datetime,
    operator: str,
    tenant: str | None,
    request: str,
    subject: str,
    outcome: Literal["done", "refused"],
    ground: str | None = None,
    sealed: Sealed | None = None,
) -> Entry:
    """A request was answered outside of Sluice, or refused on `ground`, such as `GDPR Art. 12(5)`; `sealed` may have more in words."""
    details = {"request": request, "subject": subject, "legal_basis": ground}
    return _entry("subject.answer", outcome, details, sealed, recorded=recorded, operator=operator, tenant=tenant)


def subject_access(
    *,
    recorded: datetime,
    operator: str,
    tenant: str | None,
    subject: str,
    count: int,
    files: Sequence[Mapping[str, str]],
    legal_basis: str,
    request: str | None = None,
    entry: Sealed | None = None,
) -> Entry:
    """A person was given the `count` entries that the log holds about them, as `files` of name and SM3. `entry` may fix its id."""
    details = {"subject": subject, "count": count, "files": list(files), "legal_basis": legal_basis, "request": request}
    return _entry("subject.access", "done", details, entry, recorded=recorded, operator=operator, tenant=tenant)


def subject_erasure(
    *,
    recorded: datetime,
    operator: str,
    tenant: str | None,
    subject: str,
    outcome: Literal["done", "refused"],
    legal_basis: str,
    request: str | None = None,
) -> Entry:
    """The key of a person was destroyed, or was not: `legal_basis` says on what ground."""
    details = {"subject": subject, "legal_basis": legal_basis, "request": request}
    return _entry("subject.erasure", outcome, details, None, recorded=recorded, operator=operator, tenant=tenant)


def _entry(
    kind: str, outcome: str, details: Mapping[str, Any], sealed: Sealed | None, *, recorded: datetime, operator: str, tenant: str | None
) -> Entry:
    return make_entry(
        kind,
        recorded=recorded,
        operator=operator,
        tenant=tenant,
        outcome=outcome,
        details=details,
        retention_days=HANDLING_DAYS,
        sealed=sealed,
    )
