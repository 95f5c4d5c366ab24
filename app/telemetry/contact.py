"""When the silence of a program is news: not while it may be starting; and what is told again each minute while it goes on."""

import math

from app.clock import Clock
from app.trouble import Trouble

FIRST_CONTACT_MS = 5000.0
"""Programs that start together hear of each other within one or two seconds on busy cores; after this, silence is news."""
REMIND_MS = 60_000.0
"""A line a minute is seen by whoever looks at the log now, and fills none."""


class Contact:
    """Whether one program that is asked again and again answers, and the trouble with it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._patient_until_ms = clock.monotonic_ms() + FIRST_CONTACT_MS
        self._trouble = Trouble()

    def unheard(self, why: str) -> bool:
        """It gave no good answer: whether that is news."""
        return self._clock.monotonic_ms() >= self._patient_until_ms and self._trouble.is_news(why)

    def heard(self, why: str | None = None) -> bool:
        """It answered, with something wrong or nothing: whether that is news."""
        self._patient_until_ms = -math.inf
        if why is None:
            self._trouble.over()
            return False
        return self._trouble.is_news(why)


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
