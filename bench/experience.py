"""What clients got and what the engine gave: the arithmetic of the proofs over calls. Pure; moments and times in seconds."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.generator import percentile
from bench.traffic import Call, End

STEP_S = 0.1
"""How finely the end of a recovery is looked for."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What a call has to keep to count as good: time to the first token, and the mean time between tokens."""

    ttft_s: float
    itl_s: float

    def kept(self, call: Call) -> bool:
        """Whether the call got all of its tokens, and in time."""
        if call.end != "completed" or call.ttft_s is None or call.ttft_s > self.ttft_s:
            return False
        return len(call.tokens_s) < 2 or (call.tokens_s[-1] - call.tokens_s[0]) / (len(call.tokens_s) - 1) <= self.itl_s


@dataclass(frozen=True, slots=True)
class Batch:
    """How many sequences the engine takes at once from a moment on."""

    from_s: float
    sequences: int


def due(calls: Iterable[Call], from_s: float, to_s: float) -> list[Call]:
    """The calls that came in this time."""
    return [call for call in calls if from_s <= call.arrival.due_s < to_s]


def ttfts(calls: Iterable[Call], never_s: float = math.inf) -> list[float]:
    """Times to the first token of the calls that were let in; `never_s` where it never came."""
    return [never_s if call.ttft_s is None else call.ttft_s for call in calls if call.admitted]


def recovery_s(calls: Sequence[Call], *, since_s: float, until_s: float, target_s: float, window_s: float) -> float:
    """How long after `since_s` it takes until those who come from then on for `window_s` get their first token in time, 95 % of them.

    A time in which nobody is let in is no recovery. Infinite where it does not come before `until_s`.
    """
    for number in range(math.floor((until_s - window_s - since_s) / STEP_S) + 1):
        from_s = since_s + number * STEP_S
        times = ttfts(due(calls, from_s, from_s + window_s))
        if times and percentile(times, 0.95) <= target_s:
            return from_s - since_s
    return math.inf


def tokens(calls: Iterable[Call], until_s: float) -> int:
    """Tokens that clients received before `until_s`."""
    return sum(moment < until_s for call in calls for moment in call.tokens_s)


def possible_tokens(batches: Sequence[Batch], itl_s: float, until_s: float) -> float:
    """Tokens that an engine makes which has a full batch all the time and loses no time between two steps."""
    ends_s = [*(batch.from_s for batch in batches[1:]), until_s]
    return sum((end_s - batch.from_s) * batch.sequences / itl_s for batch, end_s in zip(batches, ends_s, strict=True))


def gaps_s(calls: Iterable[Call]) -> list[float]:
    """Times between two tokens of a stream, over all streams."""
    return [later - earlier for call in calls for earlier, later in pairwise(call.tokens_s)]


def ended(calls: Iterable[Call], end: End) -> int:
    """How many calls ended so."""
    return sum(call.end == end for call in calls)


def overflowing(calls: Sequence[Call], room_tokens: int) -> list[Call]:
    """The calls that would not have fitted the cache: at their full length, with all that was in flight as the gateway asked at its."""
    admitted = [call for call in calls if call.admitted]

    def in_flight(call: Call) -> int:
        others = (other for other in admitted if other is not call)
        return sum(other.arrival.most_tokens for other in others if other.decided_s <= call.sent_s < other.ended_s)

    return [call for call in calls if in_flight(call) + call.arrival.most_tokens > room_tokens]


def share(part: float, whole: float) -> float:
    """In per cent; 0 of nothing."""
    return 100 * part / whole if whole else 0.0
