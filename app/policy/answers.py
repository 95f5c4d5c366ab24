"""What the memo of a policy holds: answers of groups, the newest one per question but for readings, and combined terms."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from prometheus_client import Counter

from app.clock import Clock
from app.observability.metrics import Metrics
from app.policy.bundle import Group
from app.policy.memo import Entry, Memo
from app.policy.plan import Key, Plan, group_key, newest_key, terms_key
from app.policy.question import Question
from app.policy.terms import Part, Terms

TELL_EVERY_MS = 100.0
"""A tenth of what counts as hot."""

HOT_MS = 1000.0
"""A question used within it is answered for a new snapshot before that becomes current."""

_TERMS_BYTES = 800
_PART_BYTES = 800
_NEWEST_BYTES = 100
"""Of combined terms, of one rule's part and of a second way to it: by tracemalloc over the rules that come with Sluice."""

_SECTIONS_SHARE = 4
"""A section's value takes about three times its encoded bytes, and the key holds these once."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A group's answer to what it was shown, under one revision; `model` is whose readings they were."""

    revision: str
    group: Group
    shown: Question
    model: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class _Newest:
    answer: Answer


@dataclass(slots=True)
class _Settled:
    """Combined terms, the answers they are made of, and their uses that those have not been told of yet."""

    terms: Terms
    answers: tuple[Key, ...]
    hits: tuple[Counter, ...]
    told_ms: float
    untold: int = 0


class Answers:
    """The memo, as the policy uses it. All three kinds share one bound and one order of use."""

    def __init__(self, max_bytes: int, clock: Clock, metrics: Metrics) -> None:
        self._memo: Memo[Answer | _Newest | _Settled] = Memo(max_bytes, metrics)
        self._clock = clock
        self._metrics = metrics

    def settled(self, revision: str, plan: Plan, question: Question, dimensions: frozenset[str]) -> Terms | None:
        """Terms combined before; the answers they are made of count as used."""
        now_ms = self._clock.monotonic_ms()
        kept = self._memo.use(terms_key(revision, plan, question, dimensions), now_ms)
        if not isinstance(kept, _Settled):
            return None
        for hit in kept.hits:
            hit.inc()
        kept.untold += 1
        if now_ms - kept.told_ms >= TELL_EVERY_MS:
            self._tell(kept, now_ms)
        return kept.terms

    def settle(self, terms: Terms, plan: Plan, question: Question, dimensions: frozenset[str]) -> None:
        """Keep combined terms."""
        key = terms_key(terms.revision, plan, question, dimensions)
        answers = tuple(group_key(terms.revision, group, question) for group in plan.groups)
        hits = tuple(self._metrics.memo_lookups.labels(group.name, "hit") for group in plan.groups)
        now_ms = self._clock.monotonic_ms()
        self._memo.put(key, _Settled(terms, answers, hits, now_ms), _TERMS_BYTES + key_bytes(key), now_ms)

    def _tell(self, kept: _Settled, now_ms: float) -> None:
        """Count the uses of combined terms as uses of their answers, many at once: the warm path pays for one look-up only."""
        for key in kept.answers:
            self._memo.use(key, now_ms, kept.untold)
        kept.told_ms, kept.untold = now_ms, 0

    def find(self, revision: str, group: Group, question: Question) -> Answer | None:
        """One group's answer."""
        now_ms = self._clock.monotonic_ms()
        kept = self._memo.use(group_key(revision, group, question), now_ms)
        self._metrics.memo_lookups.labels(group.name, "miss" if kept is None else "hit").inc()
        if not isinstance(kept, Answer):
            return None
        self._remember(kept, model_of(question), now_ms)  # asked for another model with the same readings, it is this one's newest too
        return kept

    def keep(self, answer: Answer, heir_of: Entry[Any] | None) -> None:
        """Keep one group's answer, in place of `heir_of` where it was asked ahead of need."""
        now_ms = self._clock.monotonic_ms()
        key = group_key(answer.revision, answer.group, answer.shown)
        size = _PART_BYTES * len(answer.parts) + _SECTIONS_SHARE * key_bytes(key)
        self._memo.put(key, answer, size, now_ms, heir_of=heir_of)
        self._remember(answer, answer.model, now_ms)

    def _remember(self, answer: Answer, model: str, now_ms: float) -> None:
        """Make `answer` the newest of `model`, where readings are all that others may differ in."""
        if answer.group.reading("readings"):
            newest = newest_key(answer.revision, answer.group, answer.shown, model)
            self._memo.put(newest, _Newest(answer), _NEWEST_BYTES, now_ms)

    def newest(self, revision: str, group: Group, question: Question) -> Answer | None:
        """The newest answer of the same model that differs in readings alone; None for groups that read none."""
        if not group.reading("readings"):
            return None
        kept = self._memo.use(newest_key(revision, group, question, model_of(question)), self._clock.monotonic_ms())
        return kept.answer if isinstance(kept, _Newest) else None

    def hot(self) -> Iterator[tuple[Entry[Any], Answer]]:
        """Answers that a question used within the last second, the most used first."""
        entries = (entry for _, entry in self._memo.hot(self._clock.monotonic_ms() - HOT_MS))
        answers = ((entry, entry.value) for entry in entries if isinstance(entry.value, Answer))
        yield from sorted(answers, key=_uses, reverse=True)


def key_bytes(key: Iterable[Any]) -> int:
    """Bytes of the sections' canonical forms in a key."""
    return sum(len(part) for part in key if isinstance(part, bytes))


def model_of(question: Question) -> str:
    """Id of the model that a question is about; empty where it is unknown."""
    return str(question.model.value.get("id", ""))


def _uses(item: tuple[Entry[Any], Answer]) -> int:
    return item[0].uses
