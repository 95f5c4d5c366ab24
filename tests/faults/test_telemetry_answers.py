"""A telemetry process that misbehaves: nothing of a bad answer is believed, the log names it, and a good answer ends it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from structlog.testing import capture_logs

from app.catalog.models import ModelSpec
from app.clock import SystemClock
from app.observability.metrics import Metrics
from app.telemetry.follow import RETRY_MS, Follower, follow
from app.telemetry.snapshot import Node, Reading, Snapshot
from app.telemetry.view import View
from app.telemetry.wire import encode
from tests.fixtures.engine import serving
from tests.fixtures.waiting import until

Answer = Callable[[Request], Awaitable[Response]]
STALE_MS = 300.0
STEP_S = 0.02


class Telemetry:
    """Answers as it is told to; `asked` counts."""

    def __init__(self) -> None:
        self.answer: Answer = self.well
        self.generation = 0
        self.asked = 0

    async def snapshot(self, request: Request) -> Response:
        self.asked += 1
        return await self.answer(request)

    async def well(self, _: Request) -> Response:
        """A new generation every 20 ms, each with a fresh page."""
        await asyncio.sleep(STEP_S)
        self.generation += 1
        return Response(self.document(), media_type="application/json")

    def document(self) -> bytes:
        readings = {"m": Reading(kv_ratio=0.5, waiting=1)}
        return encode(Snapshot(self.generation, (Node("a", ("m",), readings=readings, age_ms=5.0),)))


def answering(body: bytes, status: int = 200, media_type: str = "application/json") -> Answer:
    async def answer(_: Request) -> Response:
        return Response(body, status, media_type=media_type)

    return answer


async def elsewhere(_: Request) -> Response:
    return RedirectResponse("/elsewhere")


async def never(_: Request) -> Response:
    await asyncio.sleep(2)
    return Response(b"")


async def drips(_: Request) -> Response:
    async def drops() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" "
            await asyncio.sleep(0.05)

    return StreamingResponse(drops(), media_type="application/json")


async def wrong_shape(_: Request) -> Response:
    return JSONResponse({"generation": 7, "nodes": [{"name": "a", "models": ["m"], "readings": {"m": {"kv_ratio": "0.1"}}, "age_ms": "0"}]})


BAD = {
    "no JSON": (answering(b"\x00\xff garbage"), "answered no snapshot"),
    "a web page": (answering(b"<html>hello</html>", media_type="text/html"), "answered no snapshot"),
    "another document": (answering(b'{"nodes": []}'), "answered no snapshot"),
    "a half": (answering(Telemetry().document()[:-40]), "answered no snapshot"),
    "a text for a number": (wrong_shape, "answered no snapshot"),
    "an error": (answering(b"", 500), "answered 500"),
    "a wrong token": (answering(b"", 401), "answered 401"),
    "a redirect": (elsewhere, "answered 307"),
    "silence": (never, "TimeoutError"),
    "an endless answer": (drips, "TimeoutError"),
}


@contextlib.asynccontextmanager
async def followed() -> AsyncIterator[tuple[Telemetry, list[View], list[str]]]:
    """The process, the views that a follower makes of it, and the addresses beside the right one that it was led to."""
    telemetry, views, led = Telemetry(), [], []

    async def lost(request: Request) -> Response:
        led.append(request.url.path)
        return await telemetry.well(request)

    app = Starlette(routes=[Route("/snapshot", telemetry.snapshot), Route("/{path:path}", lost)])
    async with serving(app) as url:
        follower = Follower([views.append], SystemClock(), Metrics(), lambda: {"m": ModelSpec(id="m")}, stale_ms=STALE_MS)
        task = asyncio.create_task(follow(url, follower, SystemClock()))
        try:
            await until(lambda: live(views) == 1)
            yield telemetry, views, led
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def live(views: list[View]) -> int | None:
    return views[-1].models["m"].readings["live"] if views else None


@pytest.mark.parametrize("kind", BAD)
async def test_a_bad_answer_is_an_outage(kind: str) -> None:
    """The last good readings grow old and leave, one line says why, and the first good answer brings the nodes back."""
    bad, problem = BAD[kind]
    async with followed() as (telemetry, views, led):
        with capture_logs() as logged:
            telemetry.answer = bad
            await until(lambda: live(views) == 0)
            stale = views[-1]
            await until(lambda: any(line["event"] == "telemetry.silent" for line in logged))
            telemetry.answer = telemetry.well
            await until(lambda: live(views) == 1)

    assert [(state.node, state.why, state.reading.kv_ratio) for state in stale.nodes] == [("a", "stale", 0.5)]
    (said,) = [line["problem"] for line in logged if line["event"] == "telemetry.silent"]
    assert problem in said
    assert led == []


async def test_a_bad_answer_is_not_asked_for_without_pause() -> None:
    """However fast the bad answers come, the process is asked no more often than every 50 ms, and the readings do not blink."""
    async with followed() as (telemetry, views, _):
        telemetry.answer = answering(b"garbage")
        asked, begun_s = telemetry.asked, asyncio.get_running_loop().time()
        await until(lambda: live(views) == 0)
        seconds = asyncio.get_running_loop().time() - begun_s

    assert telemetry.asked - asked <= 2 + seconds * 1000 / RETRY_MS
