"""Tenants and quotas on a real PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import orjson
import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.audit.people.people import People
from app.clock import SystemClock
from app.database import DatabaseUrls, conninfo, create_engine
from app.errors import BadRequest, NotFound, PreconditionFailed, PreconditionRequired
from app.observability.metrics import Metrics
from app.quota.registry import Registry
from app.setting_sections import DatabaseSettings
from tests.fixtures.postgres import TIMEOUT_MS, rows_of
from tests.fixtures.registry import registry_of
from tests.fixtures.waiting import until

OP = "op1"


@pytest.fixture
async def engine(database_urls: DatabaseUrls) -> AsyncIterator[AsyncEngine]:
    made = create_engine(database_urls.registry, DatabaseSettings(pool_size=8))
    yield made
    await made.dispose()


@pytest.fixture
def registry(engine: AsyncEngine, tmp_path: Path) -> Registry:
    return registry_of(engine, tmp_path)


@asynccontextmanager
async def following(registry: Registry) -> AsyncIterator[None]:
    task = asyncio.create_task(registry.follow())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_change_is_used_before_the_caller_hears_of_it(registry: Registry):
    """When put, patch or delete returns, the next decision of this process sees the new state."""
    await registry.put("a", {"qps": 5, "tpm": 100}, if_match=None, operator=OP)
    assert registry.tenant("a").facts == {"id": "a", "qps": 5, "tpm": 100, "sla_class": "standard", "zone": "UTC", "version": 1}

    await registry.patch("a", {"qps": None, "concurrency": 2}, if_match=1, operator=OP)
    assert registry.tenant("a").facts == {"id": "a", "tpm": 100, "concurrency": 2, "sla_class": "standard", "zone": "UTC", "version": 2}
    assert orjson.loads(registry.tenant("a").section.key) == registry.tenant("a").facts

    await registry.delete("a", if_match=2, operator=OP)
    assert registry.tenant("a") is None
    assert registry.tenants() == []


async def test_a_change_writes_version_history_and_log_entry(registry: Registry, database_urls: DatabaseUrls):
    """Each change leaves one line of history and one entry in the intake, with snapshots, difference, operator and reason."""
    await registry.put("a", {"qps": 5, "costs": {"模型": 2.5}}, if_match=None, operator=OP, reason="start")
    await registry.patch("a", {"qps": 7.5}, if_match=1, operator="op2", reason="a\\u0000b")
    await registry.delete("a", if_match=2, operator=OP)
    history = await registry.history("a")

    assert [(line.version, line.operation, line.operator, line.reason) for line in history] == [
        (3, "delete", OP, ""),
        (2, "update", "op2", "a\\u0000b"),
        (1, "create", OP, "start"),
    ]
    assert history[1].diff == [{"path": "/qps", "before": "5", "after": "7.5"}]
    entries = [orjson.loads(body) for (body,) in await rows_of(database_urls.owner, "SELECT body FROM audit.intake ORDER BY id")]
    assert [(e["kind"], e["quota_version"]) for e in entries] == [("quota.in_force", 1), ("quota.in_force", 2), ("quota.deleted", 3)]
    for entry, line in zip(entries, reversed(history), strict=True):
        assert (entry.get("before"), entry.get("after"), entry["diff"]) == (line.before, line.after, line.diff)
        assert ("reason" in entry.get("sealed", {})) is bool(line.reason)


async def test_a_reason_is_sealed_in_the_log(registry: Registry, engine: AsyncEngine, tmp_path: Path, database_urls: DatabaseUrls):
    """What an operator wrote stands in no entry in clear, opens with the operator's key, and stays as it is in the history."""
    await registry.put("a", {"qps": 5}, if_match=None, operator=OP, reason="alice@example.org asked for it")
    ((body,),) = await rows_of(database_urls.owner, "SELECT body FROM audit.intake")
    entry = orjson.loads(body)
    people = People(engine, tmp_path / "secrets", SystemClock(), Metrics(), timeout_ms=TIMEOUT_MS)

    assert b"alice" not in body
    keyring = await people.keys.keyring(entry["sealed"].values())
    assert set(entry["sealed"]) == {"reason"}
    assert keyring.open(UUID(entry["id"]), "reason", entry["sealed"]["reason"]) == "alice@example.org asked for it"
    assert await rows_of(database_urls.owner, "SELECT subject FROM registry.subject_key") == [(people.pseudonyms.operator(OP),)]
    assert [line.reason for line in await registry.history("a")] == ["alice@example.org asked for it"]


