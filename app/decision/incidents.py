"""Accesses that ended before the gateway confirmed what it owed: incidents, which the log is told of.

In time means by the end of the lease, however it ends: settled without confirming, expired, or released by an operator. Whoever
settles and confirms in one call, or within the second until the next look, is in time; whoever confirms later is told by a
`confirmed` access after the incident, and both stand. A cancelled lease is no incident: the gateway says that the access was never
used, and the log says so. An orderly end of serve forgets its leases, so what is owed then is told as `stopped`.

When down: the entries wait (app/audit/intake/pending.py). A serve that is killed tells nothing of its leases: their accesses stay
`unconfirmed` in the log with nothing after them, until the day's reports are made, which tells of them as `killed`.
"""

from app.audit.records.access import UnmetReason
from app.decision.confirmation import Confirmation
from app.decision.entries import Records
from app.limiter.lease import State
from app.limiter.memory import MemoryLimiter

LOOK_EVERY_S = 1.0
_REASONS: dict[State, UnmetReason] = {"settled": "settled", "expired": "expired", "released": "released", "live": "stopped"}


class Incidents:
    """Tells the log of leases that ended with something owed."""

    def __init__(self, limiter: MemoryLimiter, records: Records) -> None:
        self._limiter = limiter
        self._records = records

    async def look(self) -> None:
        """Tell of those that ended since the last look."""
        for noted in await self._limiter.take_ended_notes():
            self._tell(noted.state, Confirmation.unpack(noted.note))

    async def stop(self) -> None:
        """Tell of all that is owed still: nobody can confirm it to this process any more. For the end, after the last request."""
        await self.look()
        for noted in await self._limiter.live_notes():
            self._tell(noted.state, Confirmation.unpack(noted.note))

    def _tell(self, state: State, owed: Confirmation) -> None:
        if state == "cancelled":
            self._records.cancelled(owed)
        else:
            self._records.unmet(owed, _REASONS[state])
