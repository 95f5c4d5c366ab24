"""Entries of approvals: each step of one, by whom and why. Who it is for is a pseudonym; reasons are sealed, being about people."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from app.audit.records.entry import Entry, Sealed, make_entry
from app.instants import rfc3339

Step = Literal["asked", "approved", "refused", "revoked"]


@dataclass(frozen=True, slots=True)
class ApprovalFacts:
    """What every entry of an approval says of it in clear: words that the model's spec declares, and no person."""

    id: str
    tenant: str
    model: str
    action: str
    purpose: str | None
    subject: str | None
    """A pseudonym; None: everyone of the tenant."""
    expires: datetime


def approval_step(
    approval: ApprovalFacts, step: Step, *, recorded: datetime, operator: str, retention_days: int | None, sealed: Sealed
) -> Entry:
    """The entry of one step. `sealed` has the reason, and of one that is asked for the subject's id."""
    details = {name: getattr(approval, name) for name in ("model", "action", "purpose", "subject")}
    if step in ("asked", "approved"):
        details["expires"] = rfc3339(approval.expires)
    return make_entry(
        f"approval.{step}",
        recorded=recorded,
        operator=operator,
        tenant=approval.tenant,
        outcome="refused" if step == "refused" else "done",
        details={"approval_id": approval.id, **details},
        retention_days=retention_days,
        sealed=sealed,
    )
