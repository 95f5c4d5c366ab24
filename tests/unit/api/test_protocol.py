"""What one connection may send before there is a request, and for how long, without a network."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from app.api.answer import Answer
from app.api.protocol import LINGER_MS, MAX_HEAD, MAX_PIPELINED, MAX_URL, PATIENCE_MS, Connection, look_at
from app.observability.metrics import Metrics

POST = b"POST /decide?explain HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\ncontent-length: 4\r\n\r\nbody"
CHUNKED = b"POST /decide HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
H2C = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"
NEARLY_MS = PATIENCE_MS - 1


class Wire(asyncio.Transport):
    """The transport's side: what was written, and how it ended."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.ended = ""

    def write(self, data: Any) -> None:
        """Keep it."""
        self.written += data

    def write_eof(self) -> None:
        """Nothing more will be written; reading goes on."""
        self.ended = "eof"

    def close(self) -> None:
        """Closed by the protocol."""
        self.ended = "closed"

    def abort(self) -> None:
        """Closed by the protocol, whatever is still to be written."""
        self.ended = "aborted"

    def is_closing(self) -> bool:
        """Whether it was closed."""
        return self.ended in ("closed", "aborted")

    def pause_reading(self) -> None:
        """No more data for now; these tests go on sending."""

    def resume_reading(self) -> None:
        """Data may come again."""


@dataclass
class App:
    """Answers each request with its method, path and body, or waits with it until `gate` is set."""

    seen: list[dict[str, Any]] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    reads: bool = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        body, more = b"", self.reads
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        request = {"path": scope["path"], "query": scope["query_string"], "body": body, "headers": list(scope["headers"])}
        self.seen.append(request)
        await self.gate.wait()
        await Answer(200, body, "text/plain").send(send)


class Caller:
    """One connection and what came back on it."""

    def __init__(self, *, waiting: bool = False, reads: bool = True) -> None:
        self.app, self.wire, self.metrics = App(reads=reads), Wire(), Metrics()
        if not waiting:
            self.app.gate.set()
        config = uvicorn.Config(self.app, ws="none", lifespan="off", log_config=None, access_log=False, timeout_keep_alive=75)
        self.connection = Connection(self.metrics, config=config, server_state=ServerState(), app_state={})
        self.connection.connection_made(self.wire)

    async def send(self, *pieces: bytes) -> bytes:
        """What has been written once these pieces have been dealt with."""
        for piece in pieces:
            self.connection.data_received(piece)
            await settled()
        return self.wire.written

    def look(self, *at_ms: float) -> str:
        """How the connection stands after it was looked at, at these times."""
        for now_ms in at_ms:
            look_at([self.connection], now_ms)
        return self.wire.ended

    def refused(self, code: str) -> float | None:
        """How many refusals with this code were counted."""
        return self.metrics.registry.get_sample_value("sluice_http_refused_total", {"code": code})

    async def leave(self) -> None:
        """The caller hangs up; nothing of the connection stays behind."""
        self.app.gate.set()
        self.connection.connection_lost(None)
        await settled()


async def settled() -> None:
    """Every task that can go on has gone on."""
    for _ in range(10):
        await asyncio.sleep(0)


def statuses(written: bytes) -> list[int]:
    """The statuses of all answers, in order."""
    return [int(part[:3]) for part in written.split(b"HTTP/1.1 ")[1:]]


def problem_of(written: bytes) -> dict[str, Any]:
    """The document of the last answer."""
    head, _, body = written.rpartition(b"\r\n\r\n")
    assert b"content-type: application/problem+json\r\n" in head
    assert head.endswith(b"connection: close")
    return dict(orjson.loads(body))


def head_of(size: int, *, line: bytes = b"a: b\r\n") -> bytes:
    """A GET whose head has `size` bytes, made of many such lines and one that fills up."""
    start = b"GET /healthz HTTP/1.1\r\nhost: x\r\n"
    many = (size - len(start) - 100) // len(line)
    begun = start + line * many + b"fill: "
    return begun + b"x" * (size - len(begun) - 4) + b"\r\n\r\n"


def in_pieces(data: bytes, size: int) -> Sequence[bytes]:
    """The same bytes, `size` at a time."""
    return [data[start : start + size] for start in range(0, len(data), size)]


