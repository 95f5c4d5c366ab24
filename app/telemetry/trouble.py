"""When trouble is news: once for each kind, not while somebody who may be starting has yet to be heard of, or again each minute."""

import math

from app.clock import Clock

FIRST_CONTACT_MS = 5000.0
"""Programs that start together hear of each other within one or two seconds on busy cores; after this, silence is news."""
REMIND_MS = 60_000.0
"""A line a minute is seen by whoever looks at the log now, and fills none."""


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


class Reminder:
    """When trouble that goes on for long is worth a line: at once, and then once a minute for each kind."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told_ms: dict[tuple[str, ...], float] = {}

    def due(self, *kind: str) -> bool:
        """Whether this kind was not told within the last minute; then it counts as told."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._told_ms.get(kind, -math.inf) < REMIND_MS:
            return False
        self._told_ms[kind] = now_ms
        return True
