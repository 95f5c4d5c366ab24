"""The gateway of the proofs, on a Sluice and an engine that are played by one server."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from bench.arrivals import Arrival
from bench.gateway import serve
from bench.traffic import Call, Traffic

TOKEN = b'data: {"choices":[{"text":"token "}]}\n\n'


class Played:
    """Answers decisions with `decision` and streams `parts`; `settled` holds the reports."""

    def __init__(self, decision: dict[str, Any], *parts: bytes) -> None:
        self._decision = {"decision_id": "lease-1", "node": None, **decision}
        self._parts = parts
        self.settled: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []

    async def decide(self, _: web.Request) -> web.Response:
        return web.json_response(self._decision)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        answer = web.StreamResponse()
        await answer.prepare(request)
        for part in self._parts:
            await answer.write(part)
        return answer

    async def settle(self, request: web.Request) -> web.Response:
        self.settled.append(await request.json())
        return web.json_response({})


@asynccontextmanager
async def on_loopback(played: Played) -> AsyncIterator[int]:
    app = web.Application()
    app.add_routes([web.post("/decide", played.decide), web.post("/v1/completions", played.complete)])
    app.add_routes([web.post("/leases/lease-1/settle", played.settle)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield runner.addresses[0][1]
    await runner.cleanup()


async def call(played: Played, *, generated: int = 2) -> Call:
    async with on_loopback(played) as port:
        arrival = Arrival(0.0, prompt_tokens=3, max_tokens=4, generated=generated)
        start = time.perf_counter()
        traffic = Traffic(start, port, {"authorization": "Bearer k"}, "t", "m", {"engine-0": port}, patience_s=5.0, arrivals=(arrival,))
        (found,) = (await serve(traffic)).calls
        return found


async def test_admitted_request_is_streamed_and_settled() -> None:
    """The engine is asked for what the model takes of it; the lease is settled with the tokens that came."""
    played = Played({"allow": True}, TOKEN, TOKEN + b"data: [DONE]\n\n")
    found = await call(played)

    assert (found.end, len(found.tokens_s), found.admitted) == ("completed", 2, True)
    assert played.asked == [{"model": "m", "prompt": [0, 0, 0], "max_tokens": 2, "stream": True}]
    assert [(report["completion_tokens"], report["outcome"]) for report in played.settled] == [(2, "completed")]
    assert played.settled[0]["ttft_ms"] > 0


async def test_refused_request_reaches_no_engine() -> None:
    """The first reason and its rule are kept; nothing is settled."""
    played = Played({"allow": False, "reasons": [{"code": "shed", "rule": "pressure"}]})
    found = await call(played)

    assert (found.end, found.reason, found.admitted, found.ttft_s) == ("refused", "shed pressure", False, None)
    assert (played.asked, played.settled) == ([], [])


async def test_lost_request_is_settled_as_failed() -> None:
    """An engine that ends a stream with an error, or before its last token, has failed; tokens that came are charged."""
    lost = Played({"allow": True}, TOKEN, b'data: {"error": {"code": 503}}\n\n')
    cut = Played({"allow": True}, TOKEN)

    assert [(await call(played)).end for played in (lost, cut)] == ["failed", "failed"]
    assert [report["outcome"] for report in lost.settled + cut.settled] == ["failed", "failed"]
    assert cut.settled[0]["completion_tokens"] == 1