async def test_a_request_split_anywhere_is_the_same_request():
    """A request, one with an upgrade and one in chunks are understood alike wherever their bytes are cut in two."""
    upgrading = POST.replace(b"host: x\r\n", b"host: x\r\n" + H2C)
    chunks = CHUNKED + b"1\r\nb\r\n3;note=x\r\nody\r\n0\r\ntrailer: t\r\n\r\n"
    for request in (POST, upgrading, chunks):
        for cut in range(1, len(request)):
            caller = Caller()
            written = await caller.send(request[:cut], request[cut:])

            assert (statuses(written), caller.app.seen[0]["body"]) == ([200], b"body")
            assert caller.app.seen[0]["path"].encode() == b"/decide"
            await caller.leave()


@pytest.mark.parametrize("request_", [POST, POST.replace(b"host: x\r\n", b"host: x\r\n" + H2C)])
async def test_a_request_byte_by_byte_is_the_same_request(request_: bytes):
    """Single bytes make the request that one packet makes."""
    caller = Caller()

    written = await caller.send(*in_pieces(request_, 1))

    assert (statuses(written), [seen["query"] for seen in caller.app.seen]) == ([200], [b"explain"])
    await caller.leave()


@pytest.mark.parametrize("piece", [50, 1000, MAX_HEAD - 1, MAX_HEAD, MAX_HEAD + 1, 10**6])
@pytest.mark.parametrize("line", [b"a: b\r\n", b"a:\r\n", b"padded:" + b" " * 1000 + b"b\r\n", b"x: " + b"y" * 7000 + b"\r\n"])
async def test_a_head_is_bounded_to_the_byte(piece: int, line: bytes):
    """16 KiB of request line and headers pass and one byte more is 431, whatever it is made of and however it comes."""
    fits, too_large = Caller(), Caller()

    assert statuses(await fits.send(*in_pieces(head_of(MAX_HEAD, line=line), piece))) == [200]
    written = await too_large.send(*in_pieces(head_of(MAX_HEAD + 1, line=line), piece))

    assert (statuses(written), problem_of(written)["code"]) == ([431], "headers_too_large")
    assert (too_large.wire.ended, too_large.refused("headers_too_large"), too_large.app.seen) == ("eof", 1, [])
    await fits.leave()
    await too_large.leave()


