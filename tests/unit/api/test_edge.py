"""The outer edge without a network: what is read, what is refused, and that nothing but a clear answer leaves."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import orjson
import pytest
from starlette.types import Message, Receive, Scope, Send

from app.api import edge
from app.api.answer import Answer
from app.api.edge import Call, Edge, Handler, at_once, gone
from app.auth.keys import Keys, Principal
from app.errors import Conflict, Unauthorized
from app.observability.metrics import Metrics
from tests.fixtures.asgi import Reply, call

GATEWAY = Principal("k1", "gate", frozenset({"gateway"}), frozenset({"*"}))


class OneKey:
    """Keys of which one, `good`, is in force."""

    def principal(self, bearer: str | None) -> Principal:
        if bearer != "good":
            raise Unauthorized("the key is unknown")
        return GATEWAY


async def inner(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands in for the framework: tells what reached it."""
    message = await receive()
    told = {"path": scope["path"], "who": getattr(scope["state"]["principal"], "name", None), "body": message["body"].decode()}
    await Answer(200, orjson.dumps(told)).send(send)


def edge_of(handler: Handler | None = None, metrics: Metrics | None = None) -> Edge:
    """An edge whose one hot route is /hot."""
    return Edge(inner, lambda _, path: handler if path == b"/hot" else None, cast("Keys", OneKey()), metrics or Metrics())


async def echo(call: Call) -> Answer:
    """Answers the body, reversed, and the query."""
    return Answer(200, call.body[::-1] + str(sorted(call.query.items())).encode())


def pieces(*chunks: bytes) -> Receive:
    """A body that comes in these pieces, each of them only once somebody waits for it."""
    waiting: list[Message] = [
        {"type": "http.request", "body": chunk, "more_body": number < len(chunks)} for number, chunk in enumerate(chunks, 1)
    ]

    async def receive() -> Message:
        await asyncio.sleep(0)
        return waiting.pop(0)

    return receive


async def sent(app: Edge, receive: Receive, *headers: tuple[bytes, bytes]) -> list[Message]:
    """What the edge answers to a POST of /hot by the good key with these further headers."""
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    scope = {"type": "http", "method": "POST", "path": "/hot", "raw_path": b"/hot", "query_string": b""}
    await app({**scope, "headers": [(b"authorization", b"bearer good"), *headers]}, receive, send)
    return messages


CHUNKED = (b"transfer-encoding", b"chunked")


async def test_a_hot_route_gets_credential_body_and_query():
    """A hot route is answered by its handler alone, with the body read and the query parsed."""
    reply = await call(edge_of(echo), "POST", "/hot?explain&a=1", b"abc", authorization="Bearer good", content_length="3")

    assert (reply.status, reply.body) == (200, b"cba[('a', ['1']), ('explain', [''])]")


async def test_other_routes_get_the_principal_and_the_body():
    """What is not hot goes on to the framework with its caller known and its body read."""
    reply = await call(edge_of(), "POST", "/cold", b"abc", authorization="Bearer good", content_length="3")

    assert reply.json == {"path": "/cold", "who": "gate", "body": "abc"}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/version", "/openapi.json", "/bundles/sluice.tar.gz", "/status"])
async def test_public_routes_need_no_key(path: str):
    """Health, metrics, version, the contract and what OPA asks for are open here; OPA's routes check a token of their own."""
    assert (await call(edge_of(), "GET", path)).json["who"] is None


@pytest.mark.parametrize("path", ["/", "/decide", "/quotas/a", "/metrics/", "/bundles", "/healthz/x", "/telemetry"])
async def test_all_other_routes_do(path: str):
    """Nothing else is answered without a key, whether it exists or not."""
    reply = await call(edge_of(), "GET", path)

    assert (reply.status, reply.headers["www-authenticate"], reply.headers["connection"]) == (401, "Bearer", "close")


@pytest.mark.parametrize("header", ["", "good", "Bearer", "Basic good", "Bearer bad", "bearer  "])
async def test_only_a_bearer_key_counts(header: str):
    """The scheme is Bearer in any case; anything else is no key."""
    assert (await call(edge_of(echo), "POST", "/hot", authorization=header)).status == 401
    assert (await call(edge_of(echo), "POST", "/hot", authorization="BEARER good")).status == 200


async def test_the_key_comes_before_the_body():
    """Without a key the body is never asked for."""

    async def receive() -> Message:
        pytest.fail("the body was read")

    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    scope = {"type": "http", "method": "POST", "path": "/hot", "query_string": b"", "headers": [(b"content-length", b"10")]}
    await edge_of(echo)(scope, receive, send)

    assert messages[0]["status"] == 401


async def test_a_body_in_pieces_is_put_together():
    """Pieces that come one after the other are one body, up to the limit and not a byte more."""
    limit = edge.MAX_BODY

    fits = await sent(edge_of(echo), pieces(b"a" * (limit - 1), b"b"), CHUNKED)
    too_large = await sent(edge_of(echo), pieces(b"a" * limit, b"b", b"never read"), CHUNKED)
    at_a_stroke = await sent(edge_of(echo), pieces(b"a" * (limit + 1)), CHUNKED)

    assert fits[1]["body"].startswith(b"ba")
    assert [messages[0]["status"] for messages in (too_large, at_a_stroke)] == [413, 413]


