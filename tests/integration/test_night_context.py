"""What the reports of a night read of the older log, in a real PostgreSQL."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import pytest

from app.audit.format.checkpoint import Checkpoint
from app.audit.format.export_file import lines
from app.audit.reading.checkpoints import newest
from app.audit.reading.export import Wanted
from app.audit.reading.proofs import inclusion
from app.audit.records.entry import Entry
from app.audit.records.policy import policy_activated
from app.database import DatabaseDown, create_engine
from app.instants import Period
from app.observability.metrics import Metrics
from app.reports.evidence import context, proven, retention
from app.reports.evidence.context import Context, context_of
from app.reports.evidence.facts import Closing, RetentionClass
from app.reports.evidence.gather import gather
from app.reports.evidence.integrity import integrity_of
from app.reports.nights.night import Night
from app.setting_sections import DatabaseSettings
from app.transaction import Transactions
from tests.fixtures.log import GrownLog
from tests.fixtures.night import (
    NIGHT,
    NOON,
    allowed,
    answer,
    approval,
    breach,
    cancelled,
    confirmed,
    eventful,
    moved,
    quota,
    read,
    refused,
    request,
    summary,
    unconfirmed,
    unmet,
    without_quota,
)

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
BEFORE = NOON - DAY


async def context_in(grown_log: GrownLog, night: Night = NIGHT, *, accepted: bool = True) -> Context:
    async with grown_log.engine.connect() as connection:
        signed = await newest(connection)
        return await context_of(connection, night, Closing(signed.tree_head, signed.note) if accepted else None)


async def add_signed(grown_log: GrownLog, *entries: Entry) -> None:
    """These in the log, signed at an instant after all of them."""
    grown_log.clock.step_utc(max(entry.recorded for entry in entries) - grown_log.clock.utcnow() + DAY)
    await grown_log.add(*entries)
    await grown_log.sign()


def numbers(found: Context, group: str) -> list[int]:
    return [entry.seq for entry in found.older[group]]


async def test_older_days_say_what_still_stands(grown_log: GrownLog):
    """Requests, breaches and approvals of any earlier day, in the order of the log; of the day itself the export has them."""
    await add_signed(
        grown_log,
        request("r", NOON - 20 * DAY),
        breach("b", NOON - 10 * DAY),
        approval("asked", "a", "anna", BEFORE),
        approval("approved", "a", "ben", BEFORE),
        answer("r", BEFORE),
        request("s", NOON),
        approval("asked", "z", "anna", NOON),
        read(BEFORE),
    )
    found = await context_in(grown_log)

    assert [numbers(found, group) for group in ("requests", "breaches", "approvals")] == [[0, 4], [1], [2, 3]]
    assert (found.unproven, found.cut) == ([], frozenset())


async def test_tenants_are_those_with_a_quota_when_the_night_ended(grown_log: GrownLog):
    """Created and not deleted, until then; one that came back has one again."""
    await add_signed(
        grown_log,
        quota("gone", NOON - 9 * DAY),
        quota("back", NOON - 8 * DAY),
        quota("stays", NOON - 7 * DAY),
        without_quota("gone", BEFORE),
        without_quota("back", BEFORE),
        quota("back", NOON),
        quota("later", NIGHT.end + MINUTE),
        without_quota("stays", NIGHT.end + MINUTE),
    )

    assert (await context_in(grown_log)).tenants == ["back", "stays"]


async def test_accesses_that_the_day_before_left_open_are_found(grown_log: GrownLog):
    """Not those that were confirmed, cancelled or told as incidents in its own report, nor older ones, nor those of the day."""
    last = NIGHT.begin - MINUTE
    await add_signed(
        grown_log,
        unconfirmed(1, BEFORE - DAY),
        unconfirmed(2, last),
        unconfirmed(3, last),
        unconfirmed(4, last),
        unconfirmed(5, last),
        allowed(6, last),
        unconfirmed(7, last),
        confirmed(3, NIGHT.begin + 14 * MINUTE),
        cancelled(4, last),
        unmet(5, last),
        confirmed(7, NIGHT.begin + 15 * MINUTE),
        unconfirmed(8, NOON),
    )

    assert numbers(await context_in(grown_log), "unconfirmed") == [1, 6]


async def test_retention_classes_say_since_when_they_have_something(grown_log: GrownLog):
    """By days, with the oldest body and how many there are until the day's end; a class that has only later ones has none."""
    await add_signed(
        grown_log,
        read(NOON - 40 * DAY),
        allowed(1, BEFORE),
        allowed(2, NOON),
        unconfirmed(3, NIGHT.end + MINUTE),
        read(NOON),
    )

    assert list((await context_in(grown_log)).retention) == [
        RetentionClass("d365", 365, "2026-11-28T04:00:00.000000Z", 2, 1),
        RetentionClass("d400", 400, "2026-10-20T04:00:00.000000Z", 2, 0),
        RetentionClass("d730", 730, None, 0),
    ]


