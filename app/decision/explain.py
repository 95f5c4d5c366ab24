"""What `?explain` adds to a decision: each rule's part, what shadow rules would have changed, why there are no terms, and times."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.clock import Clock
from app.policy.shadow import Judged
from app.policy.terms import Terms
from app.policy.unanswered import PolicyUnavailable, Unanswered


class Stages:
    """How long each stage of one decision took, in the order in which they ended."""

    __slots__ = ("_clock", "_ended_ms", "_started_ms", "took_ms")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started_ms = self._ended_ms = clock.monotonic_ms()
        self.took_ms: dict[str, float] = {}

    def end(self, name: str) -> None:
        """The stage that began when the one before it ended is over."""
        now_ms = self._clock.monotonic_ms()
        self.took_ms[name] = now_ms - self._ended_ms
        self._ended_ms = now_ms

    def total_ms(self) -> float:
        """Time since the decision began."""
        return self._clock.monotonic_ms() - self._started_ms


def explanation(
    terms: Terms | None, failed: Unanswered | None, shadows: Sequence[Judged], stages_ms: Mapping[str, float], *, probe: bool
) -> dict[str, Any]:
    """The document under `explain`. `stages_ms` end in _ms; a probe is not shed, whatever `shed` says."""
    return {
        "rules": dict(terms.parts) if terms else {},
        "shadow": {judged.rule: _shadow(judged) for judged in shadows},
        "shed": terms.shed if terms else None,
        "probe": probe,
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
