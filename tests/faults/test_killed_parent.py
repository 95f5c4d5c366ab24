"""kill -9 of the process that started them leaves no child behind, and nothing that the next start trips over."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from app.clock import SystemClock
from app.database import conninfo
from app.postgres import EmbeddedPostgres
from app.processes import Launcher
from tests.fixtures.postgres import scratch_folder
from tests.fixtures.waiting import wait_until

PARENT = """
import asyncio, json, sys
from pathlib import Path
from app.clock import SystemClock
from app.observability.logs import configure_logs
from app.postgres import EmbeddedPostgres
from app.processes import Launcher

async def main(var):
    configure_logs()
    launcher = Launcher(SystemClock())
    plain = await launcher.start("plain", ["sleep", "64"])
    stubborn = await launcher.keep("stubborn", ["bash", "-c", "trap '' TERM INT HUP; while :; do sleep 0.05; done"])
    pids = [plain.pid, stubborn.child.pid]
    if var:
        postgres = EmbeddedPostgres(Path(var), launcher, Path(var) / "secrets", settings={"fsync": "off"})
        await postgres.start()
        pids.append(postgres.pid)
    print(json.dumps(pids), flush=True)
    await asyncio.Event().wait()

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture
def var():
    with scratch_folder() as folder:
        yield folder


def killed(var: str) -> list[int]:
    """The children of a parent that was killed with SIGKILL once they ran."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT, var], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with parent:
        try:
            return json.loads(parent.stdout.readline())
        finally:
            parent.kill()


def is_gone(pid: int) -> bool:
    """Whether no such process runs; one that its new parent has yet to collect does not run."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals children when their parent is gone")
def test_no_child_survives():
    """Children end with a parent that had no chance to stop them, also one that ignores every polite signal."""
    pids = killed("")

    assert len(pids) == 2
    wait_until(lambda: all(is_gone(pid) for pid in pids))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals children when their parent is gone")
async def test_the_database_ends_in_order_and_starts_again(var):
    """PostgreSQL shuts down when its parent is killed; the next start waits for that and finds its data."""
    *_, postgres = killed(str(var))
    launcher = Launcher(SystemClock())
    again = EmbeddedPostgres(var, launcher, var / "secrets")
    await again.start()

    assert is_gone(postgres)
    assert await answer(again.admin_url, "SELECT pg_is_in_recovery()") is False
    await launcher.stop_all()


async def test_a_stale_pid_file_is_no_obstacle(var):
    """A pid file left by a server that was killed does not stop the next start, though its number is another program's by now."""
    launcher = Launcher(SystemClock())
    first = EmbeddedPostgres(var, launcher, var / "secrets")
    await first.start()
    await execute(first.admin_url, "CREATE TABLE kept AS SELECT 42 AS answer")
    pid_file = var / "postgres" / "data" / "postmaster.pid"
    left_behind = pid_file.read_text()
    await first.stop()
    with subprocess.Popen(["sleep", "65"], user=pid_file.parent.stat().st_uid) as other:  # noqa: ASYNC220
        pid_file.write_text(left_behind.replace(left_behind.split("\n")[0], str(other.pid), 1))
        again = EmbeddedPostgres(var, launcher, var / "secrets")
        await again.start()
        other.kill()

    assert await answer(again.admin_url, "SELECT answer FROM kept") == 42
    await launcher.stop_all()


async def test_a_killed_server_is_started_again_with_its_data(var):
    """SIGKILL of PostgreSQL loses nothing that was committed: it is started again and recovers."""
    launcher = Launcher(SystemClock())
    postgres = EmbeddedPostgres(var, launcher, var / "secrets")
    await postgres.start()
    await execute(postgres.admin_url, "CREATE TABLE kept AS SELECT 42 AS answer")
    os.kill(postgres.pid, signal.SIGKILL)

    await wait_for(postgres.admin_url)

    assert await answer(postgres.admin_url, "SELECT answer FROM kept") == 42
    await launcher.stop_all()


async def execute(url: str, statement: str) -> None:
    async with await psycopg.AsyncConnection.connect(conninfo(url)) as connection:
        await connection.execute(statement)


async def answer(url: str, question: str):
    async with await psycopg.AsyncConnection.connect(conninfo(url)) as connection:
        return (await (await connection.execute(question)).fetchone())[0]


async def wait_for(url: str) -> None:
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                await answer(url, "SELECT 1")
                return
            await asyncio.sleep(0.02)
