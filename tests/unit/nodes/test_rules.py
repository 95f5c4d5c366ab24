"""Asking the rules for nodes: what is asked, and what stays when an answer fails."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from app.catalog.models import ModelSpec
from app.nodes.rules import NodeRules
from app.policy.node_answer import NodeAnswer
from app.policy.nodes import NodeQuestion
from app.policy.unanswered import PolicyUnavailable, Unanswered
from app.telemetry.snapshot import Reading
from app.telemetry.view import Memory, NodeModel, NodeState, View
from tests.fixtures.waiting import until

A, B = ("a", "m"), ("b", "m")


class Answering:
    """Answers as it is told to, and keeps what it was asked."""

    def __init__(self) -> None:
        self.revision = "r1"
        self.answers: dict[NodeModel, NodeAnswer | Unanswered] = {}
        self.asked: list[Mapping[NodeModel, NodeQuestion]] = []

    async def ask(self, questions: Mapping[NodeModel, NodeQuestion]) -> dict[NodeModel, NodeAnswer | Unanswered]:
        self.asked.append(questions)
        return {place: self.answers[place] for place in questions}


class Setting:
    def __init__(self) -> None:
        self.policy = Answering()
        self.told: list[Mapping[NodeModel, NodeAnswer]] = []
        self.rules = NodeRules(self.policy, self.told.append, lambda: {"m": ModelSpec(id="m")})


def state(name: str, model: str = "m", memory: Memory | None = None, **reading: float) -> NodeState:
    return NodeState(name, model, Reading(**reading), 10.0, kind="vllm", max_num_seqs=64, memory=memory or Memory())


async def test_what_is_asked() -> None:
    """The node, the facts of the model and what the node tells, shares rounded up to a hundredth; what is unknown is absent."""
    one = Setting()
    one.policy.answers[A] = NodeAnswer()
    await one.rules.answer([state("a", memory=Memory(0.85, None), kv_ratio=0.3301, waiting=3, iteration_ms=10.6)])

    (question,) = one.policy.asked[0].values()
    assert question.node.value == {"name": "a", "kind": "vllm", "max_num_seqs": 64}
    assert question.model.value["id"] == "m"
    assert question.readings.value == {"kv": 0.34, "waiting": 3, "iteration_ms": 11, "memory": 0.85}


async def test_a_model_that_is_gone_is_not_asked_about() -> None:
    """A view that is older than the catalogue asks nothing of a model that left it."""
    one = Setting()
    await one.rules.answer([state("a", "gone")])
    assert one.policy.asked == [{}]


async def test_an_outage_keeps_the_last_answers() -> None:
    """While OPA is silent a node stays avoided as it was; one without any answer has none."""
    one = Setting()
    answer = NodeAnswer(max_num_seqs_factor=0.3)
    one.policy.answers = {A: answer, B: PolicyUnavailable("down")}
    await one.rules.answer([state("a"), state("b")])
    one.policy.answers = {A: PolicyUnavailable("down"), B: PolicyUnavailable("down")}
    await one.rules.answer([state("a"), state("b")])

    assert one.told == [{A: answer}, {A: answer}]


async def test_a_node_that_is_gone_is_forgotten() -> None:
    """The answer about a node leaves with the node."""
    one = Setting()
    one.policy.answers = {A: NodeAnswer(), B: NodeAnswer()}
    await one.rules.answer([state("a"), state("b")])
    await one.rules.answer([state("b")])

    assert one.told[-1] == {B: NodeAnswer()}


async def test_another_policy_is_asked_at_once() -> None:
    """Engines at rest bring no news; a policy that comes into force is asked about them all the same."""
    one = Setting()
    one.policy.answers[A] = NodeAnswer(max_num_seqs_factor=1.0)
    one.rules.see(View(1, nodes=(state("a"),)))
    task = asyncio.create_task(one.rules.follow())
    await until(lambda: len(one.told) == 1)

    one.policy.answers[A], one.policy.revision = NodeAnswer(max_num_seqs_factor=0.3), "r2"
    await until(lambda: len(one.told) == 2)
    task.cancel()
    assert one.told[-1] == {A: NodeAnswer(max_num_seqs_factor=0.3)}


async def test_an_equal_state_asks_the_same_question() -> None:
    """What a question is made of is put together once while it stays; its age makes no new one, another reading or model does."""
    one = Setting()
    one.policy.answers[A] = NodeAnswer()
    specs = {"m": ModelSpec(id="m")}
    one.rules = NodeRules(one.policy, one.told.append, lambda: specs)
    for of in (state("a", waiting=1), replace(state("a", waiting=1), age_ms=90.0), state("a", waiting=2)):
        await one.rules.answer([of])
    specs["m"] = ModelSpec(id="m", preallocates=False)
    await one.rules.answer([state("a", waiting=2)])

    first, older, other, facts = (asked[A] for asked in one.policy.asked)
    assert first is older
    assert [question.readings.value for question in (first, other, facts)] == [{"waiting": 1}, {"waiting": 2}, {"waiting": 2}]
    assert [question.model.value["preallocates"] for question in (other, facts)] == [True, False]
