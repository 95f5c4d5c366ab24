"""Where leases are kept: the live ones by the time they expire, the ended ones for a while, all within a bound of bytes."""

from collections import deque
from heapq import heapify, heappop, heappush

from prometheus_client import Counter

from app.errors import NotFound
from app.limiter.errors import LeaseRecordsFull, RequestIdReused, RequestInFlight
from app.limiter.lease import Lease, Noted, State

FORGOTTEN = (
    "Let it go: a refused decision has no lease, and leases are forgotten by a restart and lease.keep_ms after their end. "
    "Or use the key that asked for it."
)
"""What to do about a lease that is not there: the usual causes, where the id was not mistyped."""

LEAST_STALE = 64
"""Expiry entries of leases that ended early which are left lying before the heap is built anew."""


class LeaseRecords:
    """Leases by id and by request id. Time is handed to every call, so that one instant rules a whole step."""

    def __init__(self, keep_ms: float, most_bytes: int, evicted: Counter) -> None:
        self._keep_ms = keep_ms
        self._most_bytes = most_bytes
        self._evicted = evicted
        self.live: dict[str, Lease] = {}
        self.bytes = 0
        self._ended: dict[str, Lease] = {}
        self._ended_in_order: deque[Lease] = deque()
        self._by_request: dict[tuple[str, ...], Lease] = {}
        self._expiries: list[tuple[float, str]] = []
        self._ended_noted: list[Lease] = []
        """Those with a note that ended and were not told of; whoever reads them comes every second."""

    def find(self, lease_id: str, scope: str | None) -> Lease:
        """The lease, live or ended, of that scope (None: any). Raises NotFound, the same for another's as for none."""
        lease = self.live.get(lease_id) or self._ended.get(lease_id)
        if lease is None or (scope is not None and lease.scope != scope):
            raise NotFound(f"lease {lease_id!r} is not known, or was given to another credential", hint=FORGOTTEN, field="lease_id")
        return lease

    def recall(self, request_key: tuple[str, ...], digest: bytes) -> bytes | None:
        """The answer recorded for a request id; None where there is none. Raises RequestIdReused, RequestInFlight."""
        lease = self._by_request.get(request_key)
        if lease is None:
            return None
        if lease.request_digest != digest:
            raise RequestIdReused(f"request_id {request_key[-1]!r} came with another body before", field="request_id")
        if lease.answer is None:
            raise RequestInFlight(f"request_id {request_key[-1]!r} is being decided right now", field="request_id")
        return lease.answer

    def forget_old(self, now_ms: float) -> None:
        """Let go of records that ended long enough ago."""
        ended = self._ended_in_order
        while ended and ended[0].ended_ms + self._keep_ms <= now_ms:
            self._forget(ended.popleft())

    def make_room(self, lease: Lease) -> None:
        """Let go of the oldest ended records while there is no room for this lease. Raises LeaseRecordsFull."""
        ended = self._ended_in_order
        while ended and self.bytes + lease.size_bytes > self._most_bytes:
            self._forget(ended.popleft())
            self._evicted.inc()
        if self.bytes + lease.size_bytes > self._most_bytes:
            raise LeaseRecordsFull(f"{len(self.live)} leases in flight fill the bound of {self._most_bytes} bytes of lease records")

    def add(self, lease: Lease) -> None:
        """Keep a new live lease."""
        self.live[lease.lease_id] = lease
        self.bytes += lease.size_bytes
        if lease.request_key is not None:
            self._by_request[lease.request_key] = lease
        self._expect(lease)

    def record(self, lease: Lease, answer: bytes) -> None:
        """Keep the answer that a replay of the lease's request gets."""
        self.bytes += len(answer) - len(lease.answer or b"")
        lease.answer = _own(answer)

    def note(self, lease: Lease, note: bytes | None) -> None:
        """Keep a note with the lease, or let go of the one that it has."""
        if lease.state != "live" and lease.note is None and note is not None:
            self._ended_noted.append(lease)
        grown = len(note or b"") - len(lease.note or b"")
        lease.note = note and _own(note)
        lease.size_bytes += grown
        self.bytes += grown

    def renew(self, lease: Lease, expires_ms: float) -> None:
        """Move a live lease's end."""
        lease.expires_ms = expires_ms
        self._expect(lease)

    def end(self, lease: Lease, state: State, ended_ms: float) -> None:
        """Turn a lease into a record, or say of a record how it ended after all. What was cancelled answers no request id."""
        if self.live.pop(lease.lease_id, None) is not None:
            lease.ended_ms = ended_ms
            self._ended[lease.lease_id] = lease
            self._ended_in_order.append(lease)
            if lease.note is not None:
                self._ended_noted.append(lease)
        lease.state = state
        if state == "cancelled" or lease.answer is None:
            self._unlist(lease)

    def take_ended_notes(self) -> list[Noted]:
        """Leases that ended since this was last asked and still have their note, which they keep."""
        ended, self._ended_noted = self._ended_noted, []
        return [Noted(lease.lease_id, lease.state, lease.note) for lease in ended if lease.note is not None]

    def live_notes(self) -> list[Noted]:
        """Live leases that have a note."""
        return [Noted(lease.lease_id, lease.state, lease.note) for lease in self.live.values() if lease.note is not None]

    def due(self, now_ms: float) -> Lease | None:
        """One live lease whose time is over, or None."""
        expiries = self._expiries
        while expiries and expiries[0][0] <= now_ms:
            expires_ms, lease_id = heappop(expiries)
            lease = self.live.get(lease_id)
            if lease is not None and lease.expires_ms == expires_ms:
                return lease
        return None

    def _expect(self, lease: Lease) -> None:
        heappush(self._expiries, (lease.expires_ms, lease.lease_id))
        if len(self._expiries) > 2 * len(self.live) + LEAST_STALE:
            self._expiries = [(live.expires_ms, live.lease_id) for live in self.live.values()]
            heapify(self._expiries)

    def _forget(self, lease: Lease) -> None:
        del self._ended[lease.lease_id]
        self.bytes -= lease.size_bytes + len(lease.answer or b"")
        self._unlist(lease)

    def _unlist(self, lease: Lease) -> None:
        if lease.request_key is not None and self._by_request.get(lease.request_key) is lease:
            del self._by_request[lease.request_key]


def _own(text: bytes) -> bytes:
    """The same bytes in no more memory than they need: an encoder's own keep its buffer of some KiB for as long as they live."""
    return bytes(memoryview(text))
