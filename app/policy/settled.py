"""Answers for nodes that are settled: while nothing changes that any rule reads of a place, its answer is the one it has.

A page changes with every step of its engine, yet most rules read what seldom does; so most questions end here.
"""

from dataclasses import dataclass

from app.policy.bundle import Compiled, Group
from app.policy.kinds import NODES
from app.policy.node_answer import MOST_PLACES, NodeAnswer, Place
from app.policy.question import Asked
from app.policy.reads import Read, folded


@dataclass(frozen=True, slots=True)
class _Settled:
    revision: str
    question: Asked
    key: tuple[bytes, ...]
    answer: NodeAnswer


class Settled:
    """The newest whole answer of each place, and what its rules had read for it."""

    def __init__(self) -> None:
        self._places: dict[Place, _Settled] = {}
        self._revision = ""
        self._reads: tuple[Read, ...] = ()

    def find(self, compiled: Compiled, place: Place, question: Asked) -> NodeAnswer | None:
        """The answer, where the same was asked of this place under this revision."""
        known = self._places.get(place)
        if known is None or known.revision != compiled.revision:
            return None
        same = known.question is question or known.key == self._key(compiled, question)
        return known.answer if same else None

    def put(self, compiled: Compiled, place: Place, question: Asked, answer: NodeAnswer) -> None:
        """Remember an answer. One in which a rule is missing is asked for again, and so is all that shadow rules count beside."""
        if answer.stale or any(group.mode == "shadow" for group in compiled.groups_of(NODES)):
            self._places.pop(place, None)
            return
        self._places.pop(place, None)
        self._places[place] = _Settled(compiled.revision, question, self._key(compiled, question), answer)
        while len(self._places) > MOST_PLACES:
            del self._places[next(iter(self._places))]

    def _key(self, compiled: Compiled, question: Asked) -> tuple[bytes, ...]:
        """All that the answer depends on."""
        if compiled.revision != self._revision:
            groups = [group for group in compiled.groups_of(NODES) if group.mode == "on"]
            self._revision, self._reads = compiled.revision, folded(read for group in groups for read in _reads(group))
        return tuple([question.part(read).key for read in self._reads])


def _reads(group: Group) -> list[Read]:
    """What the rules of the group read, and what its condition looks at."""
    return [*group.reads, *([Read(group.when[0], (group.when[1],))] if group.when else [])]
