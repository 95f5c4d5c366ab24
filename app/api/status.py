"""Health, readiness, metrics, version and the telemetry snapshot: what operators and orchestrators ask.

/healthz touches nothing. /readyz is 503 only while no decision could be made here: no policy yet, or draining. A
dependency that is down is a detail of it, not unreadiness: one outage must not become two.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from fastapi import APIRouter, Response
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from app import __version__
from app.observability.metrics import Metrics

Check = Callable[[], Awaitable[tuple[bool, str]]]
"""Whether a part is well, and a sentence on it; bounded in time by the part itself."""


@dataclass(slots=True)
class Health:
    """What /readyz reports. `required` parts make a replica unready, `parts` are details."""

    required: Mapping[str, Check]
    parts: Mapping[str, Check]
    draining: bool = False
    before_scrape: list[Callable[[], None]] = field(default_factory=list)
    """Gauges that are computed when somebody looks."""

    async def report(self) -> tuple[bool, dict[str, Any]]:
        """Ready or not, and the document that says why."""
        every = {**self.required, **self.parts}
        checks = dict(zip(every, await asyncio.gather(*(check() for check in every.values())), strict=True))
        ready = not self.draining and all(checks[name][0] for name in self.required)
        return ready, {
            "ready": ready,
            "draining": self.draining,
            "parts": {name: {"ok": ok, "detail": detail} for name, (ok, detail) in checks.items()},
        }


def status_router(health: Health, metrics: Metrics, telemetry: Callable[[], dict[str, Any]]) -> APIRouter:
    """Routes of an operator's first look."""
    router = APIRouter(tags=["status"])

    @router.get("/healthz", summary="The process answers; nothing else is touched.")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @router.get(
        "/readyz", summary="Whether decisions can be made here, and how each part is.", responses={503: {"description": "Not ready"}}
    )
    async def readyz() -> Response:
        ready, report = await health.report()
        return Response(orjson.dumps(report), 200 if ready else 503, media_type="application/json")

    @router.get("/metrics", summary="Metrics for Prometheus.", response_class=Response)
    async def metrics_page() -> Response:
        for refresh in health.before_scrape:
            refresh()
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    @router.get("/version", summary="Version of this process.")
    async def version() -> dict[str, str]:
        return {"version": __version__}

    @router.get("/telemetry", summary="The snapshot in force: per node and model what it says, and why it is not fresh when it is not.")
    async def telemetry_page() -> Response:
        return Response(orjson.dumps(telemetry()), media_type="application/json")

    return router
