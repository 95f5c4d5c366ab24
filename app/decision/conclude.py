"""From terms and spending to a decision: pure, one function per way a decision can end."""

from collections.abc import Sequence

from app.decision.decision import Decision, Facts, Reason, number
from app.decision.reasons import CODES, EXCEEDED
from app.decision.retry import default_retry_ms, limit_headers, retry_after_ms, retry_headers
from app.limiter.charge import Refusal, Spent
from app.policy.terms import Deny, Terms

PASSING = (429, 503)
"""Statuses of refusals that pass with time."""


def admitted(facts: Facts, terms: Terms, spent: Spent) -> Decision:
    """The request may start, for as long as its lease lives."""
    return Decision(
        facts=facts,
        allow=True,
        status=200,
        outcome="allow",
        tokens_reserved=spent.tokens_reserved,
        expires_in_ms=round(spent.expires_in_ms),
        levels=spent.levels,
        obligations=terms.obligations,
        headers=limit_headers(spent.levels),
    )


def denied(facts: Facts, denies: Sequence[Deny], draw: float) -> Decision:
    """A rule refuses. Waiting helps only where every refusing rule itself answers 429 or 503; a final status goes before."""
    status = next((deny.status for deny in denies if deny.status not in PASSING), denies[0].status)
    wait = default_retry_ms(draw) if status in PASSING else None
    reasons = tuple(Reason(deny.code, deny.message, rule=deny.rule) for deny in denies)
    return _refusal(facts, "deny", status, reasons, wait)


def shed(facts: Facts, terms: Terms, draw: float) -> Decision:
    """The draw fell under the probability of shedding: come back when the engines have had time (A5)."""
    reason = Reason("shed", f"load is shed with probability {number(terms.shed)}", rule=terms.shed_rule, limit=terms.shed)
    return _refusal(facts, "shed", 429, (reason,), default_retry_ms(draw))


def refused(facts: Facts, terms: Terms, spent: Spent, draw: float) -> Decision:
    """At least one bucket has no room; every one that has none is named, and none was charged."""
    rules = {(limit.bucket, limit.dimension): limit.rule for limit in terms.limits}
    reasons = tuple(_exceeded(refusal, rules.get((refusal.bucket.kind, refusal.bucket.dimension))) for refusal in spent.refusals)
    return _refusal(facts, "quota", 429, reasons, retry_after_ms(spent.refusals, draw))


def unanswered(facts: Facts, code: str, rule: str | None, draw: float) -> Decision:
    """Sluice itself cannot decide: 503 to the client, and a time to come back."""
    return _refusal(facts, "error", 503, (Reason(code, CODES[code], rule=rule),), default_retry_ms(draw))


def _refusal(facts: Facts, outcome: str, status: int, reasons: tuple[Reason, ...], wait_ms: int | None) -> Decision:
    return Decision(
        facts=facts,
        allow=False,
        status=status,
        outcome=outcome,
        reasons=reasons,
        retry_after_ms=wait_ms,
        headers=retry_headers(wait_ms),
    )


def _exceeded(refusal: Refusal, rule: str | None) -> Reason:
    bucket, dimension = refusal.bucket, refusal.bucket.dimension
    if refusal.over_capacity:
        code = "request_tokens_exceeded" if dimension == "request_tokens" else "over_capacity"
    else:
        code = "closed" if refusal.shed else f"{dimension}_exceeded"
    observed, limit = number(refusal.observed), number(refusal.bound)
    message = f"{EXCEEDED[dimension]} of the {bucket.kind.replace('_', ' and ')}: {observed} against a limit of {limit}"
    frees = None if refusal.frees_in_ms is None else round(refusal.frees_in_ms)
    return Reason(code, message, rule, bucket.kind, dimension, refusal.bound, refusal.observed, frees)