@pytest.mark.parametrize("endless", [b"a: b\r\n", b"a", b"a: b", b"\r\n "])
async def test_what_never_ends_is_let_go(endless: bytes):
    """Of endless headers nothing is kept past the bound: after the refusal all that comes is dropped."""
    caller = Caller()

    await caller.send(b"GET / HTTP/1.1\r\nhost: x\r\nb: ")
    written = await caller.send(*[endless * (65536 // len(endless))] * 20)

    assert statuses(written) in ([431], [400])
    assert sum(len(name) + len(value) for name, value in caller.connection.headers) <= MAX_HEAD
    await caller.leave()


@pytest.mark.parametrize("piece", [100, 10**6])
async def test_endless_blank_lines_are_too_many_headers(piece: int):
    """Blank lines before a request count as what they are."""
    caller = Caller()

    written = await caller.send(*in_pieces(b"\r\n" * MAX_HEAD, piece))

    assert statuses(written) == [431]
    await caller.leave()


@pytest.mark.parametrize("piece", [1000, 10**6])
async def test_a_url_is_bounded(piece: int):
    """8 KiB of URL pass; one byte more is 414, and so is one longer than a whole head may be."""

    def get(size: int) -> bytes:
        return b"GET /" + b"u" * (size - 1) + b" HTTP/1.1\r\nhost: x\r\n\r\n"

    answers = {}
    for size in (MAX_URL, MAX_URL + 1, 10 * MAX_HEAD):
        caller = Caller()
        answers[size] = statuses(await caller.send(*in_pieces(get(size), piece)))
        await caller.leave()

    assert answers == {MAX_URL: [200], MAX_URL + 1: [414], 10 * MAX_HEAD: [414]}


@pytest.mark.parametrize("more", [b"trailer: t\r\n", b"t"])
async def test_trailers_are_bounded_like_headers(more: bytes):
    """Endless lines after a body in chunks end the request with 431 while it waits for its end."""
    caller = Caller()

    written = await caller.send(CHUNKED + b"1\r\nb\r\n0\r\n", *[more * 500] * 40)

    assert (statuses(written), problem_of(written)["code"]) == ([431], "headers_too_large")
    await caller.leave()


async def test_a_chunk_extension_is_bounded_like_headers():
    """What stands beside a chunk's length is no body, and does not go on for ever either."""
    caller = Caller()

    written = await caller.send(CHUNKED + b"1;", *[b"e" * 1000] * 40)

    assert statuses(written) == [431]
    await caller.leave()


async def test_a_long_body_is_no_head():
    """Bodies of any length pass through, in one piece or in many, with a length or in chunks."""
    body = b"x" * (10 * MAX_HEAD)
    with_length = POST.replace(b"content-length: 4\r\n\r\nbody", b"content-length: %d\r\n\r\n" % len(body)) + body
    in_chunks = CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in in_pieces(body, 999)) + b"0\r\n\r\n"
    for request in (with_length, in_chunks):
        for size in (1000, 65536, 10**6):
            caller = Caller()
            written = await caller.send(*in_pieces(request, size))

            assert ([200], body) == (statuses(written), caller.app.seen[0]["body"])
            await caller.leave()


async def test_requests_in_one_packet_are_all_answered():
    """Requests sent without waiting for answers are answered in order, those with an upgrade too."""
    caller = Caller()
    upgrading = POST.replace(b"host: x\r\n", b"host: x\r\n" + H2C).replace(b"body", b"next")

    await caller.send((POST + upgrading) * 20)
    for _ in range(40):
        await settled()

    assert statuses(caller.wire.written) == [200] * 40
    assert [seen["body"] for seen in caller.app.seen] == [b"body", b"next"] * 20
    await caller.leave()


async def test_a_pipeline_is_bounded():
    """100 requests may wait on a connection behind the one in work; with one more they are answered and it is refused."""
    fits, too_long = Caller(), Caller()

    await fits.send(POST * (1 + MAX_PIPELINED))
    await too_long.send(POST * 5000)
    for _ in range(MAX_PIPELINED):
        await settled()

    assert statuses(fits.wire.written) == [200] * (1 + MAX_PIPELINED)
    assert statuses(too_long.wire.written) == [200] * (1 + MAX_PIPELINED) + [400]
    assert problem_of(too_long.wire.written)["code"] == "pipeline_too_long"
    await fits.leave()
    await too_long.leave()


async def test_a_refusal_waits_for_the_answers_before_it():
    """A broken request behind one that is in work is refused after that one's answer, never in its place."""
    caller = Caller(waiting=True)

    assert await caller.send(POST + head_of(2 * MAX_HEAD)) == b""
    caller.app.gate.set()
    await settled()

    assert statuses(caller.wire.written) == [200, 431]
    await caller.leave()


@pytest.mark.parametrize("broken", [b"no length\r\n", b"-1\r\n", b"g\r\n"])
async def test_a_broken_body_is_refused_at_once(broken: bytes):
    """Bytes that are no chunk end their own request with 400, though it waits for the rest of its body."""
    caller = Caller()

    written = await caller.send(CHUNKED + b"1\r\nb\r\n" + broken)

    assert (statuses(written), problem_of(written)["code"]) == ([400], "bad_request")
    await caller.leave()


@pytest.mark.parametrize(
    "bytes_", [b"\x16\x03\x01\x02\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n", b"GET x HTTP/1.1\r\n\r\n"]
)
async def test_what_is_no_http_is_a_problem_too(bytes_: bytes):
    """TLS, HTTP/2 with prior knowledge and URLs that are none are 400 in the form of every error, which repeats nothing of them."""
    caller = Caller()

    written = await caller.send(bytes_)

    assert (statuses(written), problem_of(written)["code"]) == ([400], "bad_request")
    assert (caller.wire.ended, caller.refused("bad_request")) == ("eof", 1)
    await caller.leave()


async def test_an_upgrade_is_not_seen():
    """A request that wishes to upgrade reaches the application with its body and all other headers, and the connection goes on."""
    caller = Caller()

    await caller.send(POST.replace(b"host: x\r\n", b"host: x\r\n" + H2C))
    written = await caller.send(POST)

    assert statuses(written) == [200, 200]
    wished, plain = caller.app.seen
    assert (wished["body"], plain["body"]) == (b"body", b"body")
    assert {(b"connection", b"Upgrade, HTTP2-Settings"), (b"http2-settings", b"AAMAAABk")} == set(wished["headers"]) - set(plain["headers"])
    await caller.leave()


async def test_a_websocket_is_an_ordinary_request():
    """Asking for a WebSocket is answered by the route that the path has, with whatever that says."""
    caller = Caller()

    written = await caller.send(b"GET /decide HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")

    assert statuses(written) == [200]
    await caller.leave()


async def test_a_tunnel_is_refused():
    """CONNECT, which would make everything after it another protocol, is 400."""
    caller = Caller()

    written = await caller.send(b"CONNECT example.org:443 HTTP/1.1\r\nhost: x\r\n\r\n")

    assert (statuses(written), problem_of(written)["field"]) == ([400], "method")
    await caller.leave()


async def test_who_sends_nothing_is_closed_after_ten_seconds():
    """A connection on which nothing ever comes is closed without a word, and not a moment before its time."""
    caller = Caller()

    assert caller.look(500, 500 + NEARLY_MS) == ""
    assert caller.look(500 + PATIENCE_MS) == "aborted"
    assert caller.wire.written == b""
    await caller.leave()


@pytest.mark.parametrize("begun", [b"GET /", b"GET / HTTP/1.1\r\n", POST[:60], b"\r\n"])
async def test_a_head_that_stops_is_a_timeout(begun: bytes):
    """Who begins a head and does not end it within ten seconds is told 408; a byte a second does not help."""
    caller = Caller()
    await caller.send(begun)
    caller.look(0)
    for second in range(1, 10):
        await caller.send(b"x" if begun != b"\r\n" else b"\r\n")
        assert caller.look(second * 1000) == ""

    assert caller.look(PATIENCE_MS) == "eof"
    assert (statuses(caller.wire.written), problem_of(caller.wire.written)["code"]) == ([408], "headers_timeout")
    await caller.leave()


async def test_a_second_head_that_stops_is_a_timeout_too():
    """A connection that has served well is held to the same: half a request, or blank lines, do not keep it open."""
    for half in (POST[:60], b"\r\n"):
        caller = Caller()
        await caller.send(POST)
        assert caller.look(0, 60_000) == ""
        await caller.send(half)

        assert caller.look(61_000, 61_000 + PATIENCE_MS) == "eof"
        assert statuses(caller.wire.written) == [200, 408]
        await caller.leave()


async def test_who_goes_on_asking_is_never_late():
    """A caller who has always half of the next request out is served for ever: every request has its own ten seconds."""
    caller = Caller()
    await caller.send(POST[:60])
    for second in range(100):
        assert caller.look(second * 1000) == ""
        await caller.send(POST[60:] + POST[:60])

    assert statuses(caller.wire.written) == [200] * 100
    await caller.leave()


async def test_who_waits_for_an_answer_is_not_timed():
    """While the answer is ours to give the caller may wait as long as it takes, with half of the next request sent."""
    caller = Caller(waiting=True)
    await caller.send(POST + POST[:60])

    assert caller.look(0, PATIENCE_MS, 10 * PATIENCE_MS) == ""
    caller.app.gate.set()
    await settled()
    assert statuses(await caller.send(POST[60:]))[:1] == [200]
    assert caller.look(11 * PATIENCE_MS, 12 * PATIENCE_MS) == ""
    await caller.leave()


async def test_a_body_nobody_reads_does_not_keep_a_connection():
    """Where the answer came before the end of the body, the rest has ten seconds, however slowly it goes on."""
    caller = Caller(reads=False)
    await caller.send(POST.replace(b"content-length: 4", b"content-length: 1000000"))
    caller.look(0)
    for second in range(1, 10):
        await caller.send(b"x")
        assert caller.look(second * 1000) == ""

    assert caller.look(PATIENCE_MS) == "aborted"
    assert statuses(caller.wire.written) == [200]
    await caller.leave()


async def test_who_does_not_take_its_answer_is_closed():
    """A caller who reads nothing for ten seconds is let go with what was not taken; one who goes on in time is not."""
    slow, gone = Caller(waiting=True), Caller(waiting=True)
    for caller in (slow, gone):
        await caller.send(POST)
        caller.connection.pause_writing()
        assert caller.look(0, NEARLY_MS) == ""
    slow.connection.resume_writing()

    assert slow.look(PATIENCE_MS, 3 * PATIENCE_MS) == ""
    assert gone.look(PATIENCE_MS) == "aborted"
    await slow.leave()
    await gone.leave()


async def test_a_refused_connection_ends_soon():
    """After a refusal there is a second to read it in; then the connection is closed, whatever still comes."""
    caller = Caller()
    written = await caller.send(head_of(2 * MAX_HEAD))

    assert caller.look(0, LINGER_MS - 1) == "eof"
    assert await caller.send(POST, b"x" * 10**6) == written
    assert caller.look(LINGER_MS) == "aborted"
    await caller.leave()
