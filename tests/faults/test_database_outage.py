"""PostgreSQL stopped, frozen and killed under registry, approvals, keys and intake."""

import asyncio
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.approvals.approvals import Approvals
from app.approvals.wish import Wish
from app.audit.intake.gaps import Gaps
from app.audit.intake.intake import Intake
from app.audit.people.people import People
from app.auth.keys import Keys
from app.clock import SystemClock
from app.database import conninfo, create_engine
from app.errors import DependencyDown
from app.instants import rfc3339
from app.observability.metrics import Metrics
from app.postgres import EmbeddedPostgres
from app.processes import Launcher
from app.quota.registry import Registry
from app.schema import migrate
from app.setting_sections import DatabaseSettings
from tests.fixtures.approvals import approvals_of, caller
from tests.fixtures.entries import numbered
from tests.fixtures.proc import children_of, frozen
from tests.fixtures.registry import registry_of
from tests.fixtures.waiting import until

SETTINGS = DatabaseSettings(timeout_ms=400)
QUICK_S = 1.0  # the time-out, and what two busy cores add


@dataclass(frozen=True, slots=True)
class Rooms:
    """The rooms that live on one server, and the server."""

    server: EmbeddedPostgres
    metrics: Metrics
    registry: Registry
    approvals: Approvals
    keys: Keys
    intake: Intake


@pytest.fixture
async def rooms() -> AsyncIterator[Rooms]:
    folder = Path(tempfile.mkdtemp(prefix="sluice-fault-"))
    launcher = Launcher(SystemClock())
    server = EmbeddedPostgres(folder, launcher, folder / "secrets")
    await server.start()
    await migrate(server.urls.owner)
    registry_engine, intake_engine = create_engine(server.urls.registry, SETTINGS), create_engine(server.urls.intake, SETTINGS)
    made = _rooms(server, folder, registry_engine, intake_engine)
    followers = [asyncio.create_task(room.follow()) for room in (made.registry, made.keys, made.approvals)]
    yield made
    for follower in followers:
        follower.cancel()
    await asyncio.gather(*followers, return_exceptions=True)
    await registry_engine.dispose()
    await intake_engine.dispose()
    await launcher.stop_all()
    await server.stop()
    shutil.rmtree(folder)


def _rooms(server: EmbeddedPostgres, folder: Path, registry_engine: AsyncEngine, intake_engine: AsyncEngine) -> Rooms:
    clock, metrics, timeout_ms = SystemClock(), Metrics(), SETTINGS.timeout_ms
    gaps = Gaps(clock)
    people = People(registry_engine, folder / "secrets", clock, metrics, timeout_ms=timeout_ms)
    return Rooms(
        server,
        metrics,
        registry_of(registry_engine, folder, metrics=metrics, gaps=gaps, timeout_ms=timeout_ms),
        approvals_of(registry_engine, people, gaps=gaps, timeout_ms=timeout_ms),
        Keys(registry_engine, clock, metrics, timeout_ms=timeout_ms),
        Intake(intake_engine, metrics, gaps, timeout_ms=timeout_ms),
    )


def entry(number: int):
    return numbered(number)


def wish() -> Wish:
    ends = rfc3339(SystemClock().utcnow() + timedelta(days=1))
    return Wish(tenant="a", model="m", action="train", purpose="model-training", subject_id="s", expires=ends, reason="x")


async def everything_that_writes_is_refused_quickly(rooms: Rooms) -> None:
    changes = [
        lambda: rooms.registry.put("new", {"tpm": 1}, if_match=None, operator="op"),
        lambda: rooms.registry.patch("a", {"tpm": 2}, if_match=1, operator="op"),
        lambda: rooms.registry.delete("a", if_match=1, operator="op"),
        lambda: rooms.registry.history("a"),
        lambda: rooms.keys.create(name="new", roles=["admin"], operator="op"),
        lambda: rooms.keys.revoke("gw1", operator="op"),
        lambda: rooms.intake.write(entry(1)),
    ]
    for change in changes:
        start = time.perf_counter()
        with pytest.raises(DependencyDown):
            await change()
        assert time.perf_counter() - start < QUICK_S


async def test_a_stopped_server_stops_changes_and_nothing_else(rooms: Rooms):
    """While PostgreSQL is stopped, tenants and keys answer from memory and writes fail within their time; after a restart all goes on."""
    await rooms.registry.put("a", {"tpm": 1}, if_match=None, operator="op")
    created = await rooms.keys.create(name="gw1", roles=["gateway"], tenants=["a"], operator="op")
    await rooms.server.stop()
    await everything_that_writes_is_refused_quickly(rooms)

    assert rooms.registry.tenant("a").version == 1
    assert rooms.registry.tenant("new") is None
    assert rooms.keys.principal(created.text).name == "gw1"
    counted = {"dependency": "postgres", "call": "intake"}
    assert rooms.metrics.registry.get_sample_value("sluice_dependency_errors_total", counted) == 1

    await rooms.server.start()
    changed = await rooms.registry.patch("a", {"tpm": 2}, if_match=1, operator="op")
    await rooms.intake.write(entry(2))
    assert changed.version == 2
    async with await psycopg.AsyncConnection.connect(conninfo(rooms.server.urls.owner)) as connection:
        rows = await (await connection.execute("SELECT body FROM audit.intake WHERE body LIKE '%audit.gap%'::bytea")).fetchall()
    [gap] = [json.loads(bytes(body)) for (body,) in rows]
    assert (gap["reason"], gap["refused"], gap["lost"]) == ("database_down", 4, 0)  # three changes of quotas and one entry


