"""What `?explain` adds to a decision: each rule's part, what shadow rules would have changed, why there are no terms, and times."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.policy.shadow import Judged
from app.policy.terms import Terms
from app.policy.unanswered import PolicyUnavailable, Unanswered


def explanation(
    terms: Terms | None, failed: Unanswered | None, shadows: Sequence[Judged], stages_ms: Mapping[str, float]
) -> dict[str, Any]:
    """The document under `explain`. `stages_ms` end in _ms."""
    return {
        "rules": dict(terms.parts) if terms else {},
        "shadow": {judged.rule: _shadow(judged) for judged in shadows},
        "shed": terms.shed if terms else None,
        "factors": dict(terms.factors) if terms else {},
        **({"unanswered": _unanswered(failed)} if failed else {}),
        "stages": {name: round(value, 3) for name, value in stages_ms.items()},
    }


def _shadow(judged: Judged) -> dict[str, Any]:
    if judged.failure is not None:
        return {"unanswered": _unanswered(judged.failure)}
    return {"outputs": judged.part.answered if judged.part else {}, "would_change": list(judged.changes)}


def _unanswered(failure: Unanswered) -> dict[str, Any]:
    """What a rule did wrong. Why OPA itself is away stays in our log: it names places of this machine."""
    told = {"code": failure.code, "hint": failure.advice}
    return told if isinstance(failure, PolicyUnavailable) else {**told, "message": failure.message}
