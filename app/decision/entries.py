"""What a decision writes into the log: every access to a sensitive model, every refusal by policy, every waiver used.

People stand in it as pseudonyms. What was said in words that no model's spec declares is sealed under a key of the subject, else
of the address, else of the credential.

When down: a decision that must be logged and cannot be is not given; decide.py refunds it and answers audit_unavailable. Where one
waited for that in vain, others are refused at once for as long again: the items of a batch would wait one after the other. The
confirmation of an access that was given is not refused: it waits, and until it is written the access counts as unconfirmed. What ended
unconfirmed, or unused, waits the same way; what finds no room to wait is counted by the next gap.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from app.approvals.approvals import Known
from app.audit.intake.intake import Intake
from app.audit.intake.pending import Pending
from app.audit.people.people import People
from app.audit.people.subject_keys import SubjectKey
from app.audit.records.access import (
    AccessOutcome,
    RequestFacts,
    UnmetReason,
    access_cancelled,
    access_confirmed,
    obligation_unmet,
    policy_refusal,
    sensitive_access,
    waiver_used,
)
from app.audit.records.entry import Entry
from app.catalog.models import ModelSpec
from app.clock import Clock
from app.decision.confirmation import MET_HERE, Confirmation, owed_by_gateway
from app.decision.decision import Decision, Reason
from app.decision.request import DEFAULT_ACTION, Asking
from app.errors import DependencyDown
from app.policy.terms import Deny, Terms


@dataclass(frozen=True, slots=True)
class _Record:
    """One decision as its entries tell it."""

    asked: RequestFacts
    texts: Mapping[str, str | None] = field(repr=False)
    """What is only told sealed."""
    key: SubjectKey
    recorded: datetime
    retention_days: int | None
    approval_needed: bool


class Records:
    """Turns decisions into entries and hands them to the intake."""

    def __init__(self, intake: Intake, pending: Pending, people: People, clock: Clock, approvals: Known) -> None:
        self._intake = intake
        self._pending = pending
        self._people = people
        self._clock = clock
        self._approvals = approvals
        self._worked_ms = self._again_ms = -math.inf
        """When writing last succeeded, and when it is tried again, on the monotonic clock."""

    async def write(self, asking: Asking, spec: ModelSpec | None, terms: Terms | None, decision: Decision) -> Confirmation | None:
        """Commit the entries that a decision owes, all or none, and return what the gateway must confirm of an access.

        `terms` are None where the rules gave none; an access was asked for all the same. Raises DependencyDown where the entries
        could not be committed.
        """
        sensitive, forbidden = _is_sensitive(spec, terms), _is_forbidden(terms, decision)
        waived = terms.waived if terms else ()
        if not (sensitive or forbidden or waived):
            return None
        with self._trying():
            record = await self._record_of(asking, spec, terms, decision)
            owed = owed_by_gateway(terms) if terms and sensitive and decision.allow else ()
            entries = [_waiver(record, waived, decision)] if waived else []
            if sensitive:
                entries.append(_access(record, decision, owed))
            elif forbidden:
                entries.append(_refusal(record, decision))
            await self._intake.write(*entries)
        return Confirmation(record.asked, record.retention_days, owed) if owed else None

    async def confirm(self, confirmation: Confirmation) -> None:
        """Write that the gateway met what it owed, now or, in an outage, afterwards."""
        entry = access_confirmed(
            confirmation.asked,
            recorded=self._clock.utcnow(),
            retention_days=confirmation.retention_days,
            obligations_met=confirmation.owed,
        )
        try:
            await self._intake.commit(entry)
        except DependencyDown:
            self._pending.add(entry)

    def unmet(self, confirmation: Confirmation, reason: UnmetReason) -> None:
        """Write soon that an access ended, `reason` says how, before the gateway confirmed what it owed."""
        entry = obligation_unmet(
            confirmation.asked,
            recorded=self._clock.utcnow(),
            retention_days=confirmation.retention_days,
            obligations=confirmation.owed,
            reason=reason,
        )
        self._pending.add(entry)

    def cancelled(self, confirmation: Confirmation) -> None:
        """Write soon that an access was given back unused, so that nothing is owed for it."""
        entry = access_cancelled(
            confirmation.asked,
            recorded=self._clock.utcnow(),
            retention_days=confirmation.retention_days,
            obligations=confirmation.owed,
        )
        self._pending.add(entry)

    @contextmanager
    def _trying(self) -> Iterator[None]:
        """Refuse for as long as an attempt took that failed, unless one has succeeded since it began."""
        began_ms = self._clock.monotonic_ms()
        if began_ms < self._again_ms:
            with self._intake.gaps.refusing():
                raise DependencyDown("the log gave no answer a moment ago")
        try:
            yield
        except DependencyDown:
            now_ms = self._clock.monotonic_ms()
            if self._worked_ms < began_ms:
                self._again_ms = now_ms + (now_ms - began_ms)
            raise
        self._worked_ms, self._again_ms = self._clock.monotonic_ms(), -math.inf

    async def _record_of(self, asking: Asking, spec: ModelSpec | None, terms: Terms | None, decision: Decision) -> _Record:
        request, peer, pseudonyms = asking.request, asking.peer, self._people.pseudonyms
        subject_id = request.subject.id if request.subject else None
        subject = pseudonyms.subject(request.tenant, subject_id) if subject_id else None
        address = pseudonyms.address(request.tenant, peer) if peer else None
        action, purpose = _in_clear(asking, spec)
        approval = self._approvals.find(request.tenant, request.approval_id)
        recorded = self._clock.utcnow()  # before anything is waited for: the approval was in force then
        asked = RequestFacts(
            operator=asking.caller.name,
            tenant=request.tenant,
            model=request.model,
            action=action,
            decision_id=decision.facts.id,
            policy_revision=terms.revision if terms else None,
            quota_version=decision.facts.quota_version,
            subject=subject,
            address=address,
            purpose=purpose,
            approval_id=str(approval.id) if approval else None,
        )
        texts = {
            "subject": subject_id,
            "address": peer,
            "action": None if action else request.action,
            "purpose": None if purpose else request.purpose,
            "approval_id": None if approval else request.approval_id,
        }
        with self._intake.gaps.refusing():
            key = await self._people.keys.key(subject or address or pseudonyms.operator(asking.caller.name))
        return _Record(asked, texts, key, recorded, _retention_days(spec, terms), _needs_approval(spec))


def _is_sensitive(spec: ModelSpec | None, terms: Terms | None) -> bool:
    obliged = terms is not None and any(obligation.code == MET_HERE for obligation in terms.obligations)
    return obliged or (spec is not None and spec.sensitive is not None)


def _needs_approval(spec: ModelSpec | None) -> bool:
    return spec is not None and spec.sensitive is not None and spec.sensitive.approval


def _is_forbidden(terms: Terms | None, decision: Decision) -> bool:
    return decision.status == 403 or (terms is not None and any(deny.status == 403 for deny in terms.denies))


def _in_clear(asking: Asking, spec: ModelSpec | None) -> tuple[str | None, str | None]:
    """Action and purpose where the model's spec declares the word; anything else might say something about a person."""
    action, purpose = asking.request.action, asking.request.purpose
    declared = spec.sensitive if spec else None
    actions = {DEFAULT_ACTION, *(declared.actions if declared else ())}
    purposes = declared.purposes if declared else ()
    return action if action in actions else None, purpose if purpose in purposes else None


