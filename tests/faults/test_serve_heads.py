"""Callers who never come to the point: endless heads, half heads, silence. Each is let go, and nobody else notices."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fixtures.proc import resident_mib
from tests.fixtures.serve import Serve, report

MIB = 1024 * 1024
PATIENCE_S = 10
SEEN_WITHIN_S = 5
"""Connections are looked at once a second; the rest is for a busy machine."""
HEALTHY = b'{"status":"ok"}'
START = b"POST /decide HTTP/1.1\r\nhost: x\r\n"


@contextlib.contextmanager
def connected(serve: Serve, data: bytes = b"") -> Iterator[socket.socket]:
    """A connection on which these bytes were sent."""
    with socket.create_connection(("127.0.0.1", serve.port), timeout=PATIENCE_S * 3) as connection:
        connection.sendall(data)
        yield connection


def all_of(connection: socket.socket) -> bytes:
    """Everything that comes until the other side hangs up."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while data := connection.recv(65536):
            received += data
    return received


def body_of(connection: socket.socket) -> bytes:
    """What comes until the body of a healthy server has."""
    received = b""
    while HEALTHY not in received and (data := connection.recv(65536)):
        received += data
    return received


def poured(serve: Serve, data: bytes, most: int) -> bytes:
    """What is answered to a head that goes on with these bytes, over and over, until nobody takes them any more."""
    with connected(serve, START) as connection:
        with contextlib.suppress(ConnectionError):
            for _ in range(most // len(data)):
                connection.sendall(data)
        return all_of(connection)


@pytest.mark.parametrize("line", [b"a: b\r\n", b"a: " + b"b" * 100_000 + b"\r\n", b"a"])
def test_a_megabyte_of_headers_is_told_why_not(serve: Serve, line: bytes):
    """A caller who sends a megabyte of headers before it reads finds the 431 when it does."""
    answer = poured(serve, line * (MIB // len(line)), MIB)

    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b'"code":"headers_too_large"' in answer


def test_a_long_url_is_told_why_not(serve: Serve):
    """A megabyte of URL is 414 with the limit."""
    with connected(serve, b"GET /" + b"u" * MIB) as connection:
        answer = all_of(connection)

    assert answer.startswith(b"HTTP/1.1 414 ")
    assert b"more than 8192 bytes" in answer


def test_a_flood_of_headers_fills_nothing_and_stops_nobody(serve: Serve):
    """Callers without a key who pour 40 MB of headers each, again and again, do not grow memory; decisions go on beside them."""
    tenant = serve.tenant(qps=1000)

    def flood(done: threading.Event) -> set[bytes]:
        answers = set()
        while not done.is_set():
            answers.add(poured(serve, b"a: b\r\n" * 10_000, 40 * MIB)[:13])
        return answers

    def flooded() -> tuple[float, float]:
        """The slowest of 50 decisions beside three floods, in seconds, and the memory after it in MiB."""
        done, slowest_s = threading.Event(), 0.0
        with ThreadPoolExecutor(3) as pool:
            floods = [pool.submit(flood, done) for _ in range(3)]
            try:
                for _ in range(50):
                    asked = time.perf_counter()
                    assert serve.decide(tenant, max_tokens=1)["allow"]
                    slowest_s = max(slowest_s, time.perf_counter() - asked)
            finally:
                done.set()
        answers = set.union(*(each.result() for each in floods))
        assert b"HTTP/1.1 431 " in answers
        assert answers <= {b"HTTP/1.1 431 ", b""}  # a flood that outlasts the second after its refusal is cut off
        return slowest_s, resident_mib(serve.process.pid)

    rounds = [flooded() for _ in range(4)]
    report(f"beside 3 floods of headers (slowest of 50 decisions in s, serve's MiB): {rounds}")
    assert max(slowest_s for slowest_s, _ in rounds) < 1
    assert rounds[3][1] < rounds[0][1] + 20


def test_pipelined_requests_that_nobody_reads_fill_nothing(serve: Serve):
    """Callers without a key who send thousands of requests at once and read no answer cost less than 20 MiB together."""
    before = resident_mib(serve.process.pid)
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            connection = stack.enter_context(connected(serve))
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    connection.send(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n" * 5000)
        assert serve.ready()
        grown_mib = resident_mib(serve.process.pid) - before

    assert grown_mib < 20


def test_whoever_stalls_is_let_go(serve: Serve):
    """After ten seconds of silence a connection is closed, half a head or a blank line is told 408, and a kept one that is idle stays open."""
    begun = time.perf_counter()
    with contextlib.ExitStack() as stack:
        idle = stack.enter_context(connected(serve, b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"))
        assert HEALTHY in body_of(idle)
        silent = [stack.enter_context(connected(serve)) for _ in range(4)]
        halves = [stack.enter_context(connected(serve, START + b"a: ")) for _ in range(4)]
        blank = [stack.enter_context(connected(serve, b"\r\n")) for _ in range(4)]
        answers = [[all_of(connection) for connection in kind] for kind in (silent, halves, blank)]
        took_s = time.perf_counter() - begun
        idle.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        still_there = body_of(idle)

    assert [[answer[:13] for answer in kind] for kind in answers] == [[b""] * 4, [b"HTTP/1.1 408 "] * 4, [b"HTTP/1.1 408 "] * 4]
    assert PATIENCE_S <= took_s < PATIENCE_S + SEEN_WITHIN_S
    assert HEALTHY in still_there


def test_a_wish_for_http_2_is_decided_in_http_1(serve: Serve):
    """A POST that offers to go on in HTTP/2, as curl --http2 sends it, is decided by its body, and nothing is logged of it."""
    document = {"tenant": serve.tenant(qps=1000), "model": "llama-3-8b", "max_tokens": 1}
    wish = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2_settings": "AAMAAABkAAQAoAAAAAIAAAAA"}

    reply = serve.call("POST", "/decide", document, **wish)

    assert (reply.status, reply.json["allow"]) == (200, True)
    assert "websocket" not in serve.log().lower()
