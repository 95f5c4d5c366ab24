"""What the rules of rego/nodes say of each node: asked whenever a node's readings changed, never for a request.

When down: nodes whose question stays unanswered keep their last answer; it is asked again with their next reading.
"""

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from app.catalog.models import ModelSpec
from app.policy.node_answer import NodeAnswer
from app.policy.nodes import NodePolicy, NodeQuestion
from app.policy.question import Section
from app.telemetry.snapshot import Reading
from app.telemetry.view import Memory, NodeModel, NodeState, View

STEPS = 100
"""Shares are rounded up to a hundredth, so that none looks emptier than it is: rules have steps, and each new value is a question."""
LOOK_S = 0.25
"""How often the policy in force is looked at while no view brings news."""

_Told = tuple[Reading, Memory, str, int, ModelSpec]

BEHIND_S = 0.03
"""Nodes are asked about when the questions of requests have been answered for the same readings: those are waited for, at most
25 ms, and OPA would answer a hundred nodes at the same moment."""

OnAnswers = Callable[[Mapping[NodeModel, NodeAnswer]], None]


class NodeRules:
    """Keeps the newest view of the nodes and has the rules answer for it, one round at a time."""

    def __init__(self, policy: NodePolicy, on_answers: OnAnswers, models: Callable[[], Mapping[str, ModelSpec]]) -> None:
        self._policy = policy
        self._on_answers = on_answers
        self._models = models
        self._view = View()
        self._news = asyncio.Event()
        self._revision: str | None = None
        self._answers: dict[NodeModel, NodeAnswer] = {}
        self._facts: dict[str, tuple[ModelSpec, Section]] = {}
        self._questions: dict[NodeModel, tuple[_Told, NodeQuestion]] = {}

    def see(self, view: View) -> None:
        """Take a view; asking happens beside."""
        changed = view.generation != self._view.generation
        self._view = view
        if changed:
            self._news.set()

    async def follow(self) -> None:
        """Ask for ever, whenever a view has changed or another policy is in force. Views that come meanwhile are one round."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._news.wait()
            if self._news.is_set() or self._policy.revision != self._revision:
                await asyncio.sleep(BEHIND_S)
                self._news.clear()
                await self.answer(self._view.nodes)

    async def answer(self, states: Iterable[NodeState]) -> None:
        """Have the rules answer for these nodes, and tell whoever wants to know; what fails keeps its last answer."""
        specs, self._revision = self._models(), self._policy.revision
        self._facts = {model: self._facts_of(spec) for model, spec in specs.items()}
        self._questions = {(state.node, state.model): self._question(state, specs[state.model]) for state in states if state.model in specs}
        questions = {place: question for place, (_, question) in self._questions.items()}
        given = await self._policy.ask(questions)
        fresh = {key: answer for key, answer in given.items() if isinstance(answer, NodeAnswer)}
        self._answers = {key: answer for key, answer in self._answers.items() if key in questions} | fresh
        self._on_answers(self._answers)

    def _question(self, state: NodeState, spec: ModelSpec) -> "tuple[_Told, NodeQuestion]":
        """The same object while nothing changes of what it is made of."""
        told = (state.reading, state.memory, state.kind, state.max_num_seqs, spec)
        kept = self._questions.get((state.node, state.model))
        if kept is not None and kept[0] == told:
            return kept
        return told, NodeQuestion(_node(state), self._facts[spec.id][1], _readings(state))

    def _facts_of(self, spec: ModelSpec) -> tuple[ModelSpec, Section]:
        """The same section while the spec is the same."""
        kept = self._facts.get(spec.id)
        return kept if kept is not None and kept[0] is spec else (spec, Section.of(spec.facts()))


def _node(state: NodeState) -> Section:
    return Section.of({"name": state.node, "kind": state.kind, "max_num_seqs": state.max_num_seqs})


def _readings(state: NodeState) -> Section:
    """What the node tells, where its page is fresh; what is unknown is absent."""
    reading = state.reading
    told: dict[str, Any] = {
        "kv": _step(reading.kv_ratio),
        "kv_floor": _step(reading.kv_floor),
        "waiting": reading.waiting,
        "running": reading.running,
        "free_tokens": reading.free_tokens,
        "capacity_tokens": reading.capacity_tokens,
        "iteration_ms": None if reading.iteration_ms is None else round(reading.iteration_ms),
        "ttft_ms": None if reading.ttft_ms is None else round(reading.ttft_ms),
        "memory": _step(state.memory.ratio),
        "memory_floor": _step(state.memory.floor),
    }
    return Section.of({name: value for name, value in told.items() if value is not None})


def _step(ratio: float | None) -> float | None:
    return None if ratio is None else math.ceil(round(ratio * STEPS, 6)) / STEPS