async def test_sealing_needs_no_second_connection(database_urls: DatabaseUrls, tmp_path: Path):
    """Operators who make their first change at the same moment wait for each other on a pool of one connection, and none for ever."""
    engine = create_engine(database_urls.registry, DatabaseSettings(pool_size=1))
    registry = registry_of(engine, tmp_path)
    try:
        made = await asyncio.gather(
            *(registry.put(f"t{number}", {"qps": 5}, if_match=None, operator=f"op{number}", reason="why") for number in range(8))
        )
    finally:
        await engine.dispose()

    assert [tenant.version for tenant in made] == [1] * 8


async def test_snapshots_come_back_digit_for_digit(registry: Registry):
    """A recorded snapshot has the numbers that were put, as text and exact, after a round trip through the database."""
    document = {"qps": 999999.999999, "tpm": 10**9, "rate_factors": {"m/1": 0.000001, "模型": 2.4}, "costs": {"m": 1000}}
    put = await registry.put("a", document, if_match=None, operator=OP)
    (line,) = await registry.history("a")

    assert put.quota.qps == Decimal("999999.999999")
    assert line.after == {
        "qps": "999999.999999",
        "tpm": 10**9,
        "rate_factors": [{"model": "m/1", "value": "0.000001"}, {"model": "模型", "value": "2.4"}],
        "costs": [{"model": "m", "value": "1000"}],
        "sla_class": "standard",
        "zone": "UTC",
    }


async def test_another_process_reads_the_same(registry: Registry, engine: AsyncEngine, tmp_path: Path):
    """A process that starts later has the same tenants, in the same form."""
    await registry.put("a", {"qps": 0.1, "rate_factors": {"m": 0.8}, "region": "eu-1", "zone": "Asia/Shanghai"}, if_match=None, operator=OP)
    await registry.put("b", {"tpm": 1}, if_match=None, operator=OP)
    await registry.delete("b", if_match=1, operator=OP)
    other = registry_of(engine, tmp_path)
    await other.load()

    assert other.tenants() == registry.tenants()
    assert str(other.tenant("a").zoneinfo) == "Asia/Shanghai"


async def test_the_same_quota_again_changes_nothing(registry: Registry, database_urls: DatabaseUrls):
    """A change to the state that is there keeps the version and writes no row."""
    await registry.put("a", {"qps": 5}, if_match=None, operator=OP)

    assert (await registry.put("a", {"qps": 5.0}, if_match=1, operator=OP)).version == 1
    assert (await registry.patch("a", {"costs": {}}, if_match=1, operator=OP)).version == 1
    assert await rows_of(database_urls.owner, "SELECT count(*) FROM audit.intake") == [(1,)]


async def test_versions_guard_changes(registry: Registry):
    """A change without a version is asked for one, a stale one fails, and nothing is changed by either."""
    await registry.put("a", {"qps": 5}, if_match=None, operator=OP, must_be_new=True)
    with pytest.raises(PreconditionRequired):
        await registry.put("a", {"qps": 6}, if_match=None, operator=OP)
    with pytest.raises(PreconditionRequired):
        await registry.patch("a", {"qps": 6}, if_match=None, operator=OP)
    with pytest.raises(PreconditionRequired):
        await registry.delete("a", if_match=None, operator=OP)
    with pytest.raises(PreconditionFailed):
        await registry.patch("a", {"qps": 6}, if_match=2, operator=OP)
    with pytest.raises(PreconditionFailed):
        await registry.put("a", {"qps": 6}, if_match=1, operator=OP, must_be_new=True)
    with pytest.raises(PreconditionFailed):
        await registry.put("new", {"qps": 6}, if_match=1, operator=OP)
    with pytest.raises(NotFound):
        await registry.patch("new", {"qps": 6}, if_match=1, operator=OP)
    with pytest.raises(NotFound):
        await registry.delete("new", if_match=1, operator=OP)

    assert [(tenant.id, tenant.version) for tenant in registry.tenants()] == [("a", 1)]


async def test_a_refused_patch_changes_nothing(registry: Registry):
    """A patch whose result would be no valid quota is a 400 and leaves everything as it is."""
    await registry.put("a", {"qps": 5}, if_match=None, operator=OP)
    for patch in ({"qps": None}, {"qps": "6"}, {"burst": 1}, [], "qps"):
        with pytest.raises(BadRequest):
            await registry.patch("a", patch, if_match=1, operator=OP)
    with pytest.raises(BadRequest, match="reason"):
        await registry.patch("a", {"qps": 6}, if_match=1, operator=OP, reason="a\x00b")
    with pytest.raises(BadRequest, match="operator"):
        await registry.patch("a", {"qps": 6}, if_match=1, operator="\ud800")

    assert registry.tenant("a").version == 1
    assert len(await registry.history("a")) == 1


