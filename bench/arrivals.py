"""Requests of clients, drawn ahead from a seed: what two arms of a proof are both given, request by request."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

ENDS_FROM = 0.5
"""A model ends by itself after this share of `max_tokens` at least, and after all of it at most: the bound is seldom reached."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of time in which requests come at one rate."""

    seconds: float
    rate: float
    """Requests a second."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """A kind of request: the least and the most tokens of its prompt, and of its `max_tokens`."""

    prompt: tuple[int, int]
    max_tokens: tuple[int, int]
    weight: float = 1.0
    """How often this kind is drawn."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request."""

    due_s: float
    """When it comes, from the start on."""
    prompt_tokens: int
    max_tokens: int
    """What it reserves."""
    generated: int
    """What it takes of it: the model ends by itself."""

    @property
    def most_tokens(self) -> int:
        """What it may come to hold in a cache, as far as anybody can know when it comes."""
        return self.prompt_tokens + self.max_tokens


def draw(phases: Sequence[Phase], kinds: Sequence[Sizes], seed: int) -> tuple[Arrival, ...]:
    """Random arrivals (Poisson) of random sizes; the same for the same seed."""
    drawn = random.Random(seed)
    found: list[Arrival] = []
    began_s = 0.0
    for phase in phases:
        due_s = began_s + drawn.expovariate(phase.rate)
        while due_s < began_s + phase.seconds:
            found.append(_arrival(due_s, drawn.choices(kinds, [kind.weight for kind in kinds])[0], drawn))
            due_s += drawn.expovariate(phase.rate)
        began_s += phase.seconds
    return tuple(found)


def _arrival(due_s: float, sizes: Sizes, drawn: random.Random) -> Arrival:
    prompt_tokens, max_tokens = drawn.randint(*sizes.prompt), drawn.randint(*sizes.max_tokens)
    return Arrival(due_s, prompt_tokens, max_tokens, max(1, round(max_tokens * drawn.uniform(ENDS_FROM, 1))))
