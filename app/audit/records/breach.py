"""Entries of breaches of personal data and of who was told of them (GDPR Art. 33 and 34). What happened, in words, is sealed."""

from datetime import datetime
from typing import Literal

from app.audit.records.entry import Entry, Sealed, make_entry
from app.audit.records.subject import HANDLING_DAYS
from app.instants import rfc3339

Whom = Literal["authority", "subjects"]
BASES: dict[Whom, str] = {"authority": "GDPR Art. 33(1)", "subjects": "GDPR Art. 34(1)"}
"""Under which paragraph each is told."""


def breach_known(
    *,
    recorded: datetime,
    operator: str,
    tenant: str | None,
    breach: str,
    aware: datetime,
    due: datetime,
    people: int | None,
    sealed: Sealed,
) -> Entry:
    """A breach became known at `aware`, of `people` persons where that is known; `sealed` has what happened as `problem`."""
    details = {"breach": breach, "from": rfc3339(aware), "expires": rfc3339(due), "count": people}
    return make_entry(
        "breach.known",
        recorded=recorded,
        operator=operator,
        tenant=tenant,
        outcome="done",
        details=details,
        retention_days=HANDLING_DAYS,
        sealed=sealed,
    )


def breach_notified(
    *,
    recorded: datetime,
    operator: str,
    tenant: str | None,
    breach: str,
    whom: Whom,
    at: datetime,
    sealed: Sealed,
) -> Entry:
    """`whom` was told at `at`; `sealed` has why that was late as `reason` (GDPR Art. 33(1) sentence 2)."""
    details = {"breach": breach, "whom": whom, "at": rfc3339(at), "legal_basis": BASES[whom]}
    return make_entry(
        "breach.notified",
        recorded=recorded,
        operator=operator,
        tenant=tenant,
        outcome="done",
        details=details,
        retention_days=HANDLING_DAYS,
        sealed=sealed,
    )
