"""What a decision writes into the log: every access to a sensitive model, every refusal by policy, every waiver used.

When down: a decision that must be logged and cannot be is not given; decide.py refunds it and answers audit_unavailable.
"""

from typing import Any

from app.audit.entry import Entry
from app.audit.events.access import AccessOutcome, Asked, policy_refusal, sensitive_access
from app.audit.intake import Intake
from app.audit.pseudonym import Pseudonyms
from app.catalog.models import ModelSpec
from app.clock import Clock
from app.decision.decision import Decision
from app.decision.request import Asking, DecideRequest
from app.policy.terms import Terms


class Records:
    """Turns decisions into entries and hands them to the intake."""

    def __init__(self, intake: Intake, pseudonyms: Pseudonyms, clock: Clock) -> None:
        self._intake = intake
        self._pseudonyms = pseudonyms
        self._clock = clock

    async def write(self, asking: Asking, spec: ModelSpec | None, terms: Terms, decision: Decision) -> None:
        """Commit the entry of a decision that owes one, else nothing. Raises DependencyDown where it could not be committed."""
        entry = self._entry(asking, spec, terms, decision)
        if entry is not None:
            await self._intake.write(entry)

    def _entry(self, asking: Asking, spec: ModelSpec | None, terms: Terms, decision: Decision) -> Entry | None:
        obliged = any(obligation.code == "audit" for obligation in terms.obligations)
        sensitive = obliged or (spec is not None and spec.sensitive is not None)
        forbidden = any(deny.status == 403 for deny in terms.denies)
        if not (sensitive or forbidden or terms.waived):
            return None
        request, peer = asking.request, asking.peer
        asked = Asked(
            operator=asking.caller.name,
            tenant=request.tenant,
            model=request.model,
            action=request.action,
            decision_id=decision.facts.id,
            policy_revision=terms.revision,
            quota_version=decision.facts.quota_version,
            subject=self._subject(request),
            address=self._pseudonyms.address(request.tenant, peer) if peer else None,
            purpose=request.purpose,
            approval_id=request.approval_id,
        )
        reasons: list[dict[str, Any]] = [{"code": reason.code, "rule": reason.rule} for reason in decision.reasons]
        reasons += [{"code": deny.code, "rule": deny.rule, "waived": True} for deny in terms.waived]
        recorded, days = self._clock.utcnow(), _retention_days(spec, terms)
        if sensitive:
            outcome: AccessOutcome = "allowed" if decision.allow else "refused"
            return sensitive_access(asked, outcome, recorded=recorded, retention_days=days, reasons=reasons)
        return policy_refusal(asked, recorded=recorded, reasons=reasons, retention_days=days)

    def _subject(self, request: DecideRequest) -> str | None:
        if request.subject is None or request.subject.id is None:
            return None
        return self._pseudonyms.subject(request.tenant, request.subject.id)


def _retention_days(spec: ModelSpec | None, terms: Terms) -> int | None:
    days = [obligation.retention_days for obligation in terms.obligations if obligation.retention_days is not None]
    if spec is not None and spec.sensitive is not None:
        days.append(spec.sensitive.retention_days)
    return max(days, default=None)
