"""Keys on a real PostgreSQL."""

import asyncio
import base64
import hashlib
from datetime import UTC, datetime, timedelta

import orjson
import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.auth.keys import Keys
from app.clock import ManualClock, SystemClock
from app.database import DatabaseUrls, conninfo
from app.errors import BadRequest, Conflict, NotFound, Unauthorized
from app.observability.metrics import Metrics
from tests.fixtures.postgres import TIMEOUT_MS
from tests.fixtures.waiting import until


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def keys(registry_engine: AsyncEngine, clock: ManualClock) -> Keys:
    return Keys(registry_engine, clock, Metrics(), timeout_ms=TIMEOUT_MS)


async def dump(urls: DatabaseUrls) -> tuple[list[tuple], list[bytes]]:
    async with await psycopg.AsyncConnection.connect(conninfo(urls.owner)) as connection:
        stored = await (await connection.execute("SELECT * FROM registry.api_key")).fetchall()
        entries = await (await connection.execute("SELECT body FROM audit.intake ORDER BY id")).fetchall()
    return stored, [body for (body,) in entries]


async def test_a_key_is_32_random_bytes_and_only_its_digest_is_kept(keys: Keys, database_urls: DatabaseUrls):
    """The key text is in no row and no log entry, only its SHA-256 in the row."""
    created = await keys.create(name="gw1", roles=["gateway"], tenants=["a"], operator="op")
    random_part = created.text.removeprefix("sluice_")
    stored, entries = await dump(database_urls)

    assert len(base64.urlsafe_b64decode(random_part + "=")) == 32
    assert hashlib.sha256(created.text.encode()).digest() in stored[0]
    assert random_part not in repr(stored)
    assert random_part.encode() not in b"".join(entries)
    assert random_part not in repr(created)


async def test_a_key_speaks_for_who_it_was_made_for(keys: Keys):
    """The holder of a key has its name, roles and tenants at once."""
    created = await keys.create(name="gw1", roles=["gateway", "auditor"], tenants=["a", "cafe\u0301"], operator="op")
    principal = keys.principal(created.text)

    assert (principal.name, principal.roles, principal.tenants) == ("gw1", {"gateway", "auditor"}, {"a", "caf\u00e9"})


async def test_making_and_revoking_are_logged(keys: Keys, database_urls: DatabaseUrls):
    """Each leaves one entry with who did it; revoking again leaves none."""
    created = await keys.create(name="gw1", roles=["gateway"], tenants=["*"], operator="op1")
    await keys.revoke("gw1", operator="op2")
    again = await keys.revoke(str(created.key.id), operator="op3")
    _, entries = await dump(database_urls)

    assert [(entry["kind"], entry["operator"]) for entry in map(orjson.loads, entries)] == [("key.created", "op1"), ("key.revoked", "op2")]
    assert again.revoked == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "bearer", [None, "", "sluice_", "x" * 50, "sluice_" + "A" * 43, "sluice_" + "é" * 43, "a" * 100_000, "\ud800" * 50]
)
async def test_what_is_no_key_is_refused(keys: Keys, bearer: str | None):
    """A missing, malformed or unknown key is 401."""
    await keys.create(name="gw1", roles=["gateway"], tenants=["a"], operator="op")
    with pytest.raises(Unauthorized):
        keys.principal(bearer)


async def test_a_key_ends_at_its_hour(keys: Keys, clock: ManualClock):
    """A key works until the instant it expires and never after."""
    created = await keys.create(name="gw1", roles=["gateway"], tenants=["a"], expires=clock.utcnow() + timedelta(seconds=1), operator="op")
    clock.advance(999)
    keys.principal(created.text)
    clock.advance(1)
    with pytest.raises(Unauthorized, match="expired"):
        keys.principal(created.text)


async def test_an_id_means_that_key_whatever_others_are_called(keys: Keys):
    """A key that is named like another's id is not what revoking that id ends."""
    victim = await keys.create(name="victim", roles=["operator"], operator="op")
    decoy = await keys.create(name=str(victim.key.id), roles=["operator"], operator="op")

    assert (await keys.revoke(str(victim.key.id), operator="op")).id == victim.key.id
    assert keys.principal(decoy.text).name == str(victim.key.id)


async def test_a_revoked_key_is_refused_at_once_and_its_name_is_free(keys: Keys):
    """After revoking, the key is 401 here at once, and another key may take the name."""
    old = await keys.create(name="gw1", roles=["gateway"], tenants=["a"], operator="op")
    with pytest.raises(Conflict, match="gw1"):
        await keys.create(name="gw1", roles=["gateway"], tenants=["a"], operator="op")
    await keys.revoke("gw1", operator="op")
    new = await keys.create(name="gw1", roles=["gateway"], tenants=["a"], operator="op")
    with pytest.raises(Unauthorized, match="revoked"):
        keys.principal(old.text)

    assert keys.principal(new.text).key_id == str(new.key.id)
    assert (await keys.revoke("gw1", operator="op")).id == new.key.id


async def test_making_and_revoking_reach_other_processes_within_a_second(keys: Keys, registry_engine: AsyncEngine):
    """Another process accepts a new key and refuses a revoked one well within a second."""
    other = Keys(registry_engine, SystemClock(), Metrics(), timeout_ms=TIMEOUT_MS)
    task = asyncio.create_task(other.follow())
    first = await keys.create(name="first", roles=["operator"], operator="op")
    await until(lambda: accepts(other, first.text))
    created = await keys.create(name="gw1", roles=["gateway"], tenants=["a"], operator="op")
    created_s = await until(lambda: accepts(other, created.text))
    await keys.revoke("gw1", operator="op")
    revoked_s = await until(lambda: not accepts(other, created.text))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert max(created_s, revoked_s) < 1


def accepts(keys: Keys, bearer: str) -> bool:
    try:
        keys.principal(bearer)
    except Unauthorized:
        return False
    return True


async def test_a_restart_remembers_keys_and_revocations(keys: Keys, registry_engine: AsyncEngine, clock: ManualClock):
    """A process that starts later accepts and refuses the same keys."""
    kept = await keys.create(name="kept", roles=["admin"], operator="op")
    gone = await keys.create(name="gone", roles=["admin"], operator="op")
    await keys.revoke("gone", operator="op")
    other = Keys(registry_engine, clock, Metrics(), timeout_ms=TIMEOUT_MS)
    await other.load()

    assert accepts(other, kept.text)
    assert not accepts(other, gone.text)
    assert [(key.principal.name, key.revoked is not None) for key in await other.list()] == [("kept", False), ("gone", True)]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"roles": []}, "role"),
        ({"roles": ["root"]}, "role"),
        ({"roles": ["gateway"], "tenants": []}, "tenant"),
        ({"tenants": ["a\u200b"]}, "tenant"),
        ({"name": ""}, "name"),
        ({"name": " x"}, "name"),
        ({"expires": datetime(2025, 1, 1, tzinfo=UTC)}, "expires"),
    ],
)
async def test_a_bad_wish_is_refused_by_name(keys: Keys, asked: dict, field: str):
    """Unknown roles, a gateway without tenants, bad names and a past end are a 400 that names the field."""
    with pytest.raises(BadRequest) as refused:
        await keys.create(**({"name": "n", "roles": ["gateway"], "tenants": ["a"], "operator": "op"} | asked))

    assert refused.value.field == field


async def test_revoking_what_is_not_there_says_so(keys: Keys):
    """An unknown name is 404."""
    with pytest.raises(NotFound, match="nobody"):
        await keys.revoke("nobody", operator="op")
