"""An approval as a value: what it covers, where it stands, and which step may follow which, by whom.

Asked, then approved or refused by somebody else, and an approved one may be revoked: nothing else happens to it. That it is
over is told by the clock alone, so no process has to be there at that moment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args
from uuid import UUID

from app.auth.keys import Principal
from app.errors import Conflict, Forbidden

State = Literal["asked", "approved", "refused", "revoked"]
"""As it is kept."""
Standing = Literal["asked", "approved", "refused", "revoked", "expired"]
"""As it counts now: an open one whose time is over is expired."""
STANDINGS: tuple[Standing, ...] = get_args(Standing)
OPEN: tuple[State, ...] = ("asked", "approved")
"""States that end with the time of the approval."""
RANKS: Mapping[State, int] = {"asked": 0, "approved": 1, "refused": 1, "revoked": 2}
"""A state follows only those of lower rank, so that an older reading of the same approval is known as older."""


class SameAsker(Forbidden):
    """Whoever asked for an approval can't answer it: neither the same key nor another key of the same name."""

    code = "same_asker"
    hint = "Let somebody else answer, with a key of their own that has the role approver."


class ApprovalEnded(Conflict):
    """The approval stands so that this step can't follow: somebody else was faster, it is refused or revoked, or its time is over."""

    code = "approval_ended"
    hint = "GET /approvals/ID shows where it stands; ask for a new one where none is in force."


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that somebody did to an approval."""

    by: str
    """Name of the key."""
    key_id: str
    at: datetime
    reason: str
    """Sealed, bound to the approval's id."""


@dataclass(frozen=True, slots=True)
class Approval:
    """One approval. Its id is also that of the log entry that it was asked by."""

    id: UUID
    tenant: str
    model: str
    action: str
    purpose: str | None
    """None: whatever for, where the model's spec declares no purposes."""
    subject: str | None
    """A pseudonym of the tenant; None: everyone of the tenant, because it was asked so."""
    expires: datetime
    """From then on it counts no more."""
    state: State
    asked: Step
    answered: Step | None = None
    """By whom it was approved or refused."""
    revoked: Step | None = None

    def standing(self, now: datetime) -> Standing:
        """How it counts at `now`."""
        return "expired" if self.state in OPEN and self.expires <= now else self.state

    def facts(self, now: datetime, subject: str | None) -> dict[str, Any]:
        """What rules read of it about a request of `subject`, a pseudonym: no ids and no times, so that equal questions stay equal."""
        whom = "everyone" if self.subject is None else "same" if self.subject == subject else "other"
        facts: dict[str, Any] = {"state": self.standing(now), "model": self.model, "action": self.action, "subject": whom}
        if self.purpose is not None:
            facts["purpose"] = self.purpose
        return facts

    def check_answer(self, by: Principal, now: datetime) -> None:
        """Raises SameAsker for who asked, ApprovalEnded where it is answered or over."""
        if by.key_id == self.asked.key_id or by.name == self.asked.by:
            raise SameAsker(f"key {by.name!r} asked for this approval, so it cannot answer it")
        self._check_standing("asked", now, "answered")

    def check_revocation(self, now: datetime) -> None:
        """Raises ApprovalEnded where it is not in force."""
        self._check_standing("approved", now, "revoked")

    def _check_standing(self, wanted: Standing, now: datetime, step: str) -> None:
        if (standing := self.standing(now)) != wanted:
            raise ApprovalEnded(f"the approval is {standing}; only one that is {wanted} can be {step}")