async def test_bodies_of_a_log_too_large_to_count_are_unknown(grown_log: GrownLog, monkeypatch: pytest.MonkeyPatch):
    """A report does not wait for a number; all the rest is there."""
    await add_signed(grown_log, allowed(1, BEFORE))
    monkeypatch.setattr(retention, "_COUNT", retention.text("SELECT 'd365' AS name, pg_sleep(5)::text AS bodies WHERE :before IS NOT NULL"))
    monkeypatch.setattr(retention, "_QUICKLY", retention.text("SELECT set_config('statement_timeout', '5', true)"))

    assert [(one.entries, one.seq) for one in (await context_in(grown_log)).retention] == [(None, 0)]


@pytest.mark.parametrize(
    ("damage", "left", "unproven"),
    [
        ("UPDATE audit.body SET body = replace(convert_from(body, 'UTF8'), 'dora', 'eve!')::bytea WHERE seq = 1", [0, 2], [1]),
        ("UPDATE audit.leaf SET body_hash = decode(repeat('ab', 32), 'hex') WHERE seq = 1", [0, 2], [1]),
        ("UPDATE audit.leaf SET leaf_hash = decode(repeat('ab', 32), 'hex') WHERE seq = 3", [], [0, 1, 2]),
        ("DELETE FROM audit.leaf WHERE seq = 3", [], [0, 1, 2]),
    ],
)
async def test_what_no_proof_leads_from_is_left_out_and_named(grown_log: GrownLog, damage: str, left: list[int], unproven: list[int]):
    """An altered entry says nothing; where a hash beside it is altered or gone nobody can tell whether it is the one that was signed."""
    await add_signed(grown_log, *(request(f"r{number}", BEFORE) for number in range(3)), read(BEFORE))
    await grown_log.damage(damage)
    found = await context_in(grown_log)

    assert (numbers(found, "requests"), set(unproven) <= set(found.unproven)) == (left, True)
    assert "requests" in found.cut


async def test_without_an_accepted_checkpoint_nothing_older_is_proven(grown_log: GrownLog):
    """What closes the export was refused: older entries are named, and say nothing."""
    await add_signed(grown_log, request("r", BEFORE), quota("acme", BEFORE))
    found = await context_in(grown_log, accepted=False)

    assert (found.tenants, numbers(found, "requests"), found.unproven, found.proofs) == ([], [], [0, 1], {})
    assert found.cut == {"tenants", "requests", "breaches", "approvals", "unconfirmed", "incidents", "retention", "rules"}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE audit.leaf SET recorded = '2026-10-01Z' WHERE seq = 0",
        "UPDATE audit.body SET body = body || ' '::bytea WHERE seq = 0",
        "DELETE FROM audit.leaf WHERE seq = 0",
    ],
)
async def test_the_oldest_body_of_a_class_is_proven(grown_log: GrownLog, damage: str):
    """What is kept since when is not known from a row that anybody could have written."""
    await add_signed(grown_log, read(NOON - 40 * DAY), read(BEFORE))
    await grown_log.damage(damage)
    found = await context_in(grown_log)

    assert [(one.name, one.oldest, one.seq) for one in found.retention] == [("d400", None, None)]
    assert (found.unproven, found.cut) == ([0], {"retention"})


async def test_older_entries_come_with_their_proofs(grown_log: GrownLog):
    """The same text as that of `sluice audit proof`, for the same checkpoint."""
    await add_signed(grown_log, request("r", BEFORE), read(BEFORE), quota("acme", BEFORE))
    found = await context_in(grown_log)
    async with grown_log.engine.connect() as connection:
        expected = {seq: (await inclusion(connection, seq)).file for seq in range(3)}

    assert found.proofs == expected


async def test_what_stands_beside_a_body_only_finds_it(grown_log: GrownLog):
    """Columns that were altered make no tenant of a read, no older request of one of the day, and no waiting access of a refused one."""
    await add_signed(grown_log, read(BEFORE), request("r", NOON), refused(1, BEFORE), quota("acme", BEFORE))
    await grown_log.damage("UPDATE audit.body SET kind = 'quota.in_force', tenant = 'ghost' WHERE seq = 0")
    await grown_log.damage("UPDATE audit.body SET recorded = '2026-11-01Z' WHERE seq = 1")
    found = await context_in(grown_log)

    assert (found.tenants, numbers(found, "requests"), numbers(found, "unconfirmed")) == (["acme"], [], [])


async def test_more_than_a_report_reads_is_told(grown_log: GrownLog, monkeypatch: pytest.MonkeyPatch):
    """The newest are read, and that there are more."""
    monkeypatch.setattr(context, "MOST_OLDER", 2)
    await add_signed(grown_log, *(request(f"r{number}", BEFORE) for number in range(3)), breach("b", BEFORE))
    found = await context_in(grown_log)

    assert (numbers(found, "requests"), found.cut) == ([1, 2], {"requests"})


