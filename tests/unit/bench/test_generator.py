"""The load generator: what it sends, when, and how it counts."""

import math
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bench.generator import ClosedLoop, Generator, OpenLoop, percentile
from bench.load import Load

Answer = Callable[[str, bytes], bytes]
OK = b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"allow":true}'


class Target:
    """A server that keeps what it was asked and answers as it is told."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.asked: list[tuple[str, bytes]] = []


@contextmanager
def target(answer: Answer) -> Iterator[Target]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while line := self.rfile.readline():
                length = 0
                while (header := self.rfile.readline()) != b"\r\n":
                    name, _, value = header.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                path, body = line.split()[1].decode(), self.rfile.read(length)
                found.asked.append((path, body))
                self.wfile.write(answer(path, body))

    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        found = Target(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


def run(generator: Generator) -> Any:
    outcome = generator.run()
    for connection in generator.idle:
        connection.socket.close()
    return outcome


def load(port: int = 0, **how: Any) -> Load:
    return Load(port, "/decide", ("{}",), (1.0,), **how)


def test_latency_counts_from_the_intended_moment() -> None:
    """A request that could only be sent late still carries the moment at which it was meant to be sent."""
    schedule = OpenLoop(load(rate=100.0, seconds=1.0), 50.0)
    taken = list(iter(lambda: schedule.due(1000.0), None))

    assert sorted(taken) == taken
    assert taken[0] > 50.0
    assert taken[-1] < 51.0
    assert math.isinf(schedule.wait_s(1000.0))


def test_arrivals_come_at_the_wanted_rate() -> None:
    """Over 200 s at 300 a second the number of arrivals is within 2 % of 60 000, which is five standard deviations."""
    schedule = OpenLoop(load(rate=300.0, seconds=200.0), 0.0)

    assert len(list(iter(lambda: schedule.due(1e9), None))) == pytest.approx(60_000, rel=0.02)


def test_nothing_is_due_before_its_moment() -> None:
    """The wait until the next arrival ends exactly when it is due."""
    schedule = OpenLoop(load(rate=10.0, seconds=100.0, seed=7), 0.0)
    wait_s = schedule.wait_s(0.0)

    assert schedule.due(wait_s * 0.999) is None
    assert wait_s == schedule.due(wait_s)


def test_peers_get_the_same_arrivals() -> None:
    """The same seed gives the same arrivals, another seed others."""
    first, same, other = (OpenLoop(load(rate=10.0, seed=seed), 0.0).wait_s(0.0) for seed in (1, 1, 2))

    assert first == same
    assert first != other


def test_closed_loop_ends_after_its_requests() -> None:
    """A closed loop sends at once, as often as it was told, and no more once its time is over."""
    schedule = ClosedLoop(load(most=2, seconds=1.0), 0.0)

    assert [schedule.due(now) for now in (0.5, 0.6, 0.7)] == [0.5, 0.6, None]
    assert ClosedLoop(load(seconds=1.0), 0.0).due(1.0) is None


def test_requests_are_numbered() -> None:
    """Numbers go on from the first one; modulo the span they come again."""
    with target(lambda _, __: OK) as server:
        numbered = Load(server.port, "/x", ('"{n} {k}"',), (1.0,), connections=1, most=3, first=9, span=10)
        outcome = run(Generator(numbered))

        assert outcome.answers == 3
        assert [body for _, body in server.asked] == [b'"00000009 00000009"', b'"00000010 00000000"', b'"00000011 00000001"']


def test_chunked_answers_are_read_whole() -> None:
    """An answer without a length ends with its last chunk."""
    chunked = b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n'
    with target(lambda _, __: chunked) as server:
        outcome = run(Generator(load(server.port, connections=2, most=10)))

    assert (outcome.answers, outcome.failed) == (10, 0)


def test_failures_are_counted_and_shown() -> None:
    """An answer that is no success is counted, and the first one can be read."""
    with target(lambda _, __: b"HTTP/1.1 503 Down\r\ncontent-length: 4\r\n\r\nwhy?") as server:
        outcome = run(Generator(load(server.port, connections=1, most=2)))

    assert (outcome.answers, outcome.failed, outcome.allowed) == (2, 2, 0)
    assert outcome.odd.endswith("why?")


def test_leases_are_settled_beside_the_count() -> None:
    """Each admitted decision is followed by the settle of its lease, which counts as no answer."""
    decision = b'{"decision_id":"01890000-0000-7000-8000-000000000000","allow":true}'
    whole = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(decision) + decision
    with target(lambda path, _: whole if path == "/decide" else OK) as server:
        outcome = run(Generator(load(server.port, connections=1, most=2, settle=True)))

        assert (outcome.answers, outcome.allowed) == (2, 2)
        assert [path for path, _ in server.asked] == ["/decide", "/leases/01890000-0000-7000-8000-000000000000/settle"] * 2


def test_percentile_is_the_nearest_rank() -> None:
    """Of 1 to 100, 99 % are not above 99; of nothing it is 0."""
    numbers = [float(number) for number in range(100, 0, -1)]

    assert [percentile(numbers, share) for share in (0.5, 0.99, 1.0)] == [50.0, 99.0, 100.0]
    assert percentile([], 0.99) == 0
