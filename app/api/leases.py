"""Leases in flight and what tenants have left: what an operator looks at, and the force release of a stuck lease."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends

from app.api.paths import EncodedPathRoute
from app.api.query import known_query
from app.auth.keys import Principal, Role
from app.decision.decision import number
from app.errors import NotFound
from app.ids import tenant_id
from app.limiter.charge import Level, LiveLease
from app.limiter.memory import MemoryLimiter
from app.quota.registry import Registry

READERS: tuple[Role, ...] = ("operator", "admin", "auditor")


def lease_router(limiter: MemoryLimiter, registry: Registry, principal: Callable[..., Principal]) -> APIRouter:
    """Routes for operators; a gateway may read the usage of the tenants it speaks for."""
    router = APIRouter(tags=["leases"], route_class=EncodedPathRoute, dependencies=[Depends(known_query)])
    caller = Annotated[Principal, Depends(principal)]

    @router.get("/leases", summary="Leases in flight, all or one tenant's.")
    async def leases(who: caller, tenant: str | None = None) -> dict[str, Any]:
        who.require(*READERS)
        return {"leases": [_lease(lease) for lease in await limiter.leases(tenant_id(tenant) if tenant is not None else None)]}

    @router.delete("/leases/{decision_id}", summary="Free the slot of a lease whose holder is gone; tokens stay charged.")
    async def release(who: caller, decision_id: str) -> dict[str, Any]:
        who.require("operator", "admin")
        await limiter.release(decision_id)
        return {"lease_id": decision_id, "released": True}

    @router.get("/usage/{tenant}", summary="What a tenant has left, per bucket.")
    async def usage(who: caller, tenant: str) -> dict[str, Any]:
        name = tenant_id(tenant)
        if not who.roles.intersection(READERS):
            who.require_tenant(name)
        if registry.tenant(name) is None:
            raise NotFound(f"tenant {name!r} has no quota", field="tenant")
        return {"tenant": name, "buckets": [_level(level) for level in await limiter.usage(name)]}

    return router


def _lease(lease: LiveLease) -> dict[str, Any]:
    return {
        "lease_id": lease.lease_id,
        "tenant": lease.tenant,
        "model": lease.model,
        "node": lease.node,
        "tokens_reserved": lease.tokens_reserved,
        "age_ms": round(lease.age_ms),
        "expires_in_ms": round(lease.expires_in_ms),
    }


def _level(level: Level) -> dict[str, Any]:
    bucket = level.bucket
    return {
        "bucket": bucket.kind,
        "key": list(bucket.key[1:]),
        "dimension": bucket.dimension,
        "limit": number(bucket.limit),
        "remaining": int(level.remaining),
        "reset_ms": round(level.reset_ms),
    }