async def test_many_entries_are_proven_in_a_few_statements(
    grown_log: GrownLog, rows_read: Callable[[], tuple[int, int]], monkeypatch: pytest.MonkeyPatch
):
    """Hundreds of proofs share what they read of the tree."""
    monkeypatch.setattr(proven, "AT_ONCE", 100)
    await add_signed(grown_log, *(request(f"r{number}", BEFORE) for number in range(300)))
    rows_read()
    found = await context_in(grown_log)
    statements, rows = rows_read()

    assert (len(found.older["requests"]), found.unproven) == (300, [])
    assert statements < 30
    assert rows < 4 * 300 + 2 * 255


async def test_entries_beyond_the_checkpoint_are_not_read(grown_log: GrownLog):
    """The checkpoint that closes the export is what everything is proven by."""
    await add_signed(grown_log, request("r", BEFORE))
    await grown_log.add(request("s", BEFORE))

    assert numbers(await context_in(grown_log), "requests") == [0]


async def exported(grown_log: GrownLog, path: Path, night: Night = NIGHT) -> Path:
    """The night's range of the log as a file."""
    wanted = Wanted(Period(night.begin, night.closes), or_nothing=True)
    export = await grown_log.log.export(wanted, operator="sluice")
    async with aclosing(export.lines) as pieces:
        await asyncio.to_thread(path.write_bytes, b"".join([piece.lines async for piece in pieces]))
    return path


async def test_evidence_of_a_real_log_is_what_happened_on_the_day(grown_log: GrownLog, tmp_path: Path):
    """Exported, verified and gathered from PostgreSQL: the day's entries, none of the days around it, and what older ones left."""
    before = [moved(entry, -DAY) for entry in eventful()]
    await add_signed(grown_log, *before, *eventful(), summary(5, NIGHT.end - MINUTE), request("next day", NOON + DAY))
    export = await exported(grown_log, tmp_path / "log.jsonl")
    integrity = integrity_of(export, grown_log.keys.root, grown_log.clock)
    with export.open("rb") as stream:
        evidence = gather(lines(stream), NIGHT, integrity, await context_in(grown_log))

    assert integrity.whole
    assert (evidence.entries, evidence.first, evidence.end) == (len(eventful()) + 1, 30, 61)
    assert sum(one.count for one in evidence.decisions) == 90 + 2 + 7 + 20 + 5
    assert [one.name for one in evidence.tenants] == ["acme", "globex"]
    assert [(one.id, one.entries) for one in evidence.requests] == [("request-1", (22,)), ("request-2", (23, 24, 54))]
    assert evidence.cut == frozenset()


async def test_an_empty_day_of_a_real_log_is_evidence_of_nothing(grown_log: GrownLog, tmp_path: Path):
    """The file has no entry and is whole; the tenants and what is kept of older days are there."""
    await add_signed(grown_log, quota("acme", BEFORE - DAY), read(NOON + 2 * DAY))
    export = await exported(grown_log, tmp_path / "log.jsonl")
    integrity = integrity_of(export, grown_log.keys.root, grown_log.clock)
    with export.open("rb") as stream:
        evidence = gather(lines(stream), NIGHT, integrity, await context_in(grown_log))

    assert (integrity.report.verdict, integrity.report.size, evidence.entries) == ("whole", 2, 0)
    assert [(one.name, one.entries) for one in evidence.tenants] == [("acme", 0)]
    assert [(one.name, one.entries) for one in evidence.retention] == [("d400", 1)]


async def test_without_the_database_there_is_no_context():
    """No report is made of half of what it needs."""
    engine = create_engine("postgresql+psycopg://nobody@127.0.0.1:1/none", DatabaseSettings())
    transactions = Transactions(engine, Metrics(), call="reports", timeout_ms=2000)
    nothing = Closing(Checkpoint("sluice/x", 1, bytes(32)), "")

    with pytest.raises(DatabaseDown):
        await transactions.run(lambda connection: context_of(connection, NIGHT, nothing))


async def test_the_rules_in_force_are_the_newest_before_the_day(grown_log: GrownLog):
    """One entry, however many there were, and none that came later."""
    for hours, revision in ((-40, "r1"), (-30, "r2"), (1, "r3")):
        await grown_log.add(policy_activated(recorded=NIGHT.begin + hours * HOUR, revision=revision, previous=None))
    await add_signed(grown_log, read(NOON))
    found = await context_in(grown_log)
    assert [entry.body["policy_revision"] for entry in found.older["rules"]] == ["r2"]
    assert (found.cut, found.unproven) == (frozenset(), [])
