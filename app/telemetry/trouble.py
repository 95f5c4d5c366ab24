"""When trouble is news: once for each kind, and not while somebody who may be starting has yet to be heard of."""

import math

from app.clock import Clock

FIRST_CONTACT_MS = 5000.0
"""Programs that start together hear of each other within one or two seconds on busy cores; after this, silence is news."""


class Trouble:
    """The trouble with one program that is asked again and again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._patient_until_ms = clock.monotonic_ms() + FIRST_CONTACT_MS
        self._told: str | None = None

    def unheard(self, why: str) -> bool:
        """It gave no good answer: whether that is news."""
        return self._clock.monotonic_ms() >= self._patient_until_ms and self._is_new(why)

    def heard(self, why: str | None = None) -> bool:
        """It answered, with something wrong or nothing: whether that is news."""
        self._patient_until_ms = -math.inf
        return self._is_new(why)

    def _is_new(self, why: str | None) -> bool:
        new = why is not None and why != self._told
        self._told = why
        return new
