"""Which groups of rules a question is asked of, and the memo keys that stand for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from app.policy.bundle import Compiled, Group, exists
from app.policy.kinds import REQUESTS
from app.policy.question import Asked, Question
from app.policy.reads import Read, folded

Key = tuple[Any, ...]
"""Memo key: revision and group (or plan), then the canonical bytes of what is read of each section."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The groups that one kind of question is asked of, and all that they read."""

    name: str
    groups: tuple[Group, ...]
    sections: Callable[[Question], tuple[bytes, ...]]
    """Keys of the model and of all sections that are read as a whole, in one call: every decision makes it."""
    parts: tuple[Read, ...]
    """What is read of other sections."""


class Plans:
    """The plans of one policy revision. Conditions (`when`) of groups choose among them; each is made once."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.revision = compiled.revision
        groups = compiled.groups_of(REQUESTS)
        self.shadow = tuple(group for group in groups if group.mode == "shadow")
        self._always = tuple(group for group in groups if group.mode == "on" and not group.when)
        self._conditional = tuple(group for group in groups if group.mode == "on" and group.when)
        self._by_name: dict[str, Plan] = {}
        self._plain = self._plan(self._always)

    def choose(self, question: Question) -> Plan:
        """The plan of this question."""
        chosen = tuple(group for group in self._conditional if holds(group, question))
        return self._plan(self._always + chosen) if chosen else self._plain

    def _plan(self, groups: tuple[Group, ...]) -> Plan:
        names = "+".join(group.name for group in groups)
        if names not in self._by_name:
            reads = folded(read for group in groups for read in group.reads)
            whole = [read.section for read in reads if not read.fields]
            self._by_name[names] = Plan(
                names, groups, _keys_of(tuple(dict.fromkeys(("model", *whole)))), tuple(read for read in reads if read.fields)
            )
        return self._by_name[names]

    def group(self, name: str) -> Group | None:
        """The group of this name, where this revision has it; the name says what it reads."""
        return next((group for group in self.compiled.groups if group.name == name), None)


def holds(group: Group, question: Asked) -> bool:
    """Whether the path of the group's `when` exists in the question."""
    return not group.when or exists(getattr(question, group.when[0]).value, group.when[1:])


def _keys_of(sections: Sequence[str]) -> Callable[[Question], tuple[bytes, ...]]:
    if len(sections) == 1:
        return lambda question: (getattr(question, sections[0]).key,)  # of one name attrgetter makes no tuple
    return attrgetter(*(f"{section}.key" for section in sections))


def terms_key(revision: str, plan: Plan, question: Question, dimensions: frozenset[str]) -> Key:
    """Key of combined terms: one a model even where no rule reads it, since each model remembers its newest answers."""
    key = (revision, plan.name, dimensions, *plan.sections(question))
    return (*key, *[question.part(read).key for read in plan.parts]) if plan.parts else key


def group_key(revision: str, group: Group, question: Asked) -> Key:
    """Key of one group's answer."""
    return (revision, group.name, *[question.part(read).key for read in group.reads])


def newest_key(revision: str, group: Group, question: Question, model: str) -> Key:
    """Key of the newest answer about `model` that differs from the wanted one in readings alone."""
    rest = [question.part(read).key for read in group.reads if read.section != "readings"]
    return (revision, group.name, "newest", model, *rest)


def shown(group: Group, question: Question) -> Question:
    """The question with nothing in it but what the group reads."""
    return Question(**{read.section: question.part(read) for read in group.reads})


def values_of(asked: Asked, group: Group) -> dict[str, Any]:
    """What the group is shown of a question, as it goes to OPA."""
    return {read.section: asked.part(read).value for read in group.reads}
