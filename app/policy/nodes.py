"""The second question: what a node may do. Asked for each model on a node whose readings changed, never on the way of a request.

When down: every answer is PolicyUnavailable; nothing is guessed, and the caller keeps the last answer that it has.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.clock import Clock
from app.observability.metrics import Metrics
from app.policy.batch import MOST_BESIDE, Batcher, Reply
from app.policy.bundle import Compiled, Group
from app.policy.failures import Failures
from app.policy.kinds import NODES
from app.policy.memo import Memo
from app.policy.node_answer import MOST_PLACES, NodeAnswer, NodePart, Outcome, Place, combine
from app.policy.node_parts import parse_node
from app.policy.node_shadow import NodeShadow
from app.policy.plan import group_key, holds, values_of
from app.policy.policy import Policy
from app.policy.question import Asked, Section
from app.policy.settled import Settled
from app.policy.unanswered import PolicyTimeout, PolicyUnavailable, PolicyUndefined, Unanswered
from app.setting_sections import RuleMode

MEMO_BYTES = 4 << 20
"""Some thousand answers: what hundreds of nodes ask again within seconds, and no more, since readings seldom return."""

PAUSE_LEAST_MS, PAUSE_MOST_MS = 50.0, 1000.0
"""How long a group is left alone that does not end, or that is in shadow and fails, until one question finds out whether it works
again: every change of readings would wait for it. Each time twice as long, so that a busy moment costs one reading."""

_PART_BYTES = 500
"""Of one rule's part, by estimate."""


@dataclass(frozen=True, slots=True)
class NodeQuestion(Asked):
    """What is asked of one model on one node, in the sections of rego/schemas/node_question.json."""

    node: Section
    model: Section
    readings: Section


@dataclass(frozen=True, slots=True)
class _Paused:
    pause_ms: float
    until_ms: float
    failure: Unanswered


