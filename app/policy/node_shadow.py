"""Rules for nodes in shadow: what they would change is counted, and logged when it begins and when it becomes another."""

import structlog

from app.observability.metrics import Metrics
from app.policy.node_answer import NodeAnswer, NodePart, Outcome, Place, would_change
from app.policy.unanswered import PolicyUnavailable

MOST_SAID = 4096
"""Pairs of place and rule whose last line is remembered; with more, some are logged again."""

log = structlog.get_logger()


class NodeShadow:
    """Compares answers with what they would be if shadow rules counted."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._said: dict[tuple[Place, str], tuple[str, ...]] = {}

    def compare(self, place: Place, answer: NodeAnswer, outcome: Outcome) -> None:
        """Record what a group of shadow rules says of one place beside its answer."""
        for part in outcome:
            if isinstance(part, NodePart):
                changes = would_change(answer, part)
                if changes:
                    self._metrics.shadow_overrides.labels(self._metrics.rule(part.rule)).inc()
                if self._is_news(place, part.rule, changes) and changes:
                    told = {output: part.answered[output] for output in changes}
                    log.info("shadow_override", rule=part.rule, node=place[0], model=place[1], changes=told)
            elif not isinstance(part, PolicyUnavailable) and self._is_news(place, part.rule or "", (part.code,)):
                log.warning("shadow_rule_failed", rule=part.rule, node=place[0], code=part.code, detail=part.message)

    def _is_news(self, place: Place, rule: str, said: tuple[str, ...]) -> bool:
        known = self._said.get((place, rule), ())
        if len(self._said) >= MOST_SAID:
            self._said.clear()
        self._said[place, rule] = said
        return said != known