async def test_approvals_go_on_for_a_moment_and_take_no_step(rooms: Rooms, monkeypatch: pytest.MonkeyPatch):
    """While PostgreSQL is stopped nobody asks, answers or revokes, and what is known counts until it is too old to be relied on."""
    made = await rooms.approvals.ask(wish(), caller("asker", "operator"))
    approver = caller("approver", "approver")
    await rooms.approvals.answer(made.id, "approved", approver, "seen")
    await rooms.server.stop()
    steps = [
        lambda: rooms.approvals.ask(wish(), caller("asker", "operator")),
        lambda: rooms.approvals.answer(made.id, "refused", approver, "seen"),
        lambda: rooms.approvals.revoke(made.id, approver, "seen"),
    ]
    for step in steps:
        start = time.perf_counter()
        with pytest.raises(DependencyDown):
            await step()
        assert time.perf_counter() - start < QUICK_S

    monkeypatch.setattr("app.approvals.approvals.STALE_AFTER_MS", 60_000)
    assert rooms.approvals.facts("a", str(made.id), "s")["state"] == "approved"
    monkeypatch.setattr("app.approvals.approvals.STALE_AFTER_MS", 0)
    assert rooms.approvals.facts("a", str(made.id), "s") is None
    monkeypatch.undo()
    await rooms.server.start()
    async with await psycopg.AsyncConnection.connect(conninfo(rooms.server.urls.registry)) as other:
        await other.execute(
            "UPDATE registry.approval SET state = 'revoked', revoked = now(), revoked_by = 'x', revoked_key = 'y', revoked_reason = 'z', "
            "changed = pg_current_xact_id()"
        )
    await until(lambda: (rooms.approvals.facts("a", str(made.id), "s") or {}).get("state") == "revoked")


async def test_followers_catch_up_after_an_outage(rooms: Rooms):
    """What others changed around an outage is in force here once PostgreSQL is back, without a restart of ours."""
    await rooms.registry.put("a", {"tpm": 1}, if_match=None, operator="op")
    await rooms.server.stop()
    await rooms.server.start()
    async with await psycopg.AsyncConnection.connect(conninfo(rooms.server.urls.registry)) as other:
        await other.execute("UPDATE registry.tenant_quota SET tpm = 9, version = 2, changed = pg_current_xact_id()")

    await until(lambda: rooms.registry.tenant("a").version == 2)
    assert rooms.registry.tenant("a").quota.tpm == 9


async def test_a_frozen_server_holds_nobody(rooms: Rooms):
    """While PostgreSQL is frozen in the middle of everything, writes fail within their time; when it thaws all goes on."""
    await rooms.registry.put("a", {"tpm": 1}, if_match=None, operator="op")
    await rooms.keys.create(name="gw1", roles=["gateway"], tenants=["a"], operator="op")
    await rooms.intake.write(entry(0))
    with frozen(rooms.server.pid, *children_of(rooms.server.pid)):
        await everything_that_writes_is_refused_quickly(rooms)
        assert rooms.registry.tenant("a").version == 1

    await until_it_works(lambda: rooms.intake.write(entry(2)))
    await until_it_works(lambda: rooms.registry.history("a"))


async def until_it_works(call) -> None:
    deadline = time.perf_counter() + 15
    while True:
        try:
            await call()
        except DependencyDown:
            assert time.perf_counter() < deadline
        else:
            return


async def test_what_was_acknowledged_survives_a_kill(rooms: Rooms):
    """Entries whose write returned are there after kill -9 of the server, each once."""
    acknowledged = [entry(number) for number in range(40)]
    for one in acknowledged:
        await rooms.intake.write(one)
    old = rooms.server.pid
    os.kill(old, signal.SIGKILL)
    await until(lambda: rooms.server.pid not in (old, None), within_s=15)
    await until_it_works(lambda: rooms.intake.write(acknowledged[0]))
    async with await psycopg.AsyncConnection.connect(conninfo(rooms.server.urls.owner)) as connection:
        stored = await (await connection.execute("SELECT id FROM audit.intake WHERE body LIKE '%decisions.minute%'::bytea")).fetchall()

    assert sorted(one.id for one in acknowledged) == sorted(identity for (identity,) in stored)
