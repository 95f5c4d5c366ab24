"""The reports of a large night: how long making and checking them takes, and how much memory."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg

from app.access import ADMIN, DATABASE, Access
from app.audit.records.access import RequestFacts, policy_refusal, sensitive_access
from app.audit.records.entry import Entry
from app.audit.records.summary import decisions_minute
from app.database import conninfo
from app.reports.nights.night import LATE, Night
from bench.report import Finding
from bench.rows import Run
from bench.stage import Stage

ENTRIES = 100_000
DECISIONS = 1_000_000
SUMMARIES = 10_000
REFUSALS = 20_000
TENANTS, MODELS, PEOPLE = 20, ("mdl-fin-risk-v3", "mdl-pii-classifier", "llama-3-8b"), 500
MADE_S = 120.0
MEMORY_MIB = 500.0
CHECKED_S = 10.0
SEQUENCED_S = 300.0
LOOK_S = 0.2
MIB = 1024

_INSERT = "INSERT INTO audit.intake (id, retention, recorded, body) VALUES (%s, %s, %s, %s)"


@dataclass(frozen=True, slots=True)
class Used:
    """What a program took."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def report(stage: Stage, run: Run) -> list[Finding]:
    """Of a log whose yesterday is as large as a night may be."""
    del run  # once: a night is made once
    night = Night.containing(datetime.now(UTC) - LATE, "UTC").previous()
    with stage.new_sluice("Sluice with a large night", engines=[], settings={"report": {"at": "off"}}) as sluice:
        access = Access(sluice.var / "secrets")
        _fill(access.url(ADMIN, DATABASE), night)
        common = ["--var", str(sluice.var), "--config", str(sluice.file)]
        made = _used("report", "nightly", "--date", str(night.day), *common)
        folder = sluice.var / "reports" / f"{night.name}-1"
        root = sluice.var / "report-keys" / "root.pem"
        checked = _used("report", "verify", str(folder / "manifest.json"), "--root", str(root))
        size = sum(path.stat().st_size for path in folder.iterdir()) / MIB / MIB
    note = f"{DECISIONS} decisions in {SUMMARIES} summaries, {ENTRIES} entries; {made.cpu_s:.1f} s of a core; {size:.0f} MiB on disk"
    return [
        Finding("report", "a large night", made.wall_s, "s", budget=MADE_S, note=note),
        Finding("report", "its memory at most", made.peak_mib, "MiB", budget=MEMORY_MIB),
        Finding("report", "all of it verified", checked.wall_s, "s", budget=CHECKED_S, note=f"{checked.cpu_s:.1f} s of a core"),
    ]


def entries(night: Night) -> Iterator[Entry]:
    """The night's entries, in order of time."""
    step = (night.end - night.begin) / ENTRIES
    for number in range(ENTRIES):
        at = night.begin + step * number
        if number % (ENTRIES // SUMMARIES) == 0:
            minute = at.replace(second=0, microsecond=0)
            yield decisions_minute(
                recorded=max(at, minute + timedelta(seconds=1)),
                minute=minute,
                tenant=f"tenant-{number % TENANTS}",
                model=MODELS[number % len(MODELS)],
                outcome="allow" if number % 40 else "quota",
                count=DECISIONS // SUMMARIES,
                replica="bench",
            )
        elif number % (ENTRIES // REFUSALS) == 1:
            yield policy_refusal(_facts(number), recorded=at, reasons=[{"code": "model_forbidden", "rule": "sensitive_models"}])
        else:
            yield sensitive_access(_facts(number), "allowed", recorded=at, retention_days=365)


def _facts(number: int) -> RequestFacts:
    return RequestFacts(
        operator=f"gateway-{number % 3}",
        tenant=f"tenant-{number % TENANTS}",
        model=MODELS[0],
        decision_id=f"0192aaaa-0000-7000-8000-{number:012x}",
        policy_revision="r1",
        action="infer",
        quota_version=1,
        subject=f"p1:{number % PEOPLE:064x}",
        purpose="credit-risk",
    )


def _fill(url: str, night: Night) -> None:
    """Hand the night over, and wait until it is in the log."""
    with psycopg.connect(conninfo(url), autocommit=True) as connection:
        with connection.cursor() as cursor, connection.transaction():
            cursor.executemany(_INSERT, ((one.id, one.retention, one.recorded, one.body) for one in entries(night)))
        deadline = time.perf_counter() + SEQUENCED_S
        while connection.execute("SELECT FROM audit.intake LIMIT 1").fetchone() is not None:
            if time.perf_counter() > deadline:
                raise RuntimeError(f"report: the night was not in the log after {SEQUENCED_S:.0f} s")
            time.sleep(LOOK_S)


def _used(*arguments: str) -> Used:
    """Run `sluice ARGUMENTS` to its end. Raises RuntimeError where it does not end well."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "app.cli", *arguments], cwd=Path(__file__).parents[2], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"sluice {' '.join(arguments)}: ended with {process.returncode}")
    return Used(time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / MIB)
