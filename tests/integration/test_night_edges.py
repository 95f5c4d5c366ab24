"""Nights of which somebody destroyed or moved what was recorded at their edges, in a real PostgreSQL."""

from collections.abc import Mapping
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import pytest

from app.audit.format.export_file import lines
from app.audit.reading.export import Wanted
from app.instants import Period
from app.reports.clauses.clause import VERDICTS
from app.reports.clauses.judging import judge_all
from app.reports.clauses.loading import load_clauses
from app.reports.clauses.measures import MEASURES, measure
from app.reports.evidence.context import context_of
from app.reports.evidence.facts import Evidence
from app.reports.evidence.gather import gather
from app.reports.evidence.integrity import closing_of, integrity_of
from tests.fixtures.log import GrownLog
from tests.fixtures.night import DECLARED, NIGHT, NOON, eventful, read

BEFORE, AFTER = 5, 5
"""Entries of the days before and after."""
DAY = timedelta(days=1)
GOOD = ("met", "not_applicable", "partly")


async def evidence_of(grown_log: GrownLog, folder: Path, joins: int | None = None) -> Evidence:
    """As reports are made."""
    exported = await grown_log.log.export(Wanted(Period(NIGHT.begin, NIGHT.closes), or_nothing=True, joins=joins), operator="auditor")
    path = folder / "log.jsonl"
    with path.open("wb") as file:
        async with aclosing(exported.lines) as pieces:
            async for piece in pieces:
                file.write(piece.lines)
    integrity = integrity_of(path, grown_log.keys.root, grown_log.clock)
    async with grown_log.engine.connect() as connection:
        context = await context_of(connection, NIGHT, closing_of(integrity))
    with path.open("rb") as file:
        return gather(lines(file), NIGHT, integrity, context, declared=DECLARED)


def verdicts(evidence: Evidence) -> Mapping[str, str]:
    """Of all clauses."""
    clauses = load_clauses(MEASURES)
    judged = (*judge_all(clauses.mlps, measure(evidence)), *judge_all(clauses.gdpr, measure(evidence)))
    return {one.clause.id: one.verdict for one in judged}


@pytest.fixture
async def night(grown_log: GrownLog) -> GrownLog:
    """A log with an eventful night between two quiet ones."""
    await grown_log.add(*(read(NOON - DAY) for _ in range(BEFORE)), *eventful(), *(read(NOON + DAY) for _ in range(AFTER)))
    grown_log.clock.step_utc(NOON + 2 * DAY - grown_log.clock.utcnow())
    await grown_log.sign()
    return grown_log


DAMAGES = {
    "first bodies": ("DELETE FROM audit.body WHERE seq BETWEEN 5 AND 9", "gap"),
    "last bodies": ("DELETE FROM audit.body WHERE seq BETWEEN 20 AND 34", "gap"),
    "all bodies": ("DELETE FROM audit.body WHERE seq BETWEEN 5 AND 34", "gap"),
    "last leaves moved": ("UPDATE audit.leaf SET recorded = '2026-12-20Z' WHERE seq BETWEEN 20 AND 34", "tampered"),
    "first leaves moved": ("UPDATE audit.leaf SET recorded = '2026-10-20Z' WHERE seq BETWEEN 5 AND 9", "tampered"),
    "all leaves moved on": ("UPDATE audit.leaf SET recorded = '2026-12-20Z' WHERE seq BETWEEN 5 AND 34", "tampered"),
    "all leaves moved back": ("UPDATE audit.leaf SET recorded = '2026-10-20Z' WHERE seq BETWEEN 5 AND 34", "tampered"),
    "last leaves hashed anew": (
        "UPDATE audit.leaf SET recorded = '2026-12-20Z', leaf_hash = body_hash WHERE seq BETWEEN 20 AND 34",
        "tampered",
    ),
    "last leaves": ("DELETE FROM audit.leaf WHERE seq BETWEEN 20 AND 34", "tampered"),
    "all leaves": ("DELETE FROM audit.leaf WHERE seq BETWEEN 5 AND 34", "tampered"),
}


@pytest.mark.parametrize(("damage", "verdict"), DAMAGES.values(), ids=DAMAGES)
async def test_nothing_is_hidden_at_the_edges_of_a_night(night: GrownLog, tmp_path: Path, damage: str, verdict: str):
    """Whatever is destroyed or moved, the log is not whole, and no clause is judged better than without."""
    before = verdicts(await evidence_of(night, tmp_path))
    await night.damage(damage)
    evidence = await evidence_of(night, tmp_path)
    after = verdicts(evidence)

    assert evidence.integrity.report.verdict == verdict
    better = {
        name: (before[name], after[name])
        for name in before
        if after[name] in GOOD and (before[name] not in GOOD or GOOD.index(after[name]) < GOOD.index(before[name]))
    }
    assert better == {}
    assert set(after.values()) <= set(VERDICTS)


async def test_what_stands_beside_a_body_decides_nothing(night: GrownLog, tmp_path: Path):
    """Its time is not hashed: the one of its leaf is, and counts."""
    await night.damage("UPDATE audit.body SET recorded = '2026-12-20Z' WHERE seq BETWEEN 20 AND 34")
    evidence = await evidence_of(night, tmp_path)

    assert (evidence.integrity.report.verdict, evidence.entries, evidence.first, evidence.end) == ("whole", 30, 5, 35)


async def test_a_night_begins_where_the_one_before_ended(night: GrownLog):
    """What was moved far from both is in one of them, and found there."""
    exported = await night.log.export(Wanted(Period(NIGHT.end, NIGHT.next().closes), or_nothing=True, joins=20), operator="auditor")
    async with aclosing(exported.lines):
        header = exported.header

    assert (header.first, header.end) == (20, 40)
