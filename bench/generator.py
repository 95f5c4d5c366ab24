"""The load generator: sends requests over kept connections and times every answer. `python -m bench.generator < LOAD`.

Plain sockets and select(): event loops round their timers up to whole milliseconds, which is as long as an answer takes.
No answer is parsed beyond its length, and the collector is off, so the generator stays far cheaper than what it measures.
"""

import gc
import json
import math
import random
import select
import socket
import sys
import time
from collections.abc import Callable
from itertools import cycle
from typing import Protocol

from bench.load import CLOSED, Load, Outcome

SILENT_S = 10.0
"""A target that says nothing for so long is broken: the measurement ends with an error."""
DRAWN = 16_384
"""Bodies drawn ahead, then again in the same order: drawing costs more than sending."""
ODD_BYTES = 2000
SETTLED = b'{"prompt_tokens":200,"completion_tokens":60}'


class Schedule(Protocol):
    """When requests are meant to be sent."""

    def due(self, now: float) -> float | None:
        """The moment at which the next request was meant to be sent, where that is over; it is taken."""
        ...

    def wait_s(self, now: float) -> float:
        """Seconds until the next one; infinite where it depends on an answer, or where none comes any more."""
        ...


class OpenLoop:
    """Random arrivals (Poisson) that never wait for answers."""

    def __init__(self, load: Load, start: float) -> None:
        self._random = random.Random(load.seed)
        self._rate = load.rate
        self._end = start + load.seconds
        self._next = start
        self._advance()

    def due(self, now: float) -> float | None:
        if self._next > now:
            return None
        due = self._next
        self._advance()
        return due

    def wait_s(self, now: float) -> float:
        return max(0.0, self._next - now)

    def _advance(self) -> None:
        self._next += self._random.expovariate(self._rate)
        if self._next >= self._end:
            self._next = math.inf


class ClosedLoop:
    """The next request as soon as a connection is idle."""

    def __init__(self, load: Load, start: float) -> None:
        self._end = start + load.seconds
        self._left = load.most

    def due(self, now: float) -> float | None:
        if now >= self._end or self._left == 0:
            return None
        self._left -= 1
        return now

    def wait_s(self, _: float) -> float:
        return math.inf


class Connection:
    """One kept connection with at most one request on its way."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.due = 0.0
        self.settling = False
        self._received = b""

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, request: bytes) -> None:
        """Send one request; what is left of an earlier answer is forgotten."""
        self._received = b""
        self.socket.sendall(request)

    def answer(self) -> bytes | None:
        """The whole answer, head and body, once all of it is here."""
        data = self.socket.recv(262_144)
        if not data:
            raise ConnectionError("the target closed a connection")
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        if not blank:
            return None
        _, named, rest = head.lower().partition(b"content-length: ")
        whole = len(body) >= int(rest.partition(b"\r\n")[0]) if named else body.endswith(b"0\r\n\r\n")
        return self._received if whole else None


class Generator:
    """Makes one load."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._head = "".join(f"{name}: {value}\r\n" for name, value in {**load.headers, "host": "127.0.0.1"}.items())
        drawn = random.Random(load.seed).choices([self._request(body) for body in load.bodies], load.weights, k=DRAWN)
        self._requests = cycle(drawn)
        self._number = load.first
        self.idle = [Connection(load.port) for _ in range(load.connections)]
        self._busy: list[Connection] = []
        self._latencies: list[float] = []
        self._lateness: list[float] = []
        self._allowed = self._failed = 0
        self._odd = b""

    def run(self) -> Outcome:
        """Send, receive, and sum up."""
        start, cpu = time.perf_counter(), time.process_time()
        schedule: Schedule = ClosedLoop(self._load, start) if self._load.rate == CLOSED else OpenLoop(self._load, start)
        while True:
            now = time.perf_counter()
            while self.idle and (due := schedule.due(now)) is not None:
                self._send(self.idle.pop(), due)
            wait_s = schedule.wait_s(now) if self.idle else math.inf
            if not self._busy and math.isinf(wait_s):
                break
            self._receive(wait_s)
        return Outcome(
            answers=len(self._latencies),
            allowed=self._allowed,
            failed=self._failed,
            seconds=time.perf_counter() - start,
            p50_ms=percentile(self._latencies, 0.5) * 1000,
            p99_ms=percentile(self._latencies, 0.99) * 1000,
            max_ms=percentile(self._latencies, 1.0) * 1000,
            late_p99_ms=percentile(self._lateness, 0.99) * 1000,
            cpu_s=time.process_time() - cpu,
            odd=self._odd[:ODD_BYTES].decode("utf-8", "replace"),
        )

    def _send(self, connection: Connection, due: float) -> None:
        connection.due = due
        connection.send(next(self._requests)(self._number))
        self._lateness.append(time.perf_counter() - due)
        self._number += 1
        self._busy.append(connection)

    def _receive(self, wait_s: float) -> None:
        readable, _, _ = select.select(self._busy, [], [], min(wait_s, SILENT_S))
        if not readable and wait_s > SILENT_S:
            raise TimeoutError(f"no answer within {SILENT_S:g} s")
        for connection in readable:
            answer = connection.answer()
            if answer is not None:
                self._take(connection, answer)

    def _take(self, connection: Connection, answer: bytes) -> None:
        failed = answer[9:12] != b"200"
        self._failed += failed
        if not self._odd and (failed or b'"allow":false' in answer):
            self._odd = answer
        if connection.settling:
            connection.settling = False
        else:
            self._latencies.append(time.perf_counter() - connection.due)
            allowed = answer.count(b'"allow":true')
            self._allowed += allowed
            if self._load.settle and allowed:
                connection.settling = True
                connection.send(self._settle(answer))
                return
        self._busy.remove(connection)
        self.idle.append(connection)

    def _settle(self, answer: bytes) -> bytes:
        _, _, rest = answer.partition(b'"decision_id":"')
        return self._post(f"/leases/{rest[:36].decode()}/settle", len(SETTLED)) + SETTLED

    def _request(self, body: str) -> Callable[[int], bytes]:
        """What makes the bytes of a request from its number."""
        length = len(body.replace("{n}", "8 digits").replace("{k}", "8 digits").encode())
        whole = self._post(self._load.path, length) + body.encode()
        if b"{n}" not in whole and b"{k}" not in whole:
            return lambda _: whole
        span = self._load.span
        return lambda number: whole.replace(b"{n}", b"%08d" % number).replace(b"{k}", b"%08d" % (number % span))

    def _post(self, path: str, length: int) -> bytes:
        return f"POST {path} HTTP/1.1\r\n{self._head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n".encode()


def percentile(values: list[float], share: float) -> float:
    """The smallest of `values` that `share` of them do not exceed; 0 of none."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else 0.0


def main() -> None:
    load = Load(**json.load(sys.stdin))
    gc.disable()
    outcome = Generator(load).run()
    json.dump({name: getattr(outcome, name) for name in outcome.__dataclass_fields__}, sys.stdout)


if __name__ == "__main__":
    main()
