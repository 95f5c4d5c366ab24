"""Pauses between tries of what fails again and again."""

from dataclasses import dataclass, field

FIRST_S = 0.2
"""Most failures are single."""
MOST_S = 5.0
"""An operator's repair is noticed soon."""
CALM_S = 10.0
"""What went well for this long begins anew."""


@dataclass(slots=True)
class Backoff:
    """The pause before the next try, in seconds: doubling from the first to the most, anew after a calm life."""

    first_s: float = FIRST_S
    most_s: float = MOST_S
    calm_s: float = CALM_S
    _next_s: float = field(default=0.0, init=False)

    def after(self, lived_s: float = 0.0) -> float:
        """The pause after a try that went well for `lived_s` before it failed."""
        pause_s = self.first_s if lived_s >= self.calm_s or not self._next_s else self._next_s
        self._next_s = min(self.most_s, pause_s * 2)
        return pause_s

    def reset(self) -> None:
        """It went well: the next failure is a first one."""
        self._next_s = 0.0
