"""One telemetry process for two servers: engines are asked once, both see the same, its end blinds both, its return heals both."""

import contextlib
import http.client
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fixtures.engine import answers, free_port
from tests.fixtures.serve import MODEL, ROOT, UNHURRIED, FirstStart, Serve, running
from tests.fixtures.waiting import wait_until

TOKEN = "sesame-for-all"
STALE_MS = 2000
"""Long enough for busy cores, short enough to wait for."""


@dataclass
class CountingEngine:
    """An engine that counts how often its page is asked for; every page is a step further, so that it never looks frozen."""

    kv_ratio: float = 0.25
    pages: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def page(self) -> bytes:
        """The next page."""
        with self.lock:
            self.pages += 1
            labels = f'{{model_name="{MODEL}"}}'
            lines = [f"vllm:kv_cache_usage_perc{labels} {self.kv_ratio}", f"vllm:num_requests_waiting{labels} 0"]
            lines += [f"vllm:num_requests_running{labels} 3", f"vllm:generation_tokens_total{labels} {self.pages}"]
            return "\n".join([*lines, ""]).encode()


@pytest.fixture
def engine() -> Iterator[tuple[CountingEngine, str]]:
    """The engine and its address."""
    counting = CountingEngine()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = counting.page()
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing: each page would be a line."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield counting, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@dataclass
class Shared:
    """The telemetry process of an operator, which may end and begin again."""

    file: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "app.cli", "telemetry", "--config", str(self.file), "--listen", f"127.0.0.1:{self.port}"]
        environment = os.environ | {"SLUICE_TELEMETRY__TOKEN": TOKEN}
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=ROOT, env=environment)
        wait_until(lambda: answers(f"http://127.0.0.1:{self.port}/healthz"), 30)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)

    def scrapes(self) -> float:
        """Scrapes that it has counted, however they ended."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)) as connection:
            connection.request("GET", "/metrics", headers={"authorization": f"Bearer {TOKEN}"})
            page = connection.getresponse().read().decode()
        return sum(float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith("sluice_scrapes_total"))


@pytest.fixture
def shared(tmp_path: Path, engine: tuple[CountingEngine, str]) -> Iterator[Shared]:
    """The process, polling the engine."""
    (tmp_path / "models.yaml").write_text(f"[{{id: {MODEL}}}]")
    document = {"models": "models.yaml", "engines": engines(engine[1]), "gpus": {"nvml": "off", "nvidia_smi": "off"}, **UNHURRIED}
    (tmp_path / "sluice.yaml").write_text(yaml.safe_dump(document))
    one = Shared(tmp_path / "sluice.yaml", free_port())
    one.start()
    yield one
    one.kill()


@pytest.fixture
def pair(first_start: FirstStart, shared: Shared, engine: tuple[CountingEngine, str]) -> Iterator[list[Serve]]:
    """Two servers that follow it."""
    follows = {"url": f"http://127.0.0.1:{shared.port}", "token": TOKEN, "stale_ms": STALE_MS}
    models = str(shared.file.with_name("models.yaml"))
    settings = UNHURRIED | {"models": models, "engines": engines(engine[1]), "telemetry": UNHURRIED["telemetry"] | follows}
    with running(first_start, settings) as one, running(first_start, settings) as other:
        yield [one, other]


def engines(url: str) -> list[dict[str, Any]]:
    """As settings name it."""
    return [{"name": "shared-0", "url": url, "models": [MODEL], "poll_ms": 50}]


def seen(servers: list[Serve]) -> list[float | None]:
    """The share of the engine's cache that each server sees in use."""
    return [server.reading("shared-0") for server in servers]


def test_two_servers_share_one_telemetry(engine: tuple[CountingEngine, str], shared: Shared, pair: list[Serve]):
    """The engine is asked by the shared process alone, and its readings are in force at both servers."""
    counting, _ = engine
    wait_until(lambda: seen(pair) == [0.25, 0.25])
    counting.kv_ratio = 0.5
    wait_until(lambda: seen(pair) == [0.5, 0.5])

    assert not any("telemetry" in command for server in pair for command in server.children().values())
    asked = counting.pages
    wait_until(lambda: counting.pages >= asked + 40)
    least, counted, most = counting.pages, shared.scrapes(), counting.pages
    assert least - 1 <= counted <= most  # one may be under way

    tenants = [server.tenant() for server in pair]
    counting.kv_ratio = 0.97
    wait_until(lambda: seen(pair) == [0.97, 0.97])
    refused = [server.decide(tenant) for server, tenant in zip(pair, tenants, strict=True)]
    assert [decision["allow"] for decision in refused] == [False, False]


def test_the_end_of_the_shared_telemetry_blinds_both_until_it_is_back(
    engine: tuple[CountingEngine, str], shared: Shared, pair: list[Serve]
):
    """Without it no server believes an old reading, and both say so; once it is back both see what the engine tells then."""
    counting, _ = engine
    wait_until(lambda: seen(pair) == [0.25, 0.25])
    shared.kill()

    wait_until(lambda: seen(pair) == [None, None], STALE_MS / 1000 + 5)
    states = [server.call("GET", "/telemetry", key="operator").json["nodes"][0] for server in pair]
    assert [(state["fresh"], state["why"]) for state in states] == [(False, "stale")] * 2
    wait_until(lambda: all("telemetry.silent" in server.log() for server in pair))
    assert [server.parts()["telemetry"]["ok"] for server in pair] == [False, False]
    assert not any(TOKEN in server.log() for server in pair)

    counting.kv_ratio = 0.75
    shared.start()
    wait_until(lambda: seen(pair) == [0.75, 0.75])
    assert [server.parts()["telemetry"]["ok"] for server in pair] == [True, True]
