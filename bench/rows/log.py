"""The log: entries made durable and sequenced, how long a writer waits, and how fast an export is checked without the log."""

import asyncio
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median, quantiles

import psycopg

from app.access import Access
from app.audit.intake.gaps import Gaps
from app.audit.intake.intake import Intake
from app.audit.records.entry import Entry, make_entry
from app.audit.verification.verify import verify
from app.clock import SystemClock
from app.database import DatabaseUrls, conninfo, create_engine
from app.observability.metrics import Metrics
from app.setting_sections import DatabaseSettings
from bench.export import Export, export
from bench.report import Finding
from bench.rows import Run
from bench.stage import Stage

ENTRIES = 30_000
PER_TRANSACTION = 50
"""What a writer under load hands over at a time."""
WRITERS = 4
ENTRY_US = 200.0
"""5 000 entries a second."""
DONE_S = 60.0
LOOK_S = 0.01
ACKNOWLEDGED = 1000
TOGETHER = 8
CHECKED_US = 20.0
"""50 000 entries a second."""
CHECKED = 50_000
PER_CHECKPOINT = 100
GO = Path(".tools/sluice-verify")

_PLAIN = "registry.bench_plain"
_TABLE = f"CREATE TABLE {_PLAIN} (id uuid PRIMARY KEY, retention text NOT NULL, recorded timestamptz NOT NULL, body bytea NOT NULL)"
_INSERT = "INSERT INTO {} (id, retention, recorded, body) VALUES (%s, %s, %s, %s)"


def log(stage: Stage, run: Run) -> list[Finding]:
    """On the PostgreSQL of a Sluice that nobody else asks, whose process of the log sequences and signs meanwhile."""
    with stage.new_sluice("Sluice with a log", engines=[]) as sluice:
        urls = Access(sluice.var / "secrets").urls()
        rounds = [(_plain_us(urls), _logged_us(urls)) for _ in range(run.rounds)]
        acknowledged = asyncio.run(_acknowledged(urls))
    return [_durable(rounds), *_waits(acknowledged), *_checks(run)]


def _durable(rounds: list[tuple[float, float]]) -> Finding:
    plain, logged = median(one for one, _ in rounds), median(one for _, one in rounds)
    ratios = [logged / plain for plain, logged in rounds]
    note = f"{1e6 / logged:.0f} entries/s from handed over to in the tree, {PER_TRANSACTION} a transaction, {WRITERS} writers; {logged / plain:.2f} × the table alone"
    return Finding("log", "a durable entry", logged, "µs", "a bare table", plain, None, (min(ratios), max(ratios)), ENTRY_US, note)


def _waits(times_ms: list[float]) -> list[Finding]:
    note = f"{len(times_ms)} entries, {TOGETHER} writers, one entry a transaction, sequenced meanwhile"
    cuts = quantiles(times_ms, n=100)
    return [
        Finding("log", "acknowledgement, p50", cuts[49], "ms", note=note),
        Finding("log", "acknowledgement, p99", cuts[98], "ms"),
    ]


def entries(count: int) -> list[Entry]:
    """Policy refusals, as a load on the log has most."""
    reasons = [{"code": "model_forbidden", "rule": "sensitive_models"}]
    began = datetime.now(UTC)
    return [
        make_entry(
            "policy.refusal",
            recorded=began + timedelta(microseconds=number),
            operator="gateway",
            tenant=f"tenant-{number % 20}",
            outcome="refused",
            details={
                "decision_id": f"0190a0b0-0000-7000-8000-{number:012d}",
                "model": "llama-3-8b",
                "policy_revision": "0123456789abcdef",
                "quota_version": 3,
                "subject": f"p1:{number:064x}",
                "reasons": reasons,
            },
        )
        for number in range(count)
    ]


def _plain_us(urls: DatabaseUrls) -> float:
    """What one row takes where it only has to be durable."""
    with psycopg.connect(conninfo(urls.owner), autocommit=True) as connection:
        connection.execute(_TABLE)
        try:
            rows, start = entries(ENTRIES), time.perf_counter()
            _write(urls.owner, _PLAIN, rows)
            return (time.perf_counter() - start) / ENTRIES * 1e6
        finally:
            connection.execute(f"DROP TABLE {_PLAIN}")


def _logged_us(urls: DatabaseUrls) -> float:
    """What one entry takes from its writer to its leaf."""
    rows, before, start = entries(ENTRIES), _size(urls), time.perf_counter()
    _write(urls.intake, "audit.intake", rows)
    while _size(urls) < before + ENTRIES:
        if time.perf_counter() - start > DONE_S:
            raise RuntimeError(f"log: {_size(urls) - before} of {ENTRIES} entries were sequenced within {DONE_S:g} s")
        time.sleep(LOOK_S)
    return (time.perf_counter() - start) / ENTRIES * 1e6


def _write(url: str, table: str, rows: list[Entry]) -> None:
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(partial(_write_share, url, table), (rows[number::WRITERS] for number in range(WRITERS))))


def _write_share(url: str, table: str, rows: list[Entry]) -> None:
    with psycopg.connect(conninfo(url), options="-c synchronous_commit=on") as connection:
        for first in range(0, len(rows), PER_TRANSACTION):
            with connection.transaction(), connection.cursor() as cursor:
                share = rows[first : first + PER_TRANSACTION]
                cursor.executemany(_INSERT.format(table), [(one.id, one.retention, one.recorded, one.body) for one in share])


def _size(urls: DatabaseUrls) -> int:
    with psycopg.connect(conninfo(urls.log)) as connection:
        return int(connection.execute("SELECT size FROM audit.head").fetchall()[0][0])


async def _acknowledged(urls: DatabaseUrls) -> list[float]:
    """Milliseconds that each writer of one entry waited until it was committed."""
    engine = create_engine(urls.intake, DatabaseSettings(pool_size=TOGETHER))
    intake = Intake(engine, Metrics(), Gaps(SystemClock()), timeout_ms=5000)
    queue, times = iter(entries(ACKNOWLEDGED)), []

    async def writer() -> None:
        for entry in queue:
            start = time.perf_counter()
            await intake.write(entry)
            times.append((time.perf_counter() - start) * 1000)

    await asyncio.gather(*(writer() for _ in range(TOGETHER)))
    await engine.dispose()
    return times[TOGETHER:]  # the first ones opened the connections


def _checks(run: Run) -> list[Finding]:
    """What the verifiers take for one entry of an export with a checkpoint every PER_CHECKPOINT entries."""
    made = export(entries(CHECKED), every=PER_CHECKPOINT)
    python = [_timed_us(partial(_check, made)) for _ in range(run.rounds)]
    peer = None
    if GO.exists():
        with tempfile.TemporaryDirectory() as folder:
            file, root = Path(folder) / "export.jsonl", Path(folder) / "root.pem"
            file.write_bytes(b"".join(made.lines))
            root.write_text(made.root.pem)
            command = [str(GO), "--export", str(file), "--root", str(root)]
            peer = median(_timed_us(lambda: subprocess.run(command, check=True, capture_output=True)) for _ in range(run.rounds))
    value = median(python)
    note = f"{1e6 / value:.0f} entries/s, a checkpoint every {PER_CHECKPOINT}"
    return [Finding("log", "checking an entry offline", value, "µs", "in Go", peer, None, (min(python), max(python)), CHECKED_US, note)]


def _check(made: Export) -> None:
    report = verify(made.lines, made.root)
    if report.verdict != "whole":
        raise RuntimeError(f"log: the export that was made for checking is {report.verdict}: {report.findings[:3]}")


def _timed_us(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) / CHECKED * 1e6
