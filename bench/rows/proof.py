"""Proofs from a log of a million entries: how large they are and how long they take."""

import asyncio
import random
import time
from datetime import UTC, datetime
from statistics import median, quantiles
from uuid import UUID

import psycopg
from psycopg import sql

from app.access import ADMIN, Access
from app.audit.format.leaf import HASH_BYTES, leaf_hash
from app.audit.format.merkle import Frontier, consistency_spans, inclusion_spans, root_by_inclusion
from app.audit.reading import hashes
from app.audit.sequencing.queries import QUERIES
from app.audit.sequencing.sequencer import LEAF_TYPES
from app.database import LOG, OWNER, conninfo, create_engine, give_database
from app.schema import migrate
from app.setting_sections import DatabaseSettings
from bench.report import Finding
from bench.rows import Run
from bench.stage import Stage

MILLION = 1_000_000
PROOFS = 200
DATABASE = "bench_million"
RECORDED = datetime(2026, 11, 1, tzinfo=UTC)


def proof(stage: Stage, run: Run) -> list[Finding]:
    """A log in a database of its own, of leaves alone: a proof reads no body."""
    with stage.new_sluice("Sluice with a large log", engines=[]) as sluice:
        access = Access(sluice.var / "secrets")
        root = asyncio.run(_fill(access))
        inclusion, consistency, steps = asyncio.run(_prove(access, root, run.rounds * PROOFS))
    size = f"{steps} hashes, {steps * HASH_BYTES} bytes, at the most"
    return [
        _finding("inclusion proof at 10^6 entries", inclusion, size),
        _finding("consistency proof at 10^6 entries", consistency, "from a random older size"),
    ]


def _finding(what: str, times_ms: list[float], note: str) -> Finding:
    return Finding("proof", what, median(times_ms), "ms", note=f"{note}; p99 {quantiles(times_ms, n=100)[98]:.2g} ms of {len(times_ms)}")


async def _fill(access: Access) -> bytes:
    """Make the database with MILLION leaves; the root over them."""
    async with await psycopg.AsyncConnection.connect(conninfo(access.url(ADMIN, "postgres")), autocommit=True) as connection:
        await connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
        await give_database(connection, DATABASE)
    owner = access.url(OWNER, DATABASE)
    await migrate(owner)
    frontier, subtrees = Frontier(), []
    async with await psycopg.AsyncConnection.connect(conninfo(owner)) as connection, connection.cursor() as cursor:
        async with cursor.copy(QUERIES["copy_leaves"]) as copy:
            copy.set_types(LEAF_TYPES)
            for seq in range(MILLION):
                leaf = _leaf(seq)
                subtrees += [(one.level, one.index, hashed) for one, hashed in frontier.append(leaf) if one.stored]
                await copy.write_row((seq, UUID(int=seq), RECORDED, "d400", leaf, leaf, leaf))
        await cursor.executemany("INSERT INTO audit.subtree (level, index, hash) VALUES (%s, %s, %s)", subtrees)
        await cursor.execute("UPDATE audit.head SET size = %s, frontier = %s", [MILLION, frontier.packed])
    return frontier.root()


def _leaf(seq: int) -> bytes:
    return leaf_hash(b"%d" % seq)


async def _prove(access: Access, root: bytes, count: int) -> tuple[list[float], list[float], int]:
    """Milliseconds for each proof of each kind, all of inclusion checked, and the most steps that one had."""
    engine = create_engine(access.url(LOG, DATABASE), DatabaseSettings())
    drawn = random.Random(1)
    inclusion, consistency, steps = [], [], 0
    async with engine.connect() as connection:
        await hashes.spans(connection, inclusion_spans(0, MILLION))  # the first one prepares the statements
        for _ in range(count):
            seq, start = drawn.randrange(MILLION), time.perf_counter()
            path = await hashes.spans(connection, inclusion_spans(seq, MILLION))
            inclusion.append((time.perf_counter() - start) * 1000)
            if root_by_inclusion(_leaf(seq), seq, MILLION, path) != root:
                raise RuntimeError(f"proof: the proof of entry {seq} does not lead to the root")
            steps = max(steps, len(path))
            start = time.perf_counter()
            await hashes.spans(connection, consistency_spans(drawn.randrange(1, MILLION), MILLION))
            consistency.append((time.perf_counter() - start) * 1000)
    await engine.dispose()
    return inclusion, consistency, steps
