"""What live leases hold of one bucket, and when room comes: the usual time, the time it is stuck, the last of ends at most.

No lease is looked at: ends near to each other share a slot, so that thousands of leases cost as little as a few.
"""

from bisect import bisect_left, insort
from itertools import islice
from math import ceil, inf

SLOT_MS = 100.0
"""Ends this near to each other count as one, the last of them: exact enough for a wait."""

MOST_SLOTS_READ = 64
"""Slots looked at for the last end that a request needs; past it only the usual time tells, so that a refusal stays cheap."""

REMEMBERED = 31 / 32
"""What each end leaves of those before it: how long calls take is told by some thirty of them."""


class Holds:
    """Whole units by the end of their leases, and how long units were held until now."""

    __slots__ = ("_ended", "_ended_ms", "_moved_ms", "_slots", "_units", "total")

    def __init__(self) -> None:
        self.total = 0
        self._units: dict[int, int] = {}
        """Units held by slot."""
        self._slots: list[int] = []
        """The slots that hold any, in order."""
        self._ended = 0.0
        """Units given back, the older ones faded."""
        self._ended_ms = 0.0
        """Units given back times how long each was held, faded alike."""
        self._moved_ms = 0.0

    def take(self, units: int, expires_ms: float, now_ms: float) -> None:
        """A lease begins to hold."""
        self._list(units, expires_ms)
        self.total += units
        self._moved_ms = now_ms

    def free(self, units: int, expires_ms: float, ended_ms: float, held_ms: float | None) -> None:
        """A lease that would have ended at `expires_ms` ends now. `held_ms` None: its work never ran, so it tells nothing of others."""
        self._unlist(units, expires_ms)
        self.total -= units
        self._moved_ms = ended_ms
        if held_ms is not None:
            self._ended = self._ended * REMEMBERED + units
            self._ended_ms = self._ended_ms * REMEMBERED + units * held_ms

    def renew(self, units: int, expires_ms: float, new_expires_ms: float) -> None:
        """A lease goes on for longer, or for less."""
        self._unlist(units, expires_ms)
        self._list(units, new_expires_ms)

    def room_in_ms(self, units: int, now_ms: float) -> float | None:
        """When so many units, at most the total, will have been given back; None while nobody can know how long calls take.

        By Little's law a full bucket gives back its total once in the mean time that units are held. Where nothing has
        moved for longer than that, the calls of now are longer ones, and who asks again and again waits twice as long
        each time. No wait passes the ends of the leases themselves: gateways that are gone hold nothing beyond them.
        """
        usual_ms = units / self.total * self._ended_ms / self._ended if self._ended else 0.0
        likely_ms, latest_ms = max(usual_ms, now_ms - self._moved_ms), self._last_end_ms(units) - now_ms
        if not self._ended and likely_ms < latest_ms:
            return None
        return float(max(1, ceil(min(likely_ms, latest_ms))))

    def _last_end_ms(self, units: int) -> float:
        for slot in islice(self._slots, MOST_SLOTS_READ):
            units -= self._units[slot]
            if units <= 0:
                return slot * SLOT_MS
        return inf

    def _list(self, units: int, expires_ms: float) -> None:
        slot = ceil(expires_ms / SLOT_MS)
        if slot in self._units:
            self._units[slot] += units
        else:
            self._units[slot] = units
            insort(self._slots, slot)

    def _unlist(self, units: int, expires_ms: float) -> None:
        slot = ceil(expires_ms / SLOT_MS)
        self._units[slot] -= units
        if not self._units[slot]:
            del self._units[slot]
            del self._slots[bisect_left(self._slots, slot)]
