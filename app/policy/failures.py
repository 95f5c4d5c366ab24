"""Counting and logging what rules fail with: each failure counts, the same one is logged once in a while."""

from typing import TypeVar

import structlog

from app.clock import Clock
from app.observability.metrics import Metrics
from app.policy.unanswered import Unanswered

SAY_AGAIN_MS = 10_000.0
"""The same failure of the same rule is logged so often at most."""

F = TypeVar("F", bound=Unanswered)

log = structlog.get_logger()


class Failures:
    """What failed, by code and rule."""

    def __init__(self, clock: Clock, metrics: Metrics) -> None:
        self._clock = clock
        self._metrics = metrics
        self._said_ms: dict[tuple[str, str | None], float] = {}

    def note(self, failure: F, **where: str) -> F:
        """Count `failure`, log it unless that was done a moment ago, and give it back; `where` goes into the log line."""
        self._metrics.policy_errors.labels(failure.code, self._metrics.rule(failure.rule or "")).inc()
        now_ms, kind = self._clock.monotonic_ms(), (failure.code, failure.rule)
        if now_ms - self._said_ms.get(kind, float("-inf")) >= SAY_AGAIN_MS:
            self._said_ms[kind] = now_ms
            log.warning("policy_unanswered", code=failure.code, rule=failure.rule, detail=failure.message, **where)
        return failure
