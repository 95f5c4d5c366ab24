"""What was spent in the last minute: two windows, the older one counted by the share of it that still lies in the minute."""

WINDOW_MS = 60_000.0


class LastMinute:
    """Sums by key. Bounded by the keys that spent anything in the last two windows."""

    def __init__(self) -> None:
        self._window = 0
        self._now: dict[tuple[str, str], float] = {}
        self._before: dict[tuple[str, str], float] = {}

    def add(self, key: tuple[str, str], amount: float, now_ms: float) -> None:
        """Count `amount`; negative for what was given back."""
        self._turn(now_ms)
        self._now[key] = self._now.get(key, 0.0) + amount

    def sums(self, now_ms: float) -> dict[tuple[str, str], float]:
        """The sum per key, never below 0: exact within one window, an estimate across its edge."""
        self._turn(now_ms)
        older_ratio = 1.0 - now_ms % WINDOW_MS / WINDOW_MS
        return {
            key: max(0.0, self._now.get(key, 0.0) + self._before.get(key, 0.0) * older_ratio)
            for key in self._now.keys() | self._before.keys()
        }

    def _turn(self, now_ms: float) -> None:
        window = int(now_ms // WINDOW_MS)
        if window != self._window:
            self._before = self._now if window == self._window + 1 else {}
            self._now = {}
            self._window = window
