"""What is measured and what it is measured against: Sluice with its children, OPA alone, a bare FastAPI route, engines."""

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import yaml

from app.policy.program import find_opa
from bench.processes import cpu_s
from bench.questions import MODELS_FILE

START_S = 60.0
STOP_S = 15.0
LOOK_S = 0.02
IDLE_WINDOW_S = 0.5
IDLE_CORES = 0.15
"""Polling two engines takes about a third of it."""
LOG_CHARS = 2000
LOOPBACK = "127.0.0.1"
CHANGE_S = 0.1
"""The engines change so often: every poll sees another reading."""


class Server:
    """One process that listens on a port of its own; it ends with the block it is used in."""

    def __init__(self, name: str, port: int, command: list[str], log: Path) -> None:
        self.name = name
        self.port = port
        with log.open("ab") as out:
            # A session of its own: Ctrl-C reaches the benchmark alone, which then ends servers in order.
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        self._log = log

    @property
    def pid(self) -> int:
        """The process id; its children count as its own in what is measured."""
        return self._process.pid

    def wait_until_idle(self) -> None:
        """Wait until it has nothing left to do of its start: work that goes on would be counted as that of decisions."""
        self.wait_until(self._idle)

    def _idle(self) -> bool:
        before = cpu_s(self.pid)
        time.sleep(IDLE_WINDOW_S)
        return cpu_s(self.pid) - before < IDLE_CORES * IDLE_WINDOW_S

    def wait_until(self, ready: Callable[[], object]) -> None:
        """Wait until `ready` is true. Raises RuntimeError with the end of the log where the process ends or takes too long.

        Whatever is raised, the process is stopped first: nobody else knows of it yet.
        """
        try:
            self._wait_until(ready)
        except BaseException:
            self.stop()
            raise

    def _wait_until(self, ready: Callable[[], object]) -> None:
        deadline = time.perf_counter() + START_S
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if ready():
                    return
            if self._process.poll() is not None or time.perf_counter() > deadline:
                log = self._log.read_text("utf-8", errors="replace")
                raise RuntimeError(f"{self.name} is not ready; the end of its log: {log[-LOG_CHARS:]}")
            time.sleep(LOOK_S)

    def stop(self) -> None:
        """End it in order."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Sluice(Server):
    """`sluice serve` with its embedded PostgreSQL, OPA and telemetry in `var`."""

    def __init__(self, name: str, var: Path, *, policy: Path, engines: Iterable[Mapping[str, Any]], settings: Mapping[str, Any]) -> None:
        self.var = var
        self.policy = policy
        self.file = var / "sluice.yaml"
        var.mkdir(mode=0o711)
        self._engines: list[Mapping[str, Any]] = []
        rules = {"path": str(policy), **settings.get("policy", {})}
        self._settings = {"log_level": "error", "models": str(MODELS_FILE), **settings, "policy": rules}
        self.poll(engines)
        port = free_port()
        arguments = ["serve", "--var", str(var), "--port", str(port), "--config", str(self.file)]
        super().__init__(name, port, [sys.executable, "-m", "app.cli", *arguments], var / "serve.log")
        self.wait_until(self._well)

    def poll(self, engines: Iterable[Mapping[str, Any]]) -> None:
        """Poll these engines from now on; `polls_all` says when it does."""
        self._engines = list(engines)
        new = self.file.with_suffix(".new")
        new.write_text(yaml.safe_dump({**self._settings, "engines": self._engines}), "utf-8")
        new.rename(self.file)

    @cached_property
    def keys(self) -> dict[str, str]:
        """The key of each role, written before the service listens."""
        return dict(json.loads((self.var / "dev-keys.json").read_text("utf-8")))

    def credential(self, role: str = "gateway") -> dict[str, str]:
        """The header that names the caller."""
        return {"authorization": f"Bearer {self.keys[role]}"}

    def call(self, method: str, path: str, document: object = None, **headers: str) -> Any:
        """One call as an administrator. Raises RuntimeError for an answer that is no success."""
        status, answer = ask(self.port, method, path, document, {**self.credential("admin"), **headers})
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer!r}")
        return json.loads(answer) if answer else None

    def counters(self) -> dict[str, float]:
        """The values of its own metrics, by series."""
        return samples(self.port)

    def polls_all(self) -> bool:
        """Whether exactly the engines that it was told of are polled, and all are live."""
        nodes = self.call("GET", "/telemetry")["nodes"]
        return len(nodes) == len(self._engines) and all(node["fresh"] for node in nodes)

    def _well(self) -> bool:
        return ask(self.port, "GET", "/readyz")[0] == 200 and self.polls_all()


def opa_alone(files: list[Path], log: Path) -> Server:
    """OPA, started with `files` and nothing else."""
    port = free_port()
    command = [str(find_opa()), "run", "--server", f"--addr={LOOPBACK}:{port}", "--log-level=error", "--skip-version-check"]
    server = Server("OPA alone", port, [*command, *map(str, files)], log)
    server.wait_until(lambda: ask(port, "GET", "/health")[0] == 200)
    return server


def fastapi_route(log: Path) -> Server:
    """The bare route, under the same server, event loop and parser as Sluice."""
    port = free_port()
    options = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "error"]
    server = Server("FastAPI route", port, [sys.executable, "-m", "uvicorn", "bench.route:app", "--port", str(port), *options], log)
    server.wait_until(lambda: ask(port, "POST", "/decide")[0] == 200)
    return server


def stand_in(model: str, log: Path, *options: str) -> Server:
    """One stand-in engine; `options` of `sluice engine`."""
    port = free_port()
    command = [sys.executable, "-m", "app.cli", "engine", "--port", str(port), "--model", model, *options]
    server = Server(model, port, command, log)
    server.wait_until(lambda: ask(port, "GET", "/metrics")[0] == 200)
    return server


def many_engines(model: str, log: Path) -> Server:
    """One process that answers as any number of engines, each below a path of its own, with pages of a real size."""
    port = free_port()
    server = Server("engines", port, [sys.executable, "-m", "bench.engines", str(port), model], log)
    server.wait_until(lambda: ask(port, "GET", "/0/metrics")[0] == 200)
    return server


def telemetry_alone(file: Path, log: Path) -> Server:
    """The telemetry process by itself, polling the engines in `file`."""
    port = free_port()
    arguments = ["telemetry", "--config", str(file), "--listen", f"{LOOPBACK}:{port}"]
    server = Server("telemetry", port, [sys.executable, "-m", "app.cli", *arguments], log)
    server.wait_until(lambda: ask(port, "GET", "/healthz")[0] == 200)
    return server


def set_load(engine: Server, **gauges: float) -> None:
    """Force gauges of a stand-in engine."""
    ask(engine.port, "POST", "/load", gauges)


@contextlib.contextmanager
def changing(engines: Iterable[Server]) -> Iterator[None]:
    """Give each engine new readings every CHANGE_S, all below the watermarks: they change questions, not answers."""
    drawn = random.Random(1)

    def change() -> None:
        for engine in engines:
            set_load(engine, kv_ratio=drawn.randrange(200, 700) / 1000, waiting=drawn.randrange(10), running=drawn.randrange(64))

    with repeated(change, CHANGE_S):
        yield


@contextlib.contextmanager
def repeated(action: Callable[[], None], every_s: float) -> Iterator[None]:
    """Do `action` every `every_s` seconds, beside the block. Raises in the end what it raised."""
    over = threading.Event()
    failures: list[Exception] = []

    def go_on() -> None:
        while not over.wait(every_s):
            try:
                action()
            except Exception as failure:  # noqa: BLE001 - raised below, in the thread that can be asked
                failures.append(failure)
                return

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if failures:
        raise failures[0]


def ask(port: int, method: str, path: str, document: object = None, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
    """One call on a connection of its own: status and body."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
    try:
        connection.request(method, path, None if document is None else json.dumps(document), dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def samples(port: int, path: str = "/metrics") -> dict[str, float]:
    """A metrics page, by series; none while it is answered with an error."""
    status, page = ask(port, "GET", path)
    lines = page.decode().splitlines() if status == 200 else []
    return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))}


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def clean_environment() -> None:
    """Forget settings of the surroundings: a run measures what it says it measures."""
    for name in [name for name in os.environ if name.startswith("SLUICE_") and name != "SLUICE_SAMPLES"]:
        del os.environ[name]
