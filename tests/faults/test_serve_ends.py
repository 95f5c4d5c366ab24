"""How a server ends: killed, asked to, under load, and with clients that leave first."""

import asyncio
import contextlib
import http.client
import os
import signal
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from tests.fixtures.proc import runs
from tests.fixtures.serve import GONE_WITHIN_S, SENSITIVE_MODEL, Serve, report, spawn
from tests.fixtures.waiting import wait_until

STOPS_WITHIN_S = 10.0
LINGERS_AT_LEAST_S = 0.8
"""Of a second: the first answer and the last come some time after its begin and before its end."""
PAUSES_S = (0.0, 0.01, 0.1, 0.4)
"""Between two requests of a client: gateways keep connections that rest for a while."""
CLIENTS = 16
MODEL = "llama-3-8b"


def test_a_killed_server_leaves_nobody_behind(start_serve: Callable[..., Serve]):
    """After kill -9 every child ends by itself, and the next start on the folder works with all that was committed."""
    first = start_serve()
    tenant = first.tenant(qps=33)
    family = [first.process.pid, *first.children()]
    assert len(family) == 7  # PostgreSQL, the log, OPA, telemetry, two engines

    first.process.kill()
    first.process.wait(GONE_WITHIN_S)
    wait_until(lambda: not any(runs(pid) for pid in family), GONE_WITHIN_S)

    again = spawn(first.var, first.port, first.keys)
    try:
        again.wait_ready()
        assert again.decide(tenant)["limits"]["qps"]["limit"] == 33
    finally:
        assert again.stop() == 0


async def test_a_server_that_is_asked_to_end_tells_every_client_first(start_serve: Callable[..., Serve]):
    """Under load each client hears `draining` before its connection ends; no reset, no 5xx before; exit code 0 within 10 s."""
    server = await asyncio.to_thread(start_serve)
    tenant = await asyncio.to_thread(server.tenant, concurrency=1_000_000)
    decided = Counter[str]()
    started = asyncio.Event()

    async def client(pause_s: float) -> str:
        """Asks on one kept connection until it is told that the server drains; answers what it saw first of that."""
        async with aiohttp.ClientSession(headers={"authorization": f"Bearer {server.keys['gateway']}"}) as session:
            while True:
                try:
                    async with session.post(f"{server.url}/decide", json={"tenant": tenant, "model": MODEL, "max_tokens": 1}) as answer:
                        document = await answer.json()
                        if answer.status != 200:
                            return f"HTTP {answer.status}"
                except aiohttp.ClientError as error:
                    return f"{type(error).__name__}: {error}"
                if not document["allow"]:
                    return str(document["reasons"][0]["code"])
                decided["allow"] += 1
                if decided["allow"] > 20 * CLIENTS:
                    started.set()
                await asyncio.sleep(pause_s)

    clients = [asyncio.create_task(client(pause_s)) for pause_s in PAUSES_S * 4]
    await asyncio.wait_for(started.wait(), 30)
    begun = time.perf_counter()
    server.process.send_signal(signal.SIGTERM)

    seen = await asyncio.gather(*clients)

    code = await asyncio.to_thread(server.process.wait, STOPS_WITHIN_S)
    report(f"an end under load took {time.perf_counter() - begun:.1f} s")
    assert Counter(seen) == {"draining": CLIENTS}
    assert code == 0


def test_draining_is_heard_for_a_second_while_everybody_still_lives(start_serve: Callable[..., Serve]):
    """New connections are answered `draining` for about a second, however quickly our children or those of others would end."""
    server = start_serve()
    tenant = server.tenant()
    family = set(server.children())
    server.process.send_signal(signal.SIGTERM)

    heard: list[float] = []
    with contextlib.suppress(OSError, http.client.HTTPException):
        while True:
            decision = server.decide(tenant)
            if not decision["allow"]:
                assert decision["reasons"][0]["code"] == "draining"
                heard.append(time.perf_counter())
                if heard[-1] - heard[0] < LINGERS_AT_LEAST_S:
                    assert set(server.children()) == family

    report(f"draining was heard {len(heard)} times in {heard[-1] - heard[0]:.1f} s")
    assert heard[-1] - heard[0] >= LINGERS_AT_LEAST_S
    assert server.process.wait(STOPS_WITHIN_S) == 0


