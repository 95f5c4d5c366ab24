"""The memo of answers: exact, since a key holds everything its answer depends on; bounded in bytes, least used leaves first."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from app.observability.metrics import Metrics
from app.policy.plan import Key

V = TypeVar("V")

_ENTRY_BYTES = 400
"""Of an entry without key and value: the tables' share, key tuple, and this record."""


@dataclass(slots=True)
class Entry(Generic[V]):
    """One value, and when and how often it was used. `size` is an estimate in bytes."""

    value: V
    size: int
    used_ms: float
    """When a question last needed it."""
    touched_ms: float
    """When it last came to the young end, by use or by being put there."""
    uses: int = 0


class Memo(Generic[V]):
    """Values by key, ordered by use."""

    def __init__(self, max_bytes: int, metrics: Metrics) -> None:
        self._entries: OrderedDict[Key, Entry[V]] = OrderedDict()
        self._max_bytes = max_bytes
        self._metrics = metrics
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def use(self, key: Key, now_ms: float, times: int = 1) -> V | None:
        """The value under `key`, used `times` by now and the youngest; None where it is missing."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        entry.used_ms = entry.touched_ms = now_ms
        entry.uses += times
        return entry.value

    def put(self, key: Key, value: V, size: int, now_ms: float, *, heir_of: "Entry[V] | None" = None) -> None:
        """Keep `value`, `size` bytes large. An heir takes over half of the uses of what it replaces, and when it was used."""
        before = self.bytes
        old = self._entries.pop(key, None)
        if old is not None:
            self.bytes -= old.size
        entry = Entry(value, size + _ENTRY_BYTES, now_ms, now_ms)
        if heir_of is not None:
            entry.used_ms, entry.uses = heir_of.used_ms, heir_of.uses // 2
        self._entries[key] = entry
        self.bytes += entry.size
        while self.bytes > self._max_bytes and self._entries:
            _, evicted = self._entries.popitem(last=False)
            self.bytes -= evicted.size
            self._metrics.memo_evicted.inc()
        self._metrics.memo_bytes.inc(self.bytes - before)

    def hot(self, since_ms: float) -> Iterator[tuple[Key, Entry[V]]]:
        """Entries used at or after `since_ms`, youngest first."""
        for key, entry in reversed(self._entries.items()):
            if entry.touched_ms < since_ms:
                return
            if entry.used_ms >= since_ms:
                yield key, entry
