"""The outer edge: who calls, how much they may send, and that nothing but a clear answer ever leaves.

A plain ASGI layer, because `/decide` and the lease routes are answered here without a framework (a FastAPI route costs
several times what a decision on the warm path does). Everything else goes on to FastAPI with its body already read.
The credential is checked before the body is read, and reading stops at the limit.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import parse_qs

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.answer import Answer
from app.api.problems import InternalError, problem
from app.auth.keys import Keys, Principal
from app.errors import BadRequest, BodyTooLarge, SluiceError
from app.limiter.errors import Draining
from app.observability.metrics import Metrics

log = structlog.get_logger()

MAX_BODY = 64 * 1024
"""A decision needs a few hundred bytes: token counts, not prompts."""
MAX_BATCH_BODY = 256 * 1024
BODY_TIMEOUT_S = 10.0
"""A body of this size that takes longer is a stalled sender, not a slow one."""
PUBLIC = frozenset({b"/healthz", b"/readyz", b"/metrics", b"/version", b"/openapi.json"})
OWN_TOKEN = (b"/bundles/", b"/status")
"""Routes for our own OPA, which check a token of their own."""
MAX_HEADER_ECHO = 128


class UnsupportedEncoding(BadRequest):
    """The body is compressed or not JSON; a small one could unfold to any size."""

    code = "unsupported_encoding"
    status = 415
    hint = "Send plain application/json without Content-Encoding."


class SlowBody(BadRequest):
    """The body did not arrive within ten seconds."""

    code = "body_timeout"
    status = 408
    hint = "Send the whole body at once."


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a hot route, with its credential checked and its body read."""

    principal: Principal
    peer: str | None
    """Address of the other end of the connection, never what a header says; None on a unix socket."""
    path: bytes
    body: bytes
    query: dict[str, list[str]]
    receive: Receive


Handler = Callable[[Call], Awaitable[Answer]]


class Edge:
    """The ASGI application that uvicorn runs. `match(method, raw_path)` gives the handler of a hot route, or None."""

    def __init__(self, inner: ASGIApp, match: Callable[[str, bytes], Handler | None], keys: Keys, metrics: Metrics) -> None:
        self._inner = inner
        self._match = match
        self._keys = keys
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; errors become problem+json here and nowhere else."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        headers = dict(scope["headers"])
        echo = _echo(headers)
        started = False

        async def watch_start(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], *echo]
            await send(message)

        try:
            await self._route(scope, headers, receive, watch_start)
        except SluiceError as error:
            await self._refuse(error, watch_start)
        except asyncio.CancelledError:  # the server alone cancels, at its end, whoever has let it wait until then
            if not started:
                await self._refuse(Draining("the server ends, and the request was not complete"), watch_start)
        except Exception as error:  # the last line: whatever went wrong, the caller gets a clear answer
            log.exception(
                "unexpected error", path=scope["path"], kind=type(error).__name__, request_id=dict(echo).get(b"x-request-id", b"").decode()
            )
            if not started:
                await self._refuse(InternalError("an unexpected error; nothing of the request was kept"), watch_start)

    async def _route(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        handler = self._match(scope["method"], path)
        open_to_all = handler is None and (path in PUBLIC or path.startswith(OWN_TOKEN))
        principal = None if open_to_all else self._keys.principal(_bearer(headers))
        limit = MAX_BATCH_BODY if path == b"/decide/batch" else MAX_BODY
        body = b"" if scope["method"] in ("GET", "HEAD") else await _read(receive, headers, limit)
        if handler is not None and principal is not None:
            peer = scope["client"][0] if scope.get("client") else None
            answer = await handler(Call(principal, peer, path, body, _query(scope), receive))
            await answer.send(send)
            return
        scope.setdefault("state", {})["principal"] = principal
        await self._inner(scope, _replay(body, receive), send)

    async def _refuse(self, error: SluiceError, send: Send) -> None:
        self._metrics.http_refused.labels(error.code).inc()
        # What was not read of the body would be taken for the next request: close instead.
        extra = ((b"connection", b"close"),) if error.status in (401, 408, 413, 415) else ()
        await problem(error).send(send, *extra)


def at_once(receive: Receive) -> Message | None:
    """The next message where it is here already, without waiting for one and without the cost of a timer."""
    waiting = receive()
    try:
        waiting.send(None)  # type: ignore[attr-defined]
    except StopIteration as arrived:
        message: Message = arrived.value
        return message
    waiting.close()  # type: ignore[attr-defined]
    return None


def gone(receive: Receive) -> bool:
    """Whether the caller has hung up: the body is read, so the only message left is the disconnect."""
    message = at_once(receive)
    return message is not None and message["type"] == "http.disconnect"


def _bearer(headers: dict[bytes, bytes]) -> str | None:
    scheme, _, credential = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return credential.strip() if scheme.lower() == "bearer" and credential else None


async def _read(receive: Receive, headers: dict[bytes, bytes], limit: int) -> bytes:
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise UnsupportedEncoding("content-encoding: compressed bodies are not accepted", field="content-encoding")
    length = headers.get(b"content-length")
    if length is not None and int(length) > limit:
        raise BodyTooLarge(f"body: {int(length)} bytes, at most {limit} are accepted", field="body")
    if length is None and b"transfer-encoding" not in headers:
        return b""
    first = at_once(receive)
    if first is not None and not first.get("more_body", False):
        return await _rest(first, receive, limit)
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await _rest(first or await receive(), receive, limit)
    except TimeoutError:
        raise SlowBody(f"body: not complete after {BODY_TIMEOUT_S:.0f} s", field="body") from None


async def _rest(message: Message, receive: Receive, limit: int) -> bytes:
    """The body whose first piece is `message`. Raises BodyTooLarge where reading stops, BadRequest where the caller hangs up."""
    chunks: list[bytes] = []
    size = 0
    while True:
        if message["type"] == "http.disconnect":  # half of a body may be a whole request; nobody asked for that one
            raise BadRequest(f"body: the connection ended after {size} bytes of it", field="body")
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limit:
            raise BodyTooLarge(f"body: more than {limit} bytes", field="body")
        if not message.get("more_body", False):
            return b"".join(chunks)
        message = await receive()


def _query(scope: Scope) -> dict[str, list[str]]:
    raw = scope["query_string"]
    return parse_qs(raw.decode("latin-1"), keep_blank_values=True) if raw else {}


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _echo(headers: dict[bytes, bytes]) -> tuple[tuple[bytes, bytes], ...]:
    request_id = headers.get(b"x-request-id")
    if request_id and len(request_id) <= MAX_HEADER_ECHO and request_id.isascii() and request_id.decode("ascii").isprintable():
        return ((b"x-request-id", request_id),)
    return ()
