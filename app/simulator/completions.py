"""The stand-in engine over HTTP: OpenAI's completions, plain and streamed, beside its page and its controls."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from app.simulator import controls, fields
from app.simulator.engine import Engine, EngineRestarted
from app.simulator.faults import FaultGate

CHARACTERS_PER_TOKEN = 4
"""A rule of thumb for English text; the stand-in has no tokenizer."""
DEFAULT_MAX_TOKENS = 16
"""OpenAI's own default for completions."""
WORD = "token "
"""What each generated token reads as."""


class UnknownModel(Exception):
    """The call names a model that this engine does not serve."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One completion as asked for."""

    id: str
    prompt_tokens: int
    max_tokens: int
    stream: bool
    include_usage: bool
    chat: bool

    @classmethod
    def of(cls, body: dict[str, Any], served: Sequence[str], *, chat: bool) -> "Ask":
        """From the body of a call. Raises ValueError naming the field, UnknownModel."""
        if body.get("model", served[0]) not in served:
            raise UnknownModel(f"model: {body['model']!r} is not served here")
        max_tokens = body.get("max_completion_tokens") or body.get("max_tokens", DEFAULT_MAX_TOKENS)
        if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 1:
            raise ValueError("max_tokens: expected a whole number from 1")
        prompt_tokens = _count(body.get("messages") if chat else body.get("prompt"))
        options = body.get("stream_options") or {}
        return cls(
            f"cmpl-{secrets.token_hex(8)}",
            prompt_tokens,
            max_tokens,
            stream=body.get("stream") is True,
            include_usage=options.get("include_usage") is True,
            chat=chat,
        )

    def usage(self, completion_tokens: int) -> dict[str, int]:
        """The usage object after `completion_tokens`."""
        total = self.prompt_tokens + completion_tokens
        return {"prompt_tokens": self.prompt_tokens, "completion_tokens": completion_tokens, "total_tokens": total}


def _count(prompt: Any) -> int:
    """Tokens of a prompt: given as token ids, text, or chat messages."""
    if isinstance(prompt, str):
        return max(1, -(-len(prompt) // CHARACTERS_PER_TOKEN))
    if isinstance(prompt, list) and prompt and all(type(token) is int for token in prompt):
        return len(prompt)
    if isinstance(prompt, list) and prompt and all(isinstance(message, dict) for message in prompt):
        return sum(_count(str(message.get("content", ""))) for message in prompt)
    raise ValueError("prompt (or messages): expected text, token ids or chat messages")


def build_app(engine: Engine) -> ASGIApp:
    """The HTTP face of one engine; its lifespan runs the engine's loop."""

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(engine.run())
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def models(_: Request) -> Response:
        return JSONResponse(
            {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "sluice"} for name in engine.config.served]}
        )

    async def health(_: Request) -> Response:
        return PlainTextResponse("")

    async def metrics(_: Request) -> Response:
        return Response(engine.render(), headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})

    async def completions(request: Request) -> Response:
        chat = request.url.path.endswith("/chat/completions")
        ask = Ask.of(fields.document(await request.body()), engine.config.served, chat=chat)
        engine.check(ask.prompt_tokens, ask.max_tokens)
        if ask.stream:
            return StreamingResponse(_events(engine, ask), media_type="text/event-stream")
        return await _whole(engine, ask, request)

    routes = [
        Route("/v1/models", models),
        Route("/health", health),
        Route("/metrics", metrics),
        Route("/v1/completions", completions, methods=["POST"]),
        Route("/v1/chat/completions", completions, methods=["POST"]),
        *controls.routes(engine),
    ]
    refusals: dict[Any, Any] = {ValueError: _refuse(400), UnknownModel: _refuse(404), EngineRestarted: _refuse(503)}
    return FaultGate(Starlette(routes=routes, lifespan=lifespan, exception_handlers=refusals), engine.faults, lambda: engine.down)


def _refuse(status: int) -> Any:
    async def answer(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": {"message": str(error), "type": type(error).__name__, "code": status}}, status)

    return answer


def _choice(ask: Ask, text: str, finish_reason: str | None) -> dict[str, Any]:
    if not ask.chat:
        body: dict[str, Any] = {"text": text}
    elif ask.stream:
        body = {"delta": {"role": "assistant", "content": text}}
    else:
        body = {"message": {"role": "assistant", "content": text}}
    return {"index": 0, **body, "finish_reason": finish_reason}


def _document(engine: Engine, ask: Ask, choices: list[dict[str, Any]]) -> dict[str, Any]:
    kind = "chat.completion" if ask.chat else "text_completion"
    return {"id": ask.id, "object": f"{kind}.chunk" if ask.chat and ask.stream else kind, "model": engine.config.model, "choices": choices}


async def _events(engine: Engine, ask: Ask) -> AsyncIterator[bytes]:
    """Server-sent events. The server cancels this when the client leaves, which closes `tokens` and aborts the request."""
    try:
        async with contextlib.aclosing(engine.generate(ask.prompt_tokens, ask.max_tokens)) as tokens:
            async for number in tokens:
                finish = "length" if number + 1 == ask.max_tokens else None
                yield _event(_document(engine, ask, [_choice(ask, WORD, finish)]))
    except EngineRestarted as error:
        yield _event({"error": {"message": str(error), "type": "EngineRestarted", "code": 503}})
        return
    if ask.include_usage:
        yield _event({**_document(engine, ask, []), "usage": ask.usage(ask.max_tokens)})
    yield b"data: [DONE]\n\n"


def _event(document: dict[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(document) + b"\n\n"


async def _whole(engine: Engine, ask: Ask, request: Request) -> Response:
    """The plain answer; a client that leaves before it is there aborts the request just as a streamed one does."""

    async def collect() -> int:
        async with contextlib.aclosing(engine.generate(ask.prompt_tokens, ask.max_tokens)) as tokens:
            return len([number async for number in tokens])

    work, left = asyncio.create_task(collect()), asyncio.create_task(_disconnect(request))
    try:
        await asyncio.wait((work, left), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            return Response(status_code=499)
        document = _document(engine, ask, [_choice(ask, WORD * work.result(), "length")])
        return JSONResponse({**document, "usage": ask.usage(work.result())})
    finally:
        for task in (work, left):
            task.cancel()
        await asyncio.gather(work, left, return_exceptions=True)


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
