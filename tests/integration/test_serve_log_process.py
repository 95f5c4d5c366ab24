"""The log's process as a child of serve with everything embedded."""

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.clock import SystemClock
from app.postgres import EmbeddedPostgres
from app.processes import Launcher
from tests.fixtures.engine import free_port
from tests.fixtures.postgres import rows_of
from tests.fixtures.proc import runs
from tests.fixtures.serve import FirstStart, Serve, copy_of, spawn
from tests.fixtures.waiting import wait_until
from tests.fixtures.whole_log import size_of_whole_log

SIGNED_WITHIN_S = 10.0  # a second, and what two busy cores add
REFUSED_WITHIN_S = 60.0
PROCESS = "audit run"


@pytest.fixture
def spare_var(first_start: FirstStart) -> Iterator[Path]:
    """A prepared folder that no server runs on."""
    var = copy_of(first_start.var)
    yield var
    shutil.rmtree(var)


def is_signed(serve: Serve, tenant: str) -> bool:
    """Whether the entry about a tenant's quota is in the log, under a checkpoint."""
    covered = "SELECT count(*) FROM audit.body WHERE tenant = %s AND seq < (SELECT max(size) FROM audit.checkpoint)"
    return serve.sql(covered, tenant) == [(1,)]


def test_a_change_is_in_the_signed_log_a_moment_later(serve: Serve):
    """What was changed over HTTP is sequenced and signed without anybody's doing."""
    tenant = serve.tenant(qps=7)

    wait_until(lambda: is_signed(serve, tenant), SIGNED_WITHIN_S)


def test_a_killed_log_process_is_started_again(start_serve: Callable[..., Serve]):
    """Decisions and changes go on without it, and the next one takes up what waits."""
    server = start_serve()
    pid = server.child(PROCESS)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not runs(pid), SIGNED_WITHIN_S)
    tenant = server.tenant(qps=7)

    assert server.decide(tenant)["allow"]
    wait_until(lambda: is_signed(server, tenant), SIGNED_WITHIN_S)


def test_without_its_keys_the_log_waits_for_them(start_serve: Callable[..., Serve]):
    """Where the folder is gone when the process starts again it makes no other root: it refuses, visibly, and goes on with the folder back."""
    server = start_serve()
    keys, away = server.var / "audit-keys", server.var / "away"
    wait_until(lambda: server.parts()["log"]["ok"], SIGNED_WITHIN_S)
    keys.rename(away)
    os.kill(server.child(PROCESS), signal.SIGKILL)
    wait_until(lambda: "nobody leads it: the child `audit` of serve" in server.parts()["log"]["detail"], SIGNED_WITHIN_S)
    tenant = server.tenant(qps=7)
    wait_until(lambda: "the root of this log is" in server.log(), SIGNED_WITHIN_S)

    assert not keys.exists()
    away.rename(keys)
    wait_until(lambda: is_signed(server, tenant), REFUSED_WITHIN_S)
    assert server.sql("SELECT count(*) FROM audit.certificate") == [(2,)]


def test_the_last_checkpoint_of_a_life_has_every_entry(spare_var: Path):
    """SIGTERM leaves nothing in the intake and nothing unsigned: who writes ends first, then the log, then PostgreSQL."""
    server = spawn(spare_var, free_port(), json.loads((spare_var / "dev-keys.json").read_text())).wait_ready()
    tenants = [server.tenant(qps=number) for number in range(1, 20)]
    assert server.stop() == 0

    state = asyncio.run(_state_of_log(spare_var))
    assert state["waiting"] == 0
    assert state["size"] == state["signed"]
    assert set(tenants) <= state["tenants"]


def test_a_passphrase_that_is_read_once_is_refused_with_the_embedded_database(spare_var: Path):
    """A descriptor is empty when serve starts the log's process again, which it does when that dies."""
    refused = spawn(spare_var, free_port(), {}, "--set", "audit.passphrase=fd:0")

    assert refused.process.wait(REFUSED_WITHIN_S) == 2
    assert "audit.passphrase: a descriptor is read once" in refused.log()


async def _state_of_log(var: Path) -> dict[str, Any]:
    """What the log in a folder holds that no server runs on."""
    launcher = Launcher(SystemClock())
    database = EmbeddedPostgres(var, launcher, var / "secrets")
    await database.start()
    try:
        owner = database.urls.owner
        [(waiting,)] = await rows_of(owner, "SELECT count(*) FROM audit.intake")
        [(signed,)] = await rows_of(owner, "SELECT max(size) FROM audit.checkpoint")
        tenants = {tenant for (tenant,) in await rows_of(owner, "SELECT tenant FROM audit.body")}
        return {"waiting": waiting, "signed": signed, "size": await size_of_whole_log(owner), "tenants": tenants}
    finally:
        await launcher.stop_all()
