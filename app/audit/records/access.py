"""Entries of decisions: access to sensitive models (B16), refusals by policy, waivers that rules used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from app.audit.records.entry import Entry, Sealed, make_entry

UnmetReason = Literal["settled", "expired", "released", "stopped", "killed"]
AccessOutcome = Literal["allowed", "refused", "unconfirmed"]


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What a decision's entry says of the request in clear: who asked for what, by which rules. Subject and address are pseudonyms."""

    operator: str
    """Name of the credential that spoke."""
    tenant: str
    model: str
    decision_id: str
    policy_revision: str | None = None
    """None where the rules gave no answer."""
    action: str | None = None
    quota_version: int | None = None
    subject: str | None = None
    address: str | None = None
    purpose: str | None = None
    approval_id: str | None = None
    """Of an approval that we know; any other text is sealed."""

    def entry(
        self, kind: str, outcome: str, *, recorded: datetime, retention_days: int | None, sealed: Sealed | None, **members: Any
    ) -> Entry:
        """The entry of `kind` about this request, with `members` of its own."""
        details = {name: getattr(self, name) for name in self.__slots__} | members
        operator, tenant = details.pop("operator"), details.pop("tenant")
        return make_entry(
            kind,
            recorded=recorded,
            operator=operator,
            tenant=tenant,
            outcome=outcome,
            details=details,
            retention_days=retention_days,
            sealed=sealed,
        )


Reasons = Sequence[Mapping[str, Any]]
"""Objects {code, rule} of text."""


def sensitive_access(
    asked: RequestFacts,
    outcome: AccessOutcome,
    *,
    recorded: datetime,
    retention_days: int | None,
    reasons: Reasons = (),
    obligations: Sequence[str] = (),
    approval_needed: bool | None = None,
    sealed: Sealed | None = None,
) -> Entry:
    """Access to a sensitive model. `obligations` are codes that the gateway must confirm: with any the access is unconfirmed.

    `approval_needed` is what the spec in force said; None, for entries of before it was written down, leaves it unsaid.
    """
    return asked.entry(
        "sensitive.access",
        outcome,
        recorded=recorded,
        retention_days=retention_days,
        sealed=sealed,
        reasons=reasons,
        obligations=list(obligations) or None,
        approval_needed=approval_needed,
    )


def access_confirmed(asked: RequestFacts, *, recorded: datetime, retention_days: int | None, obligations_met: Sequence[str]) -> Entry:
    """The gateway says that it met the obligations of an unconfirmed access. It has no sealed text: the access has them."""
    return asked.entry(
        "sensitive.access",
        "confirmed",
        recorded=recorded,
        retention_days=retention_days,
        sealed=None,
        reasons=(),
        obligations_met=list(obligations_met),
    )


def access_cancelled(asked: RequestFacts, *, recorded: datetime, retention_days: int | None, obligations: Sequence[str]) -> Entry:
    """The gateway says that an unconfirmed access was never used, so that nothing is owed for it."""
    return asked.entry(
        "sensitive.access",
        "cancelled",
        recorded=recorded,
        retention_days=retention_days,
        sealed=None,
        reasons=(),
        obligations=list(obligations),
    )


def obligation_unmet(
    asked: RequestFacts,
    *,
    recorded: datetime,
    retention_days: int | None,
    obligations: Sequence[str],
    reason: UnmetReason,
    entry_id: UUID | None = None,
) -> Entry:
    """The incident: an unconfirmed access ended, `reason` says how, and its obligations were not confirmed by then.

    `entry_id` for whoever may tell the same one twice.
    """
    return asked.entry(
        "obligation.unmet",
        "unmet",
        recorded=recorded,
        retention_days=retention_days,
        sealed=Sealed(entry_id) if entry_id else None,
        obligations=list(obligations),
        reason=reason,
    )


def policy_refusal(
    asked: RequestFacts, *, recorded: datetime, reasons: Reasons, retention_days: int | None = None, sealed: Sealed | None = None
) -> Entry:
    """A refusal by policy (403)."""
    return asked.entry("policy.refusal", "refused", recorded=recorded, retention_days=retention_days, sealed=sealed, reasons=reasons)


def waiver_used(
    asked: RequestFacts,
    outcome: Literal["allowed", "refused"],
    *,
    recorded: datetime,
    waived: Reasons,
    retention_days: int | None = None,
    sealed: Sealed | None = None,
) -> Entry:
    """Rules lifted the refusals in `waived`; what then became of the request is `outcome`."""
    return asked.entry("waiver.used", outcome, recorded=recorded, retention_days=retention_days, sealed=sealed, waived=waived)
