"""Answers for nodes that are settled: never another than rules would give, and not asked for again while they read the same."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.policy.bundle import Compiled, group_rules
from app.policy.kinds import NODES
from app.policy.modes import NO_MODES
from app.policy.node_answer import MOST_PLACES, NodeAnswer
from app.policy.nodes import NodeQuestion
from app.policy.question import Section
from app.policy.settled import Settled
from app.setting_sections import RuleMode
from tests.unit.policy.opa_in_python import rule
from tests.unit.policy.test_nodes import Asking, asked, node_opa

PLACE = ("n0", "m")


def compiled(revision: str = "r1", mode: RuleMode = "on", when: tuple[str, ...] = ()) -> Compiled:
    rules = [rule("one", ("readings.kv_floor",), kind=NODES, when=when), rule("two", ("readings.memory",), kind=NODES, mode=mode)]
    return Compiled(revision, group_rules(rules, NO_MODES), {}, b"")


def question(**readings: Any) -> NodeQuestion:
    return NodeQuestion(Section.of({"name": "n0"}), Section.of({"id": "m"}), Section.of(readings))


ASKED = st.tuples(
    st.sampled_from(["r1", "r2"]),
    st.sampled_from(["n0", "n1"]),
    st.sampled_from([0.1, 0.2]),
    st.sampled_from([None, 0.5]),
    st.integers(0, 1),
)


@given(st.lists(ASKED))
def test_what_is_settled_is_what_rules_would_answer(steps: list[tuple[str, str, float, float | None, int]]) -> None:
    """However places, revisions and readings follow each other, what is found is the answer to exactly these readings."""
    settled, policies = Settled(), {revision: compiled(revision) for revision in ("r1", "r2")}
    for revision, node, kv_floor, memory, waiting in steps:
        readings = {"kv_floor": kv_floor, "waiting": waiting} | ({} if memory is None else {"memory": memory})
        answer = NodeAnswer(set_points={"kv": kv_floor, "waiting": memory or 0.0}, revision=revision)
        found = settled.find(policies[revision], (node, "m"), question(**readings))
        assert found in (None, answer)
        settled.put(policies[revision], (node, "m"), question(**readings), answer)
        assert settled.find(policies[revision], (node, "m"), question(**readings, running=7)) == answer


def test_a_condition_is_read_too() -> None:
    """A rule that is asked only where a field exists is asked when the field appears, though the rule does not read it."""
    settled, policy = Settled(), compiled(when=("readings", "ttft_ms"))
    settled.put(policy, PLACE, question(kv_floor=0.1), NodeAnswer())

    assert settled.find(policy, PLACE, question(kv_floor=0.1)) == NodeAnswer()
    assert settled.find(policy, PLACE, question(kv_floor=0.1, ttft_ms=5)) is None


def test_a_rule_that_is_off_unsettles_nothing() -> None:
    """What only such a rule reads may change."""
    settled, policy = Settled(), compiled(mode="off")
    settled.put(policy, PLACE, question(memory=0.1), NodeAnswer())

    assert settled.find(policy, PLACE, question(memory=0.9)) == NodeAnswer()


def test_what_is_not_whole_is_asked_again() -> None:
    """An answer in which a rule is missing settles nothing, and unsettles what was; beside shadow rules nothing is settled."""
    settled = Settled()
    settled.put(compiled(), PLACE, question(), NodeAnswer())
    settled.put(compiled(), PLACE, question(), NodeAnswer(stale=("one",)))
    settled.put(compiled(mode="shadow"), ("n1", "m"), question(), NodeAnswer())

    assert settled.find(compiled(), PLACE, question()) is None
    assert settled.find(compiled(mode="shadow"), ("n1", "m"), question()) is None


def test_places_are_bounded() -> None:
    """The one settled longest ago leaves first."""
    settled, policy, same = Settled(), compiled(), question()
    for number in range(MOST_PLACES + 1):
        settled.put(policy, (f"n{number}", "m"), same, NodeAnswer())

    assert settled.find(policy, ("n0", "m"), same) is None
    assert settled.find(policy, ("n1", "m"), same) == NodeAnswer()


async def test_settled_questions_are_not_looked_up() -> None:
    """While only what no rule reads changes, neither OPA nor the memo is asked."""
    async with Asking(node_opa()) as asking:
        answer = await asking.one(kv_floor=0.5, waiting=1)
        lookups = sum(sample.value for metric in asking.metrics.memo_lookups.collect() for sample in metric.samples)
        again = await asking.nodes.ask({PLACE: asked(kv_floor=0.5, waiting=2)})
        assert again == {PLACE: answer}
        assert sum(sample.value for metric in asking.metrics.memo_lookups.collect() for sample in metric.samples) == lookups
