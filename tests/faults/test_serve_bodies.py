"""Senders that would hold or fill a server: stalled, huge, endless. Each is refused early, and nobody else notices."""

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from tests.fixtures.proc import resident_mib
from tests.fixtures.serve import MODEL, Serve, report

MIB = 1024 * 1024
STALLED_AFTER_S = 10
READS_AT_MOST = 8 * MIB
"""What the kernels of both sides buffer beside the 64 KiB that serve reads."""


@contextlib.contextmanager
def connected(serve: Serve, *headers: str, key: str | None = "gateway", target: str = "/decide") -> Iterator[socket.socket]:
    """A connection on which the head of a POST was sent and its body was not."""
    lines = [f"POST {target} HTTP/1.1", "host: x", *headers]
    if key:
        lines.append(f"authorization: Bearer {serve.keys[key]}")
    with socket.create_connection(("127.0.0.1", serve.port), timeout=STALLED_AFTER_S * 3) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        yield connection


def status_of(connection: socket.socket) -> int:
    """The status of the answer that comes."""
    return int(connection.recv(65536).split(b" ", 2)[1])


def poured(connection: socket.socket, chunk: bytes, most: int) -> int:
    """Bytes that the other side takes before it hangs up; `most` where it never does."""
    taken = 0
    with contextlib.suppress(ConnectionError):
        while taken < most:
            taken += connection.send(chunk)
    return taken


def test_a_huge_body_without_a_key_is_not_read(serve: Serve):
    """A caller without a key that announces 100 MiB is told 401 at once, and the rest of its body goes nowhere."""
    before = resident_mib(serve.process.pid)

    with connected(serve, f"content-length: {100 * MIB}", key=None) as connection:
        status = status_of(connection)
        taken = poured(connection, b"x" * 65536, 100 * MIB)

    assert status == 401
    assert taken < READS_AT_MOST
    assert resident_mib(serve.process.pid) < before + 20


def test_a_huge_body_with_a_key_is_refused_by_its_length(serve: Serve):
    """A length beyond the limit is 413 before a byte of the body was sent."""
    with connected(serve, f"content-length: {100 * MIB}") as connection:
        assert status_of(connection) == 413


def test_an_endless_body_is_cut_at_the_limit(serve: Serve):
    """A chunked body without a length is read up to the limit and then 413; memory stays as it was."""
    before = resident_mib(serve.process.pid)
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"

    with connected(serve, "transfer-encoding: chunked") as connection:
        connection.sendall(chunk * 2)
        status = status_of(connection)
        taken = poured(connection, chunk, 100 * MIB)

    assert status == 413
    assert taken < READS_AT_MOST
    assert resident_mib(serve.process.pid) < before + 20


def test_senders_that_stall_are_told_and_nobody_waits_for_them(serve: Serve):
    """Senders that stop before, in or after the first piece of their body get 408 after ten seconds; others are answered meanwhile."""
    begun = time.perf_counter()
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connected(serve, "content-length: 100")) for _ in range(4)]
        stalled = [stack.enter_context(connected(serve, "content-length: 100")) for _ in range(4)]
        chunked = [stack.enter_context(connected(serve, "transfer-encoding: chunked")) for _ in range(4)]
        other = [stack.enter_context(connected(serve, "content-length: 100", key="operator", target="/quotas/a")) for _ in range(4)]
        for connection in stalled:
            connection.sendall(b"{")
        for connection in chunked:
            connection.sendall(b"1\r\n{\r\n")
        tenant = serve.tenant(qps=1000)
        beside_s = []
        for _ in range(50):
            asked = time.perf_counter()
            assert serve.decide(tenant, max_tokens=1)["allow"]
            beside_s.append(time.perf_counter() - asked)
        statuses = [status_of(connection) for connection in (*silent, *stalled, *chunked, *other)]

    report(f"beside 16 stalled senders the slowest of 50 decisions took {max(beside_s) * 1000:.0f} ms")
    assert statuses == [408] * 16
    assert time.perf_counter() - begun >= STALLED_AFTER_S
    assert max(beside_s) < 1


@pytest.mark.parametrize(
    "request_line",
    [
        b"POST /decide HTTP/9.9",
        b"POST  HTTP/1.1",
        b"\x00\x01\x02",
        b"GET /decide\r\n\r\nGET",
        b"POST /decide HTTP/1.1\r\ncontent-length: -1",
    ],
)
def test_what_is_no_http_is_refused(serve: Serve, request_line: bytes):
    """Bytes that are no HTTP are answered with 400 or a closed connection, and the server goes on."""
    with socket.create_connection(("127.0.0.1", serve.port), timeout=10) as connection:
        connection.sendall(request_line + b"\r\nhost: x\r\n\r\n")
        answer = connection.recv(65536)

    assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert serve.ready()


def test_memory_does_not_follow_what_callers_make_up(serve: Serve):
    """5000 refused decisions with as many purposes, and 5000 more, grow memory by less than 20 MiB from one to the next."""
    tenant = serve.tenant(tpm=10)

    def flood(first: int) -> float:
        for start in range(first, first + 5000, 250):
            items = [{"tenant": tenant, "model": MODEL, "purpose": f"purpose-{start + number}"} for number in range(250)]
            decisions = serve.call("POST", "/decide/batch", {"requests": items}).json["decisions"]
            assert {decision["reasons"][0]["code"] for decision in decisions} == {"over_capacity"}
        return resident_mib(serve.process.pid)

    first, second = flood(0), flood(5000)
    report(f"serve holds {first:.0f} MiB after 5000 made-up purposes, {second:.0f} MiB after 10 000")
    assert second < first + 20