def test_a_lease_can_be_settled_until_the_end(start_serve: Callable[..., Serve]):
    """A request that was in flight when the server was asked to end can still be settled while others are turned away."""
    server = start_serve()
    decision = server.decide(server.tenant(tpm=1000), max_tokens=100)
    body = b'{"completion_tokens": 1}'
    with socket.create_connection(("127.0.0.1", server.port), timeout=GONE_WITHIN_S) as connection:
        head = f"POST /leases/{decision['decision_id']}/settle HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {server.keys['gateway']}\r\n"
        connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body[:1])
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stopping" in server.log())
        connection.sendall(body[1:])
        answer = connection.recv(65536)

    assert answer.startswith(b"HTTP/1.1 200")
    assert server.process.wait(STOPS_WITHIN_S) == 0


def test_a_second_signal_ends_at_once(start_serve: Callable[..., Serve]):
    """Who asks twice does not wait for a sender that stalls."""
    server = start_serve()
    with socket.create_connection(("127.0.0.1", server.port)) as sender:
        head = f"POST /decide HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {server.keys['gateway']}\r\ncontent-length: 9\r\n\r\n"
        sender.sendall(head.encode())
        server.process.send_signal(signal.SIGINT)
        wait_until(lambda: "stopping" in server.log())
        begun = time.perf_counter()
        server.stop(signal.SIGINT)

    report(f"a second signal ended it after {time.perf_counter() - begun:.1f} s")
    assert server.process.returncode == 0


def hang_up(server: Serve, document: bytes) -> None:
    """Send a whole /decide and leave at once without reading the answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # leave with a reset
        head = (
            f"POST /decide HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {server.keys['gateway']}\r\ncontent-length: {len(document)}\r\n\r\n"
        )
        connection.sendall(head.encode() + document)


def cancelled(server: Serve) -> float:
    """Leases that were cancelled so far."""
    page = server.call("GET", "/metrics", key=None).body.decode()
    lines = [line for line in page.splitlines() if line.startswith("sluice_lease_ends_total") and '"cancelled"' in line]
    return float(lines[0].rpartition(" ")[2]) if lines else 0.0


def test_a_client_that_hangs_up_gets_its_lease_cancelled(serve: Serve):
    """A caller that is gone when the decision is made holds no slot and pays nothing: the next one gets the only slot."""
    tenant = serve.tenant(tpm=1000, concurrency=1, region="cn-east")
    opa = serve.child("opa run")
    document: dict[str, Any] = {"tenant": tenant, "model": MODEL, "prompt_tokens": 400, "max_tokens": 600}
    before = cancelled(serve)

    os.kill(opa, signal.SIGSTOP)  # so that the caller is gone before the answer is there
    try:
        hang_up(serve, str(document).replace("'", '"').encode())
    finally:
        os.kill(opa, signal.SIGCONT)

    wait_until(lambda: cancelled(serve) == before + 1)
    assert serve.decide(tenant, prompt_tokens=400, max_tokens=600)["allow"]


def test_many_clients_that_hang_up_lose_no_slot(serve: Serve):
    """Thirty callers leave while their access is being logged; the one slot is free for each next caller within a second."""
    tenant = serve.tenant(tpm=1_000_000, concurrency=1, region="cn-east")
    subject = '{"id": "a", "roles": ["risk-analyst"], "attributes": {"clearance": 3}}'
    document = f'{{"tenant": "{tenant}", "model": "{SENSITIVE_MODEL}", "max_tokens": 1, "purpose": "credit-risk", "subject": {subject}}}'

    for _ in range(30):
        hang_up(serve, document.encode())
        wait_until(lambda: serve.leases(tenant) == [], within_s=1)

    assert serve.decide(tenant)["allow"]


EVERY_CHILD = ["opa run", "postgres -D", "app.cli audit", "app.cli telemetry", "app.cli engine"]


@pytest.mark.parametrize("stuck", [["opa run"], ["postgres -D"], ["app.cli audit"], EVERY_CHILD])
def test_a_child_that_does_not_hear_does_not_hold_the_end_up(start_serve: Callable[..., Serve], stuck: list[str]):
    """With children that stand still, one or all of them, and a sender that stalls, the server ends within 10 s, and they with it."""
    server = start_serve()
    with socket.create_connection(("127.0.0.1", server.port)) as sender:
        head = f"POST /decide HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {server.keys['gateway']}\r\ncontent-length: 9\r\n\r\n"
        sender.sendall(head.encode())
        for pid in [pid for pid, command in server.children().items() if any(part in command for part in stuck)]:
            os.kill(pid, signal.SIGSTOP)
        begun = time.perf_counter()
        code = server.stop(within_s=STOPS_WITHIN_S * (1.5 if len(stuck) > 1 else 1))  # six in turn, on busy cores

    report(f"with {', '.join(stuck)} frozen the end took {time.perf_counter() - begun:.1f} s")
    assert code == 0
