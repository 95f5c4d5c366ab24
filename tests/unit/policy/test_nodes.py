"""Asking what nodes may do."""

import asyncio
from collections.abc import Mapping
from typing import Any, Self

import pytest
from structlog.testing import capture_logs

from app.clock import ManualClock
from app.observability.metrics import Metrics
from app.policy.batch import MOST_BESIDE, Batcher
from app.policy.kinds import NODES
from app.policy.node_answer import Avoid, NodeAnswer
from app.policy.nodes import PAUSE_LEAST_MS, PAUSE_MOST_MS, NodePolicy, NodeQuestion
from app.policy.opa import Down, Slow
from app.policy.policy import Policy
from app.policy.question import Section
from app.policy.unanswered import PolicyUnavailable, Unanswered
from app.setting_sections import RuleMode
from tests.unit.policy.opa_in_python import OpaInPython, RuleFunction, conflict, rule

READS = {"factor": ("readings.kv_floor",), "avoiding": ("readings.memory_floor",), "aims": ("model.id",)}
AVOID = {"code": "full", "message": "m"}


def factor(shown: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {"max_num_seqs": [0.3 if shown["readings"].get("kv_floor", 0) > 0.85 else 1]}


def avoiding(shown: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {"avoid": [AVOID] if shown["readings"].get("memory_floor", 0) > 0.92 else []}


def aims(shown: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {"set_point": [{"signal": "kv", "value": 0.8}]}


def node_opa(
    modes: Mapping[str, RuleMode] | None = None, reads: Mapping[str, tuple[str, ...]] = READS, **functions: RuleFunction
) -> OpaInPython:
    """An OPA with one rule for each output; `functions` stand in for those of the same name."""
    given = {"factor": factor, "avoiding": avoiding, "aims": aims, **functions}
    return OpaInPython(given, [rule(name, reads[name], kind=NODES, mode=(modes or {}).get(name, "on")) for name in given])


def asked(name: str = "n0", model: str = "m", **readings: float) -> NodeQuestion:
    return NodeQuestion(Section.of({"name": name}), Section.of({"id": model}), Section.of(readings))


class Asking:
    """A node policy in force on `opa`, and what it stands on."""

    def __init__(self, opa: OpaInPython) -> None:
        self.opa, self.clock, self.metrics = opa, ManualClock(), Metrics()
        batcher = Batcher(opa, self.clock, self.metrics, timeout_ms=50, calls=2)
        self.policy = Policy(batcher, self.clock, self.metrics, memo_bytes=1 << 20, publish_wait_ms=25)
        self.nodes = NodePolicy(self.policy, batcher, self.clock, self.metrics)

    async def __aenter__(self) -> Self:
        await self.policy.activate(self.opa.compiled)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.nodes.close()
        await self.policy.close()

    async def one(self, **readings: float) -> NodeAnswer | Unanswered:
        return (await self.nodes.ask({("n0", "m"): asked(**readings)}))["n0", "m"]

    def failures(self, code: str, name: str) -> float | None:
        return self.metrics.registry.get_sample_value("sluice_policy_errors_total", {"code": code, "rule": name})

    def overrides(self, name: str) -> float | None:
        return self.metrics.registry.get_sample_value("sluice_shadow_overrides_total", {"rule": name})


async def test_an_answer_holds_what_all_rules_say() -> None:
    """Reasons to avoid the node, the factor of its batch and the aims come together, under the revision that gave them."""
    async with Asking(node_opa()) as asking:
        answer = await asking.one(kv_floor=0.9, memory_floor=0.95)

    assert answer == NodeAnswer((Avoid("avoiding", "full", "m"),), 0.3, {"kv": 0.8}, "r1")


async def test_what_is_equal_is_asked_once() -> None:
    """Two nodes with the same of what a rule reads cost one question of it, and a change of what no rule reads costs none."""
    async with Asking(node_opa()) as asking:
        await asking.nodes.ask({(name, "m"): asked(name, kv_floor=0.5, memory_floor=0.5) for name in ("n0", "n1")})
        first = [group for call in asking.opa.calls for group, _ in call]
        answer = await asking.one(kv_floor=0.5, memory_floor=0.5, waiting=40)
        repeated = asking.opa.calls[3:]
        await asking.one(kv_floor=0.6, memory_floor=0.5)

    assert sorted(first) == ["node_model__id", "node_readings__kv_floor", "node_readings__memory_floor"]
    assert (repeated, isinstance(answer, NodeAnswer)) == ([], True)
    assert asking.opa.calls[3:] == [[("node_readings__kv_floor", {"readings": {"kv_floor": 0.6}})]]


async def test_many_nodes_travel_in_few_calls_one_after_the_other() -> None:
    """A hundred nodes take calls of the size that is made for them, and never two calls at once."""
    opa = node_opa()
    under_way, most = 0, 0
    ask = opa.ask

    async def counted(items: dict[str, dict[str, Any]], timeout_ms: float) -> tuple[str, dict[str, Any]]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        try:
            return await ask(items, timeout_ms)
        finally:
            under_way -= 1

    opa.ask = counted  # type: ignore[method-assign]
    async with Asking(opa) as asking:
        answers = await asking.nodes.ask({(f"n{n}", "m"): asked(f"n{n}", kv_floor=n / 1000, memory_floor=n / 1000) for n in range(100)})

    assert all(isinstance(answer, NodeAnswer) and not answer.stale for answer in answers.values())
    # one question of aims for all, 100 factors, 100 reasons: 32 + 32 + 32 + 4
    assert [len(call) for call in opa.calls] == [1, *[MOST_BESIDE, MOST_BESIDE, MOST_BESIDE, 100 - 3 * MOST_BESIDE] * 2]
    assert most == 1


@pytest.mark.parametrize("failing", [conflict("avoiding"), None, {"avoid": ["x"]}], ids=["conflict", "undefined", "misshapen"])
async def test_a_rule_that_fails_takes_no_other_with_it(failing: Any) -> None:
    """Its own last part for the node stands in, it is named and counted, and the other rules' answers are new."""
    opa = node_opa()
    async with Asking(opa) as asking:
        await asking.one(kv_floor=0.5, memory_floor=0.95)
        opa.functions["avoiding"] = lambda shown: failing
        answer = await asking.one(kv_floor=0.9, memory_floor=0.5)
        unknown = (await asking.nodes.ask({("n9", "m"): asked("n9", kv_floor=0.9, memory_floor=0.51)}))["n9", "m"]
        opa.functions["avoiding"] = avoiding
        again = await asking.one(kv_floor=0.9, memory_floor=0.52)

    assert answer == NodeAnswer((Avoid("avoiding", "full", "m"),), 0.3, {"kv": 0.8}, "r1", stale=("avoiding",))
    assert unknown == NodeAnswer((), 0.3, {"kv": 0.8}, "r1", stale=("avoiding",))
    assert again == NodeAnswer((), 0.3, {"kv": 0.8}, "r1")
    assert sum(asking.failures(code, "avoiding") or 0 for code in ("policy_conflict", "policy_undefined", "policy_invalid")) == 2


async def test_a_misshapen_part_takes_no_rule_of_its_group_with_it() -> None:
    """Rules that read the same are asked together; still only the one whose answer is wrong is left out."""
    reads = {**READS, "factor": READS["avoiding"]}
    async with Asking(node_opa(reads=reads, factor=lambda shown: {"max_num_seqs": ["0.3"]})) as asking:
        answer = await asking.one(memory_floor=0.95)

    assert answer == NodeAnswer((Avoid("avoiding", "full", "m"),), 1.0, {"kv": 0.8}, "r1", stale=("factor",))
    assert asking.failures("policy_invalid", "factor") == 1


async def test_a_node_on_which_a_rule_fails_takes_no_other_with_it() -> None:
    """What fails on the readings of one node is answered for all others in the same call."""

    def on_one(shown: Mapping[str, Any]) -> Any:
        return conflict("avoiding") if shown["readings"]["memory_floor"] == 0.5 else avoiding(shown)

    async with Asking(node_opa(avoiding=on_one)) as asking:
        answers = await asking.nodes.ask({(f"n{n}", "m"): asked(f"n{n}", memory_floor=n / 10) for n in range(10)})

    stale = {place[0]: answer.stale for place, answer in answers.items() if isinstance(answer, NodeAnswer)}
    assert stale == {f"n{n}": ("avoiding",) if n == 5 else () for n in range(10)}


async def test_a_rule_that_does_not_end_is_left_alone_for_a_while() -> None:
    """It is asked again after a pause, twice as long each time, not with every change of readings, which all would wait for it."""
    opa = node_opa(avoiding=lambda shown: Slow("no answer in time"))
    async with Asking(opa) as asking:
        opa.ask = slow_clock(opa, asking.clock)  # type: ignore[method-assign]
        answers = [await asking.one(kv_floor=0.9, memory_floor=n / 100) for n in range(3)]
        asking.clock.advance(PAUSE_LEAST_MS)
        answers += [await asking.one(kv_floor=0.9, memory_floor=n / 100) for n in range(3, 6)]
        asking.clock.advance(PAUSE_LEAST_MS)
        answers += [await asking.one(kv_floor=0.9, memory_floor=n / 100) for n in range(6, 9)]
        opa.functions["avoiding"] = avoiding
        asking.clock.advance(PAUSE_MOST_MS)
        recovered = await asking.one(kv_floor=0.9, memory_floor=0.95)

    assert answers == [NodeAnswer((), 0.3, {"kv": 0.8}, "r1", stale=("avoiding",))] * 9
    asked_of_it = {
        shown["readings"]["memory_floor"] for call in opa.calls for group, shown in call if group == "node_readings__memory_floor"
    }
    assert asked_of_it == {0, 0.03, 0.95}
    assert recovered == NodeAnswer((Avoid("avoiding", "full", "m"),), 0.3, {"kv": 0.8}, "r1")
    assert asking.failures("policy_timeout", "avoiding") == 9


async def test_another_policy_is_not_paused() -> None:
    """A rule that did not end is asked at once under the next revision: that may have mended it."""
    opa = node_opa(avoiding=lambda shown: Slow("no answer in time"))
    async with Asking(opa) as asking:
        opa.ask = slow_clock(opa, asking.clock)  # type: ignore[method-assign]
        paused = await asking.one(memory_floor=0.95)
        opa.revision, opa.functions["avoiding"] = "r2", avoiding
        await asking.policy.activate(opa.compiled)
        mended = await asking.one(memory_floor=0.95)

    assert paused == NodeAnswer((), 1.0, {"kv": 0.8}, "r1", stale=("avoiding",))
    assert mended == NodeAnswer((Avoid("avoiding", "full", "m"),), 1.0, {"kv": 0.8}, "r2")


def slow_clock(opa: OpaInPython, clock: ManualClock) -> Any:
    """The OPA's `ask`, in which a call that is too slow takes all of its time."""
    ask = opa.ask

    async def taking_its_time(items: dict[str, dict[str, Any]], timeout_ms: float) -> tuple[str, dict[str, Any]]:
        try:
            return await ask(items, timeout_ms)
        except Slow:
            clock.advance(timeout_ms)
            raise

    return taking_its_time


async def test_an_outage_answers_nothing_and_ends_by_itself() -> None:
    """While OPA is away each node is unanswered, even where a part is known, so the caller keeps its last answer; then all is new."""
    opa = node_opa()
    async with Asking(opa) as asking:
        await asking.one(kv_floor=0.5)
        opa.down = Down("refused")
        away = await asking.one(kv_floor=0.9)
        opa.down = None
        back = await asking.one(kv_floor=0.9)

    assert isinstance(away, PolicyUnavailable)
    assert back == NodeAnswer((), 0.3, {"kv": 0.8}, "r1")
    assert asking.failures("policy_unavailable", "") == 1


async def test_before_the_first_policy_nothing_is_answered() -> None:
    """Without a policy in force every node is unanswered, and OPA is not asked."""
    opa = node_opa()
    asking = Asking(opa)
    answer = await asking.one(kv_floor=0.9)

    assert isinstance(answer, PolicyUnavailable)
    assert opa.calls == []


async def test_an_answer_under_another_revision_is_asked_again() -> None:
    """When OPA already runs the next policy, it is in force at once, and every answer is of that revision."""
    opa = node_opa()
    async with Asking(opa) as asking:
        await asking.one(kv_floor=0.5)
        opa.revision, opa.functions["aims"] = "r2", lambda shown: {"set_point": [{"signal": "kv", "value": 0.6}]}
        asking.policy.offer(opa.compiled)
        answer = await asking.one(kv_floor=0.9)

    assert answer == NodeAnswer((), 0.3, {"kv": 0.6}, "r2")
    assert asking.nodes.revision == "r2"


async def test_a_policy_that_nobody_offered_is_no_answer() -> None:
    """An OPA that runs something else leaves every node unanswered."""
    opa = node_opa()
    async with Asking(opa) as asking:
        opa.revision = "foreign"
        answer = await asking.one(kv_floor=0.9)

    assert isinstance(answer, PolicyUnavailable)


async def test_a_policy_without_rules_for_nodes_lets_them_do_everything() -> None:
    """Nothing is avoided, the whole batch is left, there are no aims, and OPA is not asked."""
    opa = OpaInPython({"deny": lambda shown: {}}, [rule("deny", ("tenant",))])
    async with Asking(opa) as asking:
        answer = await asking.one(kv_floor=0.9)

    assert answer == NodeAnswer((), 1.0, {}, "r1")
    assert opa.calls == []


async def test_a_shadow_rule_is_recorded_and_changes_nothing() -> None:
    """What it would change is counted each time, and logged when it begins, with node and model; a rule that is off is not asked."""
    opa = node_opa({"avoiding": "shadow", "aims": "off"})
    with capture_logs() as logged:
        async with Asking(opa) as asking:
            answers = [await settled(asking, memory_floor=floor) for floor in (0.5, 0.93, 0.94, 0.5, 0.95)]

    assert answers == [NodeAnswer((), 1.0, {}, "r1")] * 5
    assert asking.overrides("avoiding") == 3
    lines = [line for line in logged if line["event"] == "shadow_override"]
    assert [(line["rule"], line["node"], line["model"], line["changes"]) for line in lines] == [
        ("avoiding", "n0", "m", {"avoid": [AVOID]})
    ] * 2


async def test_a_shadow_rule_that_fails_is_logged_and_left_alone() -> None:
    """Its failure is no failure of the answer, and it is not asked again until the pause is over."""
    opa = node_opa({"avoiding": "shadow"}, avoiding=lambda shown: conflict("avoiding"))
    with capture_logs() as logged:
        async with Asking(opa) as asking:
            answers = [await settled(asking, memory_floor=floor) for floor in (0.1, 0.2, 0.3)]

    assert [isinstance(answer, NodeAnswer) and answer.stale == () for answer in answers] == [True] * 3
    assert [line["rule"] for line in logged if line["event"] == "shadow_rule_failed"] == ["avoiding"]
    assert {str(shown) for call in opa.calls for group, shown in call if "shadow" in group} == {"{'readings': {'memory_floor': 0.1}}"}


async def settled(asking: Asking, **readings: float) -> NodeAnswer | Unanswered:
    """The answer, once the shadow rules have been asked, too."""
    answer = await asking.one(**readings)
    for _ in range(20):
        await asyncio.sleep(0)
    return answer
