"""Many processes that change quotas at once: every change is a version and an entry, and the log has each of them once."""

import asyncio
import multiprocessing
from multiprocessing.synchronize import Barrier
from pathlib import Path

import psycopg
import pytest

from app.audit.format.leaf import GENESIS
from app.audit.sequencing.sequencer import Sequencer
from app.clock import ManualClock
from app.database import DatabaseUrls, conninfo, create_engine
from app.errors import NotFound, PreconditionFailed
from app.quota.registry import Registry
from app.setting_sections import DatabaseSettings
from tests.fixtures.postgres import rows_of
from tests.fixtures.registry import registry_of
from tests.fixtures.whole_log import size_of_whole_log

PROCESSES = 8
CHANGES = 200  # of each process
TENANTS = 8  # each process goes round them all, so they meet all the time
PATIENT = DatabaseSettings(timeout_ms=30_000, pool_size=2)  # eight processes share a machine with whatever runs beside


@pytest.mark.timeout(300)  # half a minute where nothing else runs
async def test_eight_processes_leave_one_chain(database_urls: DatabaseUrls, sequencer_url: str, tmp_path: Path):
    """From empty tables on, 1600 changes by 8 processes are 1600 versions and entries without an error; in the log they are one chain."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(PROCESSES, _begin_together, (context.Barrier(PROCESSES),)) as pool:
        work = [(database_urls.registry, tmp_path, number) for number in range(PROCESSES)]
        conflicts = await asyncio.to_thread(pool.starmap, _change, work, 1)

    assert sum(conflicts) > 0, "nobody met anybody"
    lines = await rows_of(database_urls.owner, "SELECT tenant, version, after ->> 'tpm' FROM registry.quota_history")
    heads = dict(await rows_of(database_urls.owner, "SELECT tenant, version FROM registry.tenant_quota"))
    assert sum(heads.values()) == len(lines) == len({tpm for *_, tpm in lines}) == PROCESSES * CHANGES
    assert {(tenant, version) for tenant, newest in heads.items() for version in range(1, newest + 1)} == {line[:2] for line in lines}
    entries = "SELECT body ->> 'tenant', (body ->> 'quota_version')::bigint, body #>> '{after,tpm}' FROM (SELECT convert_from(body, 'UTF8')::json AS body FROM %s) AS it"
    assert sorted(await rows_of(database_urls.owner, entries % "audit.intake")) == sorted(lines)

    await _sequence_all(sequencer_url)

    assert await size_of_whole_log(database_urls.owner) == PROCESSES * CHANGES
    assert sorted(await rows_of(database_urls.owner, entries % "audit.body")) == sorted(lines)
    chain = [link for (link,) in await rows_of(database_urls.owner, "SELECT chain_hash FROM audit.leaf ORDER BY seq")]
    previous = [GENESIS, *chain[:-1]]
    assert len(set(previous)) == PROCESSES * CHANGES
    assert previous.count(GENESIS) == 1


def _begin_together(barrier: Barrier) -> None:
    """Runs in each process: none starts before all are there."""
    barrier.wait(timeout=60)


def _change(url: str, folder: Path, number: int) -> int:
    """Make CHANGES changes as process `number`, each to another tenant than the one before; how often somebody else was first."""
    return asyncio.run(_change_quotas(url, folder, number))


async def _change_quotas(url: str, folder: Path, number: int) -> int:
    engine = create_engine(url, PATIENT)
    registry = registry_of(engine, folder, timeout_ms=PATIENT.timeout_ms)
    conflicts = done = 0
    while done < CHANGES:
        try:
            await _one_change(registry, f"t{(number + done) % TENANTS}", tpm=number * CHANGES + done + 1, operator=f"op{number}")
            done += 1
        except PreconditionFailed:
            conflicts += 1
            await registry.load()
    await engine.dispose()
    return conflicts


async def _one_change(registry: Registry, tenant: str, *, tpm: int, operator: str) -> None:
    known = registry.tenant(tenant)
    try:
        await registry.patch(tenant, {"tpm": tpm}, if_match=known.version if known else 1, operator=operator, reason=f"to {tpm}")
    except NotFound:
        await registry.put(tenant, {"tpm": tpm}, if_match=None, operator=operator, must_be_new=True)


async def _sequence_all(url: str) -> None:
    sequencer = Sequencer(ManualClock(), most_rows=300)  # several batches
    async with await psycopg.AsyncConnection.connect(conninfo(url), autocommit=True) as connection:
        while (await sequencer.sequence(connection)).full:
            pass