async def test_a_tenant_created_anew_goes_on_counting(registry: Registry):
    """Versions are never used twice: a deleted tenant that comes back continues its history."""
    await registry.put("a", {"qps": 5}, if_match=None, operator=OP)
    await registry.delete("a", if_match=1, operator=OP)
    again = await registry.put("a", {"qps": 5}, if_match=None, operator=OP)

    assert again.version == 3
    assert [line.version for line in await registry.history("a")] == [3, 2, 1]


async def test_parallel_changes_leave_no_gap_and_no_double(
    registry: Registry, engine: AsyncEngine, tmp_path: Path, database_urls: DatabaseUrls
):
    """Eight writers that change one quota at once, each retrying when stale, make 200 versions, lines and entries, and no error."""
    await registry.put("a", {"tpm": 1}, if_match=None, operator=OP)
    writers = [registry_of(engine, tmp_path) for _ in range(8)]

    async def write(number: int, writer: Registry) -> None:
        done = 0
        while done < 25:
            await writer.load()
            version = writer.tenant("a").version
            try:
                await writer.patch("a", {"tpm": 1000 * number + done + 2}, if_match=version, operator=f"op{number}")
                done += 1
            except PreconditionFailed:
                continue

    await asyncio.gather(*(write(number, writer) for number, writer in enumerate(writers)))

    lines = await rows_of(database_urls.owner, "SELECT version, after ->> 'tpm' FROM registry.quota_history ORDER BY version")
    assert list(range(1, 202)) == [version for version, _ in lines]
    assert len({tpm for _, tpm in lines}) == 201
    logged = await rows_of(database_urls.owner, "SELECT convert_from(body, 'UTF8')::json ->> 'quota_version' FROM audit.intake")
    assert list(range(1, 202)) == sorted(int(version) for (version,) in logged)


async def test_parallel_creations_make_one_tenant(engine: AsyncEngine, tmp_path: Path):
    """Of eight that create the same tenant at once, one does; the others hear that it exists."""
    writers = [registry_of(engine, tmp_path) for _ in range(8)]
    answers = await asyncio.gather(
        *(writer.put("a", {"tpm": n + 1}, if_match=None, operator=OP, must_be_new=True) for n, writer in enumerate(writers)),
        return_exceptions=True,
    )

    assert sorted(type(answer).__name__ for answer in answers) == ["PreconditionFailed"] * 7 + ["Tenant"]
    assert len(await writers[0].history("a")) == 1


async def test_changes_reach_other_processes_within_a_second(registry: Registry, engine: AsyncEngine, tmp_path: Path):
    """A change made through one process is in force in another well within a second."""
    other = registry_of(engine, tmp_path)
    async with following(other):
        await registry.put("first", {"tpm": 1}, if_match=None, operator=OP)
        await until(lambda: other.tenant("first"))
        await registry.put("a", {"tpm": 1}, if_match=None, operator=OP)
        created_s = await until(lambda: other.tenant("a"))
        await registry.delete("a", if_match=1, operator=OP)
        deleted_s = await until(lambda: other.tenant("a") is None)

    assert max(created_s, deleted_s) < 1