def _waiver(record: _Record, waived: Sequence[Deny], decision: Decision) -> Entry:
    return waiver_used(
        record.asked,
        "allowed" if decision.allow else "refused",
        recorded=record.recorded,
        waived=_reasons(waived),
        retention_days=record.retention_days,
        sealed=record.key.seal(record.texts),
    )


def _access(record: _Record, decision: Decision, owed: Sequence[str]) -> Entry:
    granted: AccessOutcome = "unconfirmed" if owed else "allowed"
    return sensitive_access(
        record.asked,
        granted if decision.allow else "refused",
        recorded=record.recorded,
        retention_days=record.retention_days,
        reasons=_reasons(decision.reasons),
        obligations=owed,
        approval_needed=record.approval_needed,
        sealed=record.key.seal(record.texts),
    )


def _refusal(record: _Record, decision: Decision) -> Entry:
    return policy_refusal(
        record.asked,
        recorded=record.recorded,
        reasons=_reasons(decision.reasons),
        retention_days=record.retention_days,
        sealed=record.key.seal(record.texts),
    )


def _reasons(reasons: Sequence[Reason | Deny]) -> list[dict[str, str | None]]:
    return [{"code": reason.code, "rule": reason.rule} for reason in reasons]


def _retention_days(spec: ModelSpec | None, terms: Terms | None) -> int | None:
    obligations = terms.obligations if terms else ()
    days = [obligation.retention_days for obligation in obligations if obligation.retention_days is not None]
    if spec is not None and spec.sensitive is not None:
        days.append(spec.sensitive.retention_days)
    return max(days, default=None)
