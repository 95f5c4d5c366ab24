"""Ending and extending leases: what a gateway reports after an admitted call."""

from typing import Any

from app.auth.keys import Principal
from app.decision.confirmation import Confirmation
from app.decision.decision import number
from app.decision.entries import Records
from app.decision.request import RenewRequest, SettleRequest
from app.limiter.charge import Settlement, Usage
from app.limiter.memory import MemoryLimiter


class Leases:
    """Settle, renew and cancel, each for the credential that was given the lease."""

    def __init__(self, limiter: MemoryLimiter, records: Records, ttl_ms: float) -> None:
        self._limiter = limiter
        self._records = records
        self._ttl_ms = ttl_ms

    async def settle(self, lease_id: str, caller: Principal, report: SettleRequest) -> dict[str, Any]:
        """Charge or refund the difference, free the slot, and confirm the access where the gateway met what it owed.

        Raises NotFound for an unknown or forgotten lease. A later report can still confirm, as long as the lease is known.
        """
        usage = Usage(report.prompt_tokens, report.completion_tokens, report.cached_tokens, report.outcome)
        settlement = await self._limiter.settle(lease_id, caller.key_id, usage)
        if report.obligations_met and settlement.note is not None:
            owed = Confirmation.unpack(settlement.note)
            # Taken before it is written: of several reports that confirm one writes.
            if owed.met_by(report.obligations_met) and await self._limiter.take_note(lease_id) is not None:
                await self._records.confirm(owed)
        return _document(settlement)

    async def renew(self, lease_id: str, caller: Principal, wish: RenewRequest) -> dict[str, Any]:
        """A new life from now on. Raises NotFound, or Conflict where the lease has ended."""
        expires_in_ms = await self._limiter.renew(lease_id, caller.key_id, float(wish.ttl_ms or self._ttl_ms))
        return {"lease_id": lease_id, "expires_in_ms": round(expires_in_ms)}

    async def cancel(self, lease_id: str, caller: Principal) -> dict[str, Any]:
        """Give everything back; the same again changes nothing. Raises NotFound, or Conflict after a settle."""
        await self._limiter.cancel(lease_id, caller.key_id)
        return {"lease_id": lease_id, "cancelled": True}


def _document(settlement: Settlement) -> dict[str, Any]:
    return {
        "lease_id": settlement.lease_id,
        "outcome": settlement.outcome,
        "tokens_charged": number(settlement.tokens_charged),
        "tokens_refunded": number(settlement.refunded),
        "freed": settlement.freed,
        "repeated": settlement.repeated,
        "flags": list(settlement.flags),
    }