async def test_a_lost_notification_heals(registry: Registry, engine: AsyncEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A change whose notification never arrives is found at the next regular look."""
    monkeypatch.setattr("app.follower.RECONCILE_S", 0.05)
    other = registry_of(engine, tmp_path)
    async with following(other):
        await registry.put("first", {"tpm": 1}, if_match=None, operator=OP)
        await until(lambda: other.tenant("first"))
        monkeypatch.setattr("app.quota.store._NOTIFY", text("SELECT 1"))
        await registry.put("a", {"tpm": 1}, if_match=None, operator=OP)

        await until(lambda: other.tenant("a"))


async def test_a_change_that_commits_late_is_not_skipped(
    registry: Registry, engine: AsyncEngine, tmp_path: Path, database_urls: DatabaseUrls
):
    """A transaction that began before a reader's last look and commits after it is still found."""
    await registry.put("late", {"tpm": 1}, if_match=None, operator=OP)
    await registry.put("early", {"tpm": 1}, if_match=None, operator=OP)
    other = registry_of(engine, tmp_path)
    async with await psycopg.AsyncConnection.connect(conninfo(database_urls.registry)) as slow, following(other):
        await until(lambda: other.tenant("late"))
        await slow.execute("UPDATE registry.tenant_quota SET tpm = 2, version = 2, changed = pg_current_xact_id() WHERE tenant = 'late'")
        await registry.patch("early", {"tpm": 2}, if_match=1, operator=OP)
        await until(lambda: other.tenant("early").version == 2)
        await slow.execute("NOTIFY sluice_quota")
        await slow.commit()

        await until(lambda: other.tenant("late").version == 2)


async def test_one_unreadable_row_hides_no_other(registry: Registry, engine: AsyncEngine, tmp_path: Path, database_urls: DatabaseUrls):
    """A row that this version cannot read is left out with a log line; all other tenants are there."""
    await registry.put("good", {"tpm": 1}, if_match=None, operator=OP)
    await registry.put("bad", {"tpm": 1}, if_match=None, operator=OP)
    async with await psycopg.AsyncConnection.connect(conninfo(database_urls.registry)) as connection:
        await connection.execute("UPDATE registry.tenant_quota SET zone = 'Mars/Olympus', version = 2 WHERE tenant = 'bad'")
    other = registry_of(engine, tmp_path)
    await other.load()

    assert [tenant.id for tenant in other.tenants()] == ["good"]


async def test_examples_never_come_over_an_operators_work(registry: Registry):
    """Seeding creates what never was, and touches neither an edited nor a deleted tenant."""
    await registry.seed({"a": {"tpm": 1}, "b": {"tpm": 1}})
    await registry.patch("a", {"tpm": 7}, if_match=1, operator=OP)
    await registry.delete("b", if_match=1, operator=OP)
    await registry.seed({"a": {"tpm": 1}, "b": {"tpm": 1}, "c": {"tpm": 3}})

    assert [(tenant.id, tenant.quota.tpm, tenant.version) for tenant in registry.tenants()] == [("a", 7, 2), ("c", 3, 1)]


async def test_one_id_in_two_spellings_is_one_tenant(registry: Registry):
    """A composed and a decomposed id name the same tenant in every call."""
    await registry.put("cafe\u0301", {"tpm": 1}, if_match=None, operator=OP)
    await registry.patch("caf\u00e9", {"tpm": 2}, if_match=1, operator=OP)

    assert [tenant.id for tenant in registry.tenants()] == ["caf\u00e9"]
    assert len(await registry.history("cafe\u0301")) == 2


async def test_history_is_read_in_pages(registry: Registry):
    """History comes newest first, a page at a time; a tenant that never was has none."""
    await registry.put("a", {"tpm": 1}, if_match=None, operator=OP)
    for version in range(1, 5):
        await registry.patch("a", {"tpm": version + 1}, if_match=version, operator=OP)

    assert [line.version for line in await registry.history("a", most=2)] == [5, 4]
    assert [line.version for line in await registry.history("a", below=4, most=2)] == [3, 2]
    assert await registry.history("a", below=1) == []
    with pytest.raises(NotFound):
        await registry.history("never")


async def test_a_caller_who_leaves_does_not_undo_a_change(registry: Registry):
    """A change whose caller is cancelled is done wholly or not at all, and the next change sees which."""
    await registry.put("a", {"tpm": 1}, if_match=None, operator=OP)
    leaving = asyncio.create_task(registry.patch("a", {"tpm": 2}, if_match=1, operator=OP))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    lines = await registry.history("a")
    newest = lines[0].version

    assert (await registry.patch("a", {"tpm": 3}, if_match=newest, operator=OP)).version == newest + 1


@pytest.mark.slow
async def test_one_change_among_fifty_thousand_tenants_is_one_row_for_everybody(
    engine: AsyncEngine, tmp_path: Path, database_urls: DatabaseUrls
):
    """The replica that makes it uses it at once, another within a second, and neither reads the other tenants again."""
    await rows_of(
        database_urls.owner,
        "INSERT INTO registry.tenant_quota (tenant, version, deleted, tpm, rate_factors, costs, sla_class, region, zone, updated)"
        " SELECT 't' || n, 1, false, 100, '{}', '{}', 'standard', '', 'UTC', now() FROM generate_series(1, 50000) n RETURNING 1",
    )
    here, elsewhere = (registry_of(engine, tmp_path) for _ in range(2))
    await here.load()
    async with following(elsewhere):
        await until(lambda: elsewhere.tenant("t50000") is not None, within_s=60)
        untouched = elsewhere.tenant("t1")

        await here.patch("t777", {"tpm": 200}, if_match=1, operator=OP)

        assert here.tenant("t777").facts["tpm"] == 200
        await until(lambda: elsewhere.tenant("t777").version == 2, within_s=1)
        assert elsewhere.tenant("t1") is untouched
