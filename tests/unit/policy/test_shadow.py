"""Shadow rules: watched, never in force."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.clock import ManualClock
from app.observability.metrics import Metrics
from app.policy.policy import Policy
from app.policy.question import Question, Section
from app.policy.terms import Terms
from tests.unit.policy.opa_in_python import OpaInPython, conflict, policy_on, rule

ASKED = Question(tenant=Section.of({"id": "a", "qps": 8}), model=Section.of({"id": "m"}))
OTHER = Question(tenant=Section.of({"id": "b", "qps": 8}), model=Section.of({"id": "m"}))


def limits_by(shown: dict[str, Any]) -> dict[str, list[Any]]:
    return {"limit": [{"bucket": "tenant", "dimension": "qps", "limit": shown["tenant"]["qps"]}]}


async def shadowed(answer: Any) -> tuple[Policy, Metrics, Terms]:
    """A policy with a shadow rule that answers `answer`, and the terms of one question, after the watch has looked."""
    opa = OpaInPython(
        {"quota": limits_by, "watched": lambda shown: answer}, [rule("quota", ("tenant",)), rule("watched", ("tenant",), mode="shadow")]
    )
    policy, metrics = await policy_on(opa, ManualClock())
    terms = await policy.terms(ASKED, sensitive=False, dimensions=frozenset())
    policy.watch(ASKED, terms, "d-1")
    for _ in range(20):
        await asyncio.sleep(0)
    assert await policy.terms(ASKED, sensitive=False, dimensions=frozenset()) == terms
    return policy, metrics, terms


def overrides(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("sluice_shadow_overrides_total", {"rule": "watched"})


async def test_a_shadow_rule_is_recorded_and_changes_nothing() -> None:
    """A shadow deny leaves the answer as it is, is counted, and its log line names decision, tenant, model and what would change."""
    deny = {"code": "x", "message": "m", "status": 403}
    with capture_logs() as logged:
        policy, metrics, terms = await shadowed({"deny": [deny], "limit": []})

    assert terms.denies == ()
    assert overrides(metrics) == 1
    (line,) = [line for line in logged if line["event"] == "shadow_override"]
    assert {"rule": "watched", "decision_id": "d-1", "tenant": "a", "model": "m", "changes": {"deny": [deny]}}.items() <= line.items()
    await policy.close()


@pytest.mark.parametrize("answer", [None, {"shed": ["x"]}, conflict("watched"), {"shed": [0]}])
async def test_a_shadow_rule_that_fails_or_agrees_is_not_counted(answer: Any) -> None:
    """Undefined, misshapen, in conflict or in agreement: nothing is counted and traffic does not notice."""
    policy, metrics, terms = await shadowed(answer)

    assert terms.limits[0].limit == 8
    assert overrides(metrics) is None
    await policy.close()


async def test_shadow_rules_can_be_asked_at_once_beside_terms() -> None:
    """Who wants it explained is told what a shadow rule answers and which outputs it would change."""
    policy, _, terms = await shadowed({"shed": [0.5], "deny": []})

    (judged,) = await policy.shadows(ASKED, terms)

    assert (judged.rule, judged.changes) == ("watched", ("shed",))
    assert judged.part is not None
    assert judged.part.answered == {"shed": [0.5], "deny": []}
    await policy.close()


async def test_a_shadow_rule_that_fails_says_why_and_is_left_alone_for_a_second() -> None:
    """Its failure is told again meanwhile, without another call."""
    policy, _, terms = await shadowed({"shed": ["x"]})

    (judged,) = await policy.shadows(OTHER, terms)

    assert judged.failure is not None
    assert (judged.failure.code, judged.failure.message) == ("policy_invalid", "rule watched: shed must be a number, not a text")
    await policy.close()
