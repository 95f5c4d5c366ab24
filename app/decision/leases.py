"""Ending and extending leases: what a gateway reports after an admitted call."""

from collections.abc import Sequence
from typing import Any

from app.auth.keys import Principal
from app.decision.confirmation import Confirmation
from app.decision.decision import number
from app.decision.entries import Records
from app.decision.request import RenewRequest, SettleRequest
from app.limiter.charge import Settlement, Usage
from app.limiter.memory import MemoryLimiter
from app.observability.metrics import Metrics

UNKNOWN_OBLIGATION = "unknown_obligation"
"""The flag of a report that names what its decision never obliged to, and so confirms nothing."""


class Leases:
    """Settle, renew and cancel, each for the credential that was given the lease."""

    def __init__(self, limiter: MemoryLimiter, records: Records, ttl_ms: float, metrics: Metrics) -> None:
        self._flags = metrics.settle_flags
        self._limiter = limiter
        self._records = records
        self._ttl_ms = ttl_ms

    async def settle(self, lease_id: str, caller: Principal, report: SettleRequest) -> dict[str, Any]:
        """Charge or refund the difference, free the slot, and confirm the access where the gateway met what it owed.

        The answer names what is owed still. A code that the decision never had is flagged and not refused, as an implausible count
        is: the tokens are known by now, and a refused report may not come again. It is flagged only while something is owed, since
        nothing of what was owed is known afterwards. So the report that confirms gets the same answer when it comes again, and an
        earlier one that left something out hears how things stand by then.
        Raises NotFound for an unknown or forgotten lease. A later report can still confirm, as long as the lease is known.
        """
        usage = Usage(report.prompt_tokens, report.completion_tokens, report.cached_tokens, report.outcome)
        settlement = await self._limiter.settle(lease_id, caller.key_id, usage)
        if settlement.note is None:
            return _document(settlement)
        access, codes = Confirmation.unpack(settlement.note), report.obligations_met or ()
        owed = access.owed_after(codes)
        # Taken before it is written: of several reports that confirm one writes.
        if not owed and await self._limiter.take_note(lease_id) is not None:
            await self._records.confirm(access)
        unknown = bool(owed) and access.unknown(codes)
        if unknown:  # a repeat, too: what is repeated is told by its tokens, and its codes may be others
            self._flags.labels(UNKNOWN_OBLIGATION).inc()
        return _document(settlement, owed, (UNKNOWN_OBLIGATION,) if unknown else ())

    async def renew(self, lease_id: str, caller: Principal, wish: RenewRequest) -> dict[str, Any]:
        """A new life from now on. Raises NotFound, or Conflict where the lease has ended."""
        expires_in_ms = await self._limiter.renew(lease_id, caller.key_id, float(wish.ttl_ms or self._ttl_ms))
        return {"lease_id": lease_id, "expires_in_ms": round(expires_in_ms)}

    async def cancel(self, lease_id: str, caller: Principal) -> dict[str, Any]:
        """Give everything back; the same again changes nothing. Raises NotFound, or Conflict after a settle."""
        await self._limiter.cancel(lease_id, caller.key_id)
        return {"lease_id": lease_id, "cancelled": True}


def _document(settlement: Settlement, owed: Sequence[str] = (), flags: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "lease_id": settlement.lease_id,
        "outcome": settlement.outcome,
        "tokens_charged": number(settlement.tokens_charged),
        "tokens_refunded": number(settlement.refunded),
        "freed": settlement.freed,
        "repeated": settlement.repeated,
        "flags": [*settlement.flags, *flags],
        "obligations_owed": list(owed),
    }
