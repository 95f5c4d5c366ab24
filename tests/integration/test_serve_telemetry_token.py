"""The telemetry token between serve and the process that it follows, its own child or a shared one."""

import contextlib
import http.client
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.folders import private_dir
from tests.fixtures.engine import free_port
from tests.fixtures.serve import ROOT, UNHURRIED, FirstStart, Serve, copy_of, spawn, write_settings

TOKEN = "sesame-for-telemetry"


@contextlib.contextmanager
def shared_telemetry(config: Path, port: int) -> Iterator[None]:
    """`sluice telemetry` of an operator, until the end of the block."""
    command = [sys.executable, "-m", "app.cli", "telemetry", "--config", str(config), "--listen", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=ROOT) as process:
        try:
            yield
        finally:
            process.terminate()


def status_without_token(connected: socket.socket) -> int:
    """What the telemetry process answers a reader that sends no token."""
    with connected, contextlib.closing(http.client.HTTPConnection("telemetry", timeout=30)) as connection:
        connection.sock = connected
        connection.request("GET", "/snapshot")
        return connection.getresponse().status


def says_nothing_of_the_token(serve: Serve) -> bool:
    return TOKEN not in serve.log() and not any(TOKEN in command for command in serve.children().values())


def test_serve_and_its_own_telemetry_share_the_token(start_serve: Callable[..., Serve], monkeypatch: pytest.MonkeyPatch):
    """With a token in the environment serve sees its engines, and others on the socket are refused."""
    monkeypatch.setenv("SLUICE_TELEMETRY__TOKEN", TOKEN)
    server = start_serve()

    socket_file = private_dir(server.var) / "telemetry.sock"
    reader = socket.socket(socket.AF_UNIX)
    reader.connect(str(socket_file))
    assert status_without_token(reader) == 401
    assert server.parts()["telemetry"]["ok"]
    assert says_nothing_of_the_token(server)


def test_serve_sends_the_token_to_a_shared_telemetry(first_start: FirstStart, tmp_path: Path):
    """With a token in a file that the settings of both name, serve sees its engines, and others on the port are refused."""
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    var, port, telemetry_port = copy_of(first_start.var), free_port(), free_port()
    shared = {"url": f"http://127.0.0.1:{telemetry_port}", "token": f"file:{tmp_path / 'token'}"}
    write_settings(var, port, {**UNHURRIED, "telemetry": {**UNHURRIED["telemetry"], **shared}})
    try:
        with shared_telemetry(var / "sluice.yaml", telemetry_port):
            server = spawn(var, port, {})
            try:
                server.wait_ready()
                assert status_without_token(socket.create_connection(("127.0.0.1", telemetry_port))) == 401
                assert says_nothing_of_the_token(server)
            finally:
                server.stop()
    finally:
        shutil.rmtree(var)