class NodePolicy:
    """Answers under the revision in force. `batcher` is that of live requests: nodes are asked beside them, one call at a time."""

    def __init__(self, policy: Policy, batcher: Batcher, clock: Clock, metrics: Metrics) -> None:
        self._policy = policy
        self._batchers: dict[RuleMode, Batcher] = {"on": batcher.beside(), "shadow": batcher.beside()}
        self._clock = clock
        self._metrics = metrics
        self._failures = Failures(clock, metrics)
        self._memo: Memo[Outcome] = Memo(MEMO_BYTES, metrics)
        self._last: dict[Place, dict[str, NodePart]] = {}
        self._paused: dict[str, _Paused] = {}
        """By group, under the newest revision asked: the next one may have mended it."""
        self._asked: str | None = None
        self._settled = Settled()
        self._shadow = NodeShadow(metrics)

    @property
    def revision(self) -> str | None:
        """Revision in force; answers under another one are out of date, so ask again for every place."""
        return self._policy.revision

    async def ask(self, questions: Mapping[Place, NodeQuestion]) -> dict[Place, NodeAnswer | Unanswered]:
        """One answer for each place; only what is not known yet travels to OPA, several questions in a call.

        A rule that fails takes no other with it: its last part for the place stands in, and `stale` names it. Unanswered
        where OPA is down or no policy is in force; the caller then keeps the last answer.
        """
        while True:
            compiled = self._policy.in_force
            if compiled is None:
                return dict.fromkeys(questions, PolicyUnavailable("no policy is in force yet"))
            if compiled.revision != self._asked:
                self._asked, self._paused = compiled.revision, {}
            settled = {
                place: answer
                for place, question in questions.items()
                if (answer := self._settled.find(compiled, place, question)) is not None
            }
            open_ = {place: question for place, question in questions.items() if place not in settled}
            found = await self._outcomes(compiled, open_)
            if self._policy.in_force is compiled:
                return settled | self._answers(compiled, open_, found)

    async def close(self) -> None:
        """End all calls."""
        await asyncio.gather(*(batcher.close() for batcher in self._batchers.values()))

    async def _outcomes(self, compiled: Compiled, questions: Mapping[Place, NodeQuestion]) -> dict[Place, list[tuple[Group, Outcome]]]:
        """Group by group, so that questions of one that fails travel with no others; those that were left alone come last."""
        outcomes: dict[Place, list[tuple[Group, Outcome]]] = {place: [] for place in questions}
        groups = [group for group in compiled.groups_of(NODES) if group.mode == "on"]
        for group in sorted(groups, key=lambda group: group.name in self._paused):
            places = [place for place, question in questions.items() if holds(group, question)]
            if group.name in self._paused:  # one question finds out whether it works again
                await self._ask_group(compiled.revision, group, [questions[place] for place in places[:1]])
            found = await self._ask_group(compiled.revision, group, [questions[place] for place in places])
            for place, outcome in zip(places, found, strict=True):
                outcomes[place].append((group, outcome))
        return outcomes

    async def _ask_group(self, revision: str, group: Group, questions: Sequence[NodeQuestion]) -> list[Outcome]:
        """One for each question; what is not known yet is asked in calls, and requests have their turn between two of them."""
        outcomes: list[Outcome] = []
        for first in range(0, len(questions), MOST_BESIDE):
            found = [self._find(revision, group, question) for question in questions[first : first + MOST_BESIDE]]
            flights = [each for each in found if isinstance(each, asyncio.Future)]
            if flights:
                await asyncio.wait(flights)
            outcomes += [each.result() if isinstance(each, asyncio.Future) else each for each in found]
        return outcomes

    def _answers(
        self, compiled: Compiled, questions: Mapping[Place, NodeQuestion], found: Mapping[Place, list[tuple[Group, Outcome]]]
    ) -> dict[Place, NodeAnswer | Unanswered]:
        answers = {place: self._answer(compiled.revision, place, row) for place, row in found.items()}
        for place, answer in answers.items():
            if isinstance(answer, NodeAnswer):
                self._settled.put(compiled, place, questions[place], answer)
                self._watch(compiled, place, questions[place], answer)
        return answers

    def _answer(self, revision: str, place: Place, found: Iterable[tuple[Group, Outcome]]) -> NodeAnswer | Unanswered:
        last = self._last.pop(place, {})
        self._last[place] = last
        while len(self._last) > MOST_PLACES:
            del self._last[next(iter(self._last))]
        stale = []
        rules = [(rule.name, part) for group, outcome in found for rule, part in zip(group.rules, outcome, strict=True)]
        for name, part in rules:
            if isinstance(part, PolicyUnavailable):
                return self._failures.note(part, node=place[0], model=place[1])
            if isinstance(part, NodePart):
                last[name] = part
            else:
                self._failures.note(part, node=place[0], model=place[1])
                stale.append(name)
        return combine(revision, [last[name] for name, _ in rules if name in last], stale)

    def _find(self, revision: str, group: Group, question: NodeQuestion) -> "Outcome | asyncio.Future[Outcome]":
        key, now_ms = group_key(revision, group, question), self._clock.monotonic_ms()
        known = self._memo.use(key, now_ms)
        self._metrics.memo_lookups.labels(group.name, "miss" if known is None else "hit").inc()
        if known is not None:
            return known
        paused = self._paused.get(group.name)
        if paused is not None and now_ms < paused.until_ms:
            return (paused.failure,) * len(group.rules)

        def receive(reply: Reply | Unanswered) -> Outcome:
            outcome = self._read(revision, group, reply)
            if not any(isinstance(part, Unanswered) for part in outcome):
                self._memo.put(key, outcome, _PART_BYTES * len(outcome), self._clock.monotonic_ms())
            return outcome

        return self._batchers[group.mode].ask(key, group, values_of(question, group), receive)

    def _read(self, revision: str, group: Group, reply: Reply | Unanswered) -> Outcome:
        """What a reply says of each rule; a reply under another revision moves the policy to that, where it was offered."""
        if isinstance(reply, Unanswered):
            failure = reply
        elif reply.revision != revision:
            self._policy.move(reply.revision)
            failure = PolicyUnavailable("OPA runs a policy that this process did not offer")
        elif reply.outputs is None:
            failure = PolicyUndefined("no answer", ",".join(rule.name for rule in group.rules))
        else:
            outputs = reply.outputs
            self._paused.pop(group.name, None)
            return tuple(_part(rule.name, outputs[rule.name]) for rule in group.rules)
        self._pause(group, failure)
        return (failure,) * len(group.rules)

    def _pause(self, group: Group, failure: Unanswered) -> None:
        known, now_ms = self._paused.get(group.name), self._clock.monotonic_ms()
        begins = known is None or now_ms >= known.until_ms
        fails = isinstance(failure, PolicyTimeout) or (group.mode == "shadow" and not isinstance(failure, PolicyUnavailable))
        if begins and fails:
            pause_ms = min(PAUSE_MOST_MS, 2 * known.pause_ms) if known else PAUSE_LEAST_MS
            self._paused[group.name] = _Paused(pause_ms, now_ms + pause_ms, failure)

    def _watch(self, compiled: Compiled, place: Place, question: NodeQuestion, answer: NodeAnswer) -> None:
        """Have shadow rules asked too; what they say is compared when it is there, and nobody waits for it."""
        for group in compiled.groups_of(NODES):
            if group.mode != "shadow" or not holds(group, question):
                continue
            found = self._find(compiled.revision, group, question)
            if isinstance(found, asyncio.Future):
                found.add_done_callback(lambda landed: self._shadow.compare(place, answer, landed.result()))
            else:
                self._shadow.compare(place, answer, found)


def _part(rule: str, outputs: Mapping[str, Any]) -> NodePart | Unanswered:
    try:
        return parse_node(rule, outputs)
    except Unanswered as invalid:
        return invalid
