"""What a rate was charged lately, by when it was admitted: it tells how far a refund may bring the bucket back.

A bucket's one number (gcra.py) can't tell a charge that is still owed from one that it has long earned. Without this a late
cancel would give back what others have already been let through on, and more would pass than the limit.
"""

from array import array

SLOTS_A_WINDOW = 16
"""Charges this near to each other share a slot. A refund then falls short of the exact one by a sixteenth of a bucket at most."""

WINDOWS_KEPT = 2.0
"""A charge older than this gets nothing back: two windows bound the slots, and nearly all calls end within them."""

_FIRST, _LAST, _CHARGED, _FIELDS = 0, 1, 2, 3
"""A slot's fields: its first and last admission, and what is charged of it, all in ms. One flat array holds all slots."""


class Ledger:
    """Slots in the order of admission; only those in which something was admitted."""

    __slots__ = ("_slots",)

    def __init__(self) -> None:
        self._slots = array("d")

    def __len__(self) -> int:
        return len(self._slots) // _FIELDS

    def admit(self, cost_ms: float, now_ms: float, window_ms: float) -> None:
        """Note a charge; `window_ms` says how near is near, and how old is old."""
        slots = self._slots
        if slots and now_ms - slots[_FIRST - _FIELDS] < window_ms / SLOTS_A_WINDOW:
            slots[_LAST - _FIELDS] = now_ms
            slots[_CHARGED - _FIELDS] += cost_ms
            return
        old = 0
        while old < len(slots) and slots[old + _LAST] < now_ms - WINDOWS_KEPT * window_ms:
            old += _FIELDS
        del slots[:old]
        slots.extend((now_ms, now_ms, cost_ms))

    def charge(self, admitted_ms: float, more_ms: float) -> None:
        """Note what a charge admitted then costs besides."""
        for slot in range(len(self._slots) - _FIELDS, -1, -_FIELDS):
            if self._holds(slot, admitted_ms):
                self._slots[slot + _CHARGED] += more_ms

    def refund(self, wanted_ms: float, price_ms: float, admitted_ms: float, tat_ms: float, now_ms: float) -> float:
        """How much of `wanted_ms` a charge of `price_ms`, admitted then, gets back from a bucket at `tat_ms`; noted.

        The bucket may not come back further than where all that was admitted since, on its own, would have brought a full one.
        """
        slots, since_ms, least_ms = self._slots, 0.0, now_ms
        for slot in range(len(slots) - _FIELDS, -1, -_FIELDS):
            found = self._holds(slot, admitted_ms)
            since_ms += slots[slot + _CHARGED] - (price_ms if found else 0.0)
            least_ms = max(least_ms, slots[slot + _LAST] + since_ms)
            if found:
                refund_ms = max(0.0, min(wanted_ms, tat_ms - least_ms))
                slots[slot + _CHARGED] -= refund_ms
                return refund_ms
        return 0.0

    def _holds(self, slot: int, admitted_ms: float) -> bool:
        return self._slots[slot + _FIRST] <= admitted_ms <= self._slots[slot + _LAST]
