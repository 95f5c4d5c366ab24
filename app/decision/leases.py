"""Ending and extending leases: what a gateway reports after an admitted call."""

from typing import Any

from app.auth.keys import Principal
from app.decision.decision import number
from app.decision.request import RenewRequest, SettleRequest
from app.limiter.charge import Settlement, Usage
from app.limiter.memory import MemoryLimiter


class Leases:
    """Settle, renew and cancel, each for the credential that was given the lease."""

    def __init__(self, limiter: MemoryLimiter, ttl_ms: float) -> None:
        self._limiter = limiter
        self._ttl_ms = ttl_ms

    async def settle(self, lease_id: str, caller: Principal, report: SettleRequest) -> dict[str, Any]:
        """Charge or refund the difference and free the slot. Raises NotFound for an unknown or forgotten lease."""
        usage = Usage(report.prompt_tokens, report.completion_tokens, report.cached_tokens, report.outcome)
        return _document(await self._limiter.settle(lease_id, caller.key_id, usage))

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