@pytest.mark.parametrize("before", [(), (b"{}",), (b"{", b"}")])
async def test_a_body_cut_short_is_no_request(before: Sequence[bytes]):
    """What came before the caller hung up is never taken for the whole body, even where it would make one."""
    waiting: list[Message] = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in before]

    async def receive() -> Message:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    start, body = await sent(edge_of(echo), receive, (b"content-length", b"100"))

    assert (start["status"], orjson.loads(body["body"])["field"]) == (400, "body")


@pytest.mark.parametrize("before", [(), (b"{",), (b"{", b'"a"')])
async def test_a_body_that_stops_is_a_timeout(before: Sequence[bytes], monkeypatch: pytest.MonkeyPatch):
    """A sender that stops before, in or after the first piece of its body is told so, and its connection is closed."""
    monkeypatch.setattr(edge, "BODY_TIMEOUT_S", 0.02)
    waiting = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in before]

    async def receive() -> Message:
        if waiting:
            return waiting.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    start, body = await sent(edge_of(echo), receive, (b"content-length", b"100"))

    assert (start["status"], orjson.loads(body["body"])["code"]) == (408, "body_timeout")
    assert (b"connection", b"close") in start["headers"]


@pytest.mark.parametrize(
    ("header", "status", "code"),
    [
        ((b"content-length", b"65537"), 413, "body_too_large"),
        ((b"content-length", b"1" * 30), 413, "body_too_large"),
        ((b"content-encoding", b"gzip"), 415, "unsupported_encoding"),
        ((b"content-encoding", b"br"), 415, "unsupported_encoding"),
    ],
)
async def test_what_will_not_be_read_is_refused_unread(header: tuple[bytes, bytes], status: int, code: str):
    """A length beyond the limit and a compressed body are refused by their headers."""

    async def receive() -> Message:
        pytest.fail("the body was read")

    start, body = await sent(edge_of(echo), receive, header)

    assert (start["status"], orjson.loads(body["body"])["code"]) == (status, code)


async def test_an_error_of_ours_is_a_problem():
    """What a handler raises on purpose is a problem with its status, and is counted."""
    metrics = Metrics()

    async def conflict(_: Call) -> Answer:
        raise Conflict("no", field="request_id")

    reply = await call(edge_of(conflict, metrics), "POST", "/hot", authorization="Bearer good")

    assert (reply.status, reply.json["code"], reply.json["field"]) == (409, "conflict", "request_id")
    assert metrics.registry.get_sample_value("sluice_http_refused_total", {"code": "conflict"}) == 1


async def test_a_fault_of_ours_is_a_503_that_tells_nothing():
    """An error nobody foresaw is answered with 503 without a word of it, never with a 500 or a dropped connection."""

    async def fault(_: Call) -> Answer:
        raise ZeroDivisionError("secret")

    reply = await call(edge_of(fault), "POST", "/hot", authorization="Bearer good", x_request_id="r1")

    assert (reply.status, reply.json["code"], reply.headers["retry-after"], reply.headers["x-request-id"]) == (503, "internal", "3", "r1")
    assert b"secret" not in reply.body
    assert b"Zero" not in reply.body


async def test_who_lets_a_server_wait_at_its_end_gets_an_answer():
    """A request that the ending server gives up is answered, not dropped, and leaves no trace of a fault."""

    async def silent() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    waiting = asyncio.create_task(sent(edge_of(echo), silent, (b"content-length", b"100")))
    await asyncio.sleep(0)
    waiting.cancel()

    start, body = await waiting
    assert (start["status"], orjson.loads(body["body"])["code"]) == (503, "draining")


async def test_an_answer_that_has_begun_is_not_begun_again():
    """Where the fault comes after the start of an answer, no second start is sent."""

    async def half(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    app = Edge(half, lambda _, __: None, cast("Keys", OneKey()), Metrics())

    assert [message["type"] for message in await sent(app, pieces(b""))] == ["http.response.start"]


@pytest.mark.parametrize("request_id", ["", "a" * 129, "\x7f", "\xe9"])
async def test_a_request_id_that_could_do_harm_is_not_repeated(request_id: str):
    """Only a short printable ASCII request id comes back."""
    assert "x-request-id" not in (await call(edge_of(), "GET", "/version", x_request_id=request_id)).headers


async def test_a_caller_is_gone_when_the_disconnect_is_there():
    """The disconnect is seen without waiting; a caller who still listens is left waiting for."""

    def saying(message: Message | None) -> Receive:
        async def receive() -> Message:
            if message is None:
                await asyncio.Event().wait()
            return cast("Message", message)

        return receive

    assert gone(saying({"type": "http.disconnect"}))
    assert not gone(saying({"type": "http.request", "body": b""}))
    assert not gone(saying(None))
    assert at_once(saying(None)) is None


async def test_lifespan_events_go_through():
    """What is not HTTP reaches the framework unchanged."""
    seen: list[Any] = []

    async def framework(scope: Scope, *_: Any) -> None:
        seen.append(scope["type"])

    nothing: Callable[..., Any] = pieces(b"")
    await Edge(framework, lambda _, __: None, cast("Keys", OneKey()), Metrics())({"type": "lifespan"}, nothing, nothing)

    assert seen == ["lifespan"]


async def test_a_reply_is_whole():
    """Length and type of every answer are told."""
    reply: Reply = await call(edge_of(echo), "POST", "/hot", authorization="Bearer good")

    assert (reply.headers["content-length"], reply.headers["content-type"]) == (str(len(reply.body)), "application/json")
