"""Exports of a log in a real PostgreSQL, checked by the verifier, which knows nothing but the file and the root."""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import pytest

from app.audit.format.export_file import CheckpointLine, EndLine, EntryLine, read_header, read_line
from app.audit.format.merkle import covering
from app.audit.reading import export
from app.audit.reading.checkpoints import NoCheckpoint, checkpoint_at
from app.audit.reading.export import BATCH, ExportsBusy, ExportTooSlow, NothingRecorded, Wanted
from app.audit.reading.log import AuditUnavailable, Export
from app.audit.records.entry import Entry
from app.audit.verification.report import Report
from app.audit.verification.verify import verify
from app.database import DatabaseDown
from app.instants import Period
from tests.fixtures.log import GrownLog
from tests.fixtures.signing import MADE

DAY = timedelta(days=1)


async def export_of(grown_log: GrownLog, wanted: Wanted = Wanted()) -> list[bytes]:  # noqa: B008 - frozen
    """The file's lines."""
    exported = await grown_log.log.export(wanted, operator="auditor")
    async with aclosing(exported.lines) as batches:
        return b"".join([batch.lines async for batch in batches]).splitlines(keepends=True)


async def notes(grown_log: GrownLog, *sizes: int) -> list[str]:
    """Checkpoints as somebody keeps them elsewhere."""
    async with grown_log.engine.connect() as connection:
        return [(await checkpoint_at(connection, size)).note for size in sizes]


def checked(grown_log: GrownLog, lines: list[bytes], anchors: list[str] | None = None) -> Report:
    return verify(lines, grown_log.keys.root, anchors or [])


async def refuse(*_: Entry) -> None:
    """An intake that is down."""
    raise DatabaseDown("PostgreSQL: no answer in time")


async def grow_by_days(grown_log: GrownLog, days: int, each: int) -> None:
    """That many entries a day, signed in the evening."""
    for _ in range(days):
        await grown_log.grow(each)
        await grown_log.sign()
        grown_log.clock.advance(DAY.total_seconds() * 1000)


async def test_the_whole_log_is_exported_and_whole(grown_log: GrownLog):
    """Without a period the file has every entry up to the newest checkpoint, all checkpoints at their places, and its end."""
    await grow_by_days(grown_log, 3, BATCH)
    await grown_log.grow(5)  # not signed yet
    lines = await export_of(grown_log)
    read = [read_line(line, number) for number, line in enumerate(lines[1:], 2)]
    header = read_header(lines[0])

    assert (header.first, header.end, header.size, header.left, header.right) == (0, 3 * BATCH, 3 * BATCH, (), ())
    assert [number for number, line in enumerate(read) if isinstance(line, CheckpointLine)] == [BATCH, 2 * BATCH + 1, 3 * BATCH + 2]
    assert sum(isinstance(line, EntryLine) for line in read) == 3 * BATCH
    assert isinstance(read[-1], EndLine)
    report = checked(grown_log, lines)
    assert (report.verdict, report.entries, report.findings) == ("whole", 3 * BATCH, ())


@pytest.mark.parametrize(("first_day", "end_day"), [(0, 1), (1, 2), (1, 4), (4, 5), (None, 2), (3, None)])
async def test_a_period_is_exported_and_whole(grown_log: GrownLog, first_day: int | None, end_day: int | None):
    """A period's file has the entries recorded in it, first instant included and last not, and the hashes left and right of them."""
    await grow_by_days(grown_log, 5, 61)
    period = [None if day is None else MADE + day * DAY for day in (first_day, end_day)]
    lines = await export_of(grown_log, Wanted(Period(*period)))
    header = read_header(lines[0])
    first, end = (first_day or 0) * 61, (5 if end_day is None else end_day) * 61

    assert (header.first, header.end, header.size) == (first, end, 305)
    assert len(header.left) == len(list(covering(0, first)))
    report = checked(grown_log, lines)
    assert (report.verdict, report.entries, report.findings) == ("whole", end - first, ())


async def test_a_period_reaches_over_entries_that_were_recorded_out_of_order(grown_log: GrownLog):
    """Entries between the first and the last of a period are in its file, whatever their writers' clocks said."""
    for hour in (1, 5, 2, 9, 3):
        await grown_log.grow(1, recorded=MADE + timedelta(hours=hour))
    await grown_log.sign()
    header = read_header((await export_of(grown_log, Wanted(Period(MADE + timedelta(hours=2), MADE + timedelta(hours=4)))))[0])

    assert (header.first, header.end) == (2, 5)


async def test_anchors_before_in_and_after_a_period_are_checked(grown_log: GrownLog):
    """A checkpoint kept elsewhere is found again in any file that was asked to prove it, wherever it lies."""
    await grow_by_days(grown_log, 5, 61)
    sizes = (61, 122, 183, 244, 305)
    lines = await export_of(grown_log, Wanted(Period(MADE + 2 * DAY, MADE + 3 * DAY), anchors=(*sizes, 61, 1000)))
    header = read_header(lines[0])

    assert (header.first, header.end) == (122, 183)
    assert [proof.size for proof in header.consistency] == [61, 244]
    report = checked(grown_log, lines, await notes(grown_log, *sizes))
    assert (report.verdict, report.anchors, report.findings) == ("whole", 5, ())


@pytest.mark.parametrize(
    ("damage", "verdict", "seq"),
    [
        ("UPDATE audit.body SET body = replace(encode(body, 'escape'), '\"op\"', '\"eve\"')::bytea WHERE seq = 7", "tampered", 7),
        ("DELETE FROM audit.leaf WHERE seq = 7", "tampered", 7),
        ("DELETE FROM audit.leaf WHERE seq >= 290", "tampered", 290),
        ("UPDATE audit.leaf SET chain_hash = leaf_hash WHERE seq = 299", "tampered", None),
        ("UPDATE audit.leaf SET retention = 'nowhere' WHERE seq = 7", "tampered", 7),
        ("UPDATE audit.leaf SET retention = E'\\u00e9\\n\"' WHERE seq = 7", "tampered", 7),
        ("UPDATE audit.leaf SET recorded = '12026-01-01Z' WHERE seq = 7", "tampered", 7),
        ("UPDATE audit.leaf SET recorded = '0044-03-15 BC' WHERE seq = 7", "tampered", 7),
        ("UPDATE audit.leaf SET recorded = recorded + interval '1 microsecond' WHERE seq = 7", "tampered", 7),
        ("UPDATE audit.leaf SET id = gen_random_uuid() WHERE seq = 7", "tampered", 7),
        ("UPDATE audit.leaf SET body_hash = leaf_hash WHERE seq = 7", "tampered", 7),
        ("DELETE FROM audit.body WHERE seq = 7", "gap", 7),
        ("DELETE FROM audit.certificate WHERE role = 'signer'", "tampered", None),
        ("UPDATE audit.certificate SET der = 'x' WHERE role = 'signer'", "tampered", None),
        ("UPDATE audit.checkpoint SET note = 'x' WHERE size = 100", "tampered", None),
        ("DELETE FROM audit.subtree WHERE level = 8", "whole", None),
    ],
)
async def test_a_damaged_log_is_exported_as_it_is(grown_log: GrownLog, damage: str, verdict: str, seq: int | None):
    """Whatever was done to the tables, the file is complete, and the verifier names what was done."""
    for _ in range(3):
        await grown_log.grow(100)
        await grown_log.sign()
    await grown_log.damage(damage)
    lines = await export_of(grown_log)
    report = checked(grown_log, lines)

    assert isinstance(read_line(lines[-1], len(lines)), EndLine)
    assert report.verdict == verdict
    assert seq is None or any(found.seq == seq for found in report.findings), report.findings


@pytest.mark.parametrize("damage", ["DELETE FROM audit.subtree WHERE level = 8", "DELETE FROM audit.leaf WHERE seq IN (3, 299, 599)"])
async def test_a_period_of_a_damaged_log_is_exported_as_it_is(grown_log: GrownLog, damage: str):
    """Where hashes around a period are gone, its file is complete all the same, and is not taken for whole."""
    await grow_by_days(grown_log, 3, 300)
    await grown_log.damage(damage)
    lines = await export_of(grown_log, Wanted(Period(MADE + DAY, MADE + 2 * DAY), anchors=(300,)))

    assert isinstance(read_line(lines[-1], len(lines)), EndLine)
    assert checked(grown_log, lines).verdict == "tampered"


async def test_a_file_shows_one_state_of_the_log(grown_log: GrownLog):
    """Entries, checkpoints and purges that come while a file is made are not in it."""
    await grow_by_days(grown_log, 2, BATCH)
    exported = await grown_log.log.export(Wanted(), operator="auditor")
    pieces = []
    async with aclosing(exported.lines) as batches:
        async for batch in batches:
            pieces.append(batch.lines)
            if len(pieces) == 2:
                await grown_log.grow(3)
                await grown_log.sign()
                await grown_log.damage("DELETE FROM audit.body WHERE seq = 300")
    report = checked(grown_log, b"".join(pieces).splitlines(keepends=True))

    assert (report.verdict, report.entries) == ("whole", 2 * BATCH)


async def test_what_cannot_be_exported_says_why(grown_log: GrownLog):
    """A log that nobody signed and a period without an entry are refused, and leave no record of a read."""
    with pytest.raises(NoCheckpoint):
        await export_of(grown_log)
    await grown_log.grow(1)
    await grown_log.sign()
    with pytest.raises(NothingRecorded, match="recorded from 2030-01-01T00:00:00"):
        await export_of(grown_log, Wanted(Period(datetime(2030, 1, 1, tzinfo=UTC))))

    assert "log.read" not in await grown_log.kinds()


@pytest.mark.parametrize(("first_day", "end_day", "before"), [(2, 3, 122), (7, 8, 183), (-2, -1, 0)])
async def test_a_period_without_entries_is_a_file_without_any(grown_log: GrownLog, first_day: int, end_day: int, before: int):
    """Who asks for it gets a file that says between which entries of the log they would stand, and it is whole."""
    for day in (0, 1, 5):
        await grown_log.grow(61, recorded=MADE + day * DAY)
    await grown_log.sign()
    lines = await export_of(grown_log, Wanted(Period(MADE + first_day * DAY, MADE + end_day * DAY), or_nothing=True))
    header, report = read_header(lines[0]), checked(grown_log, lines)

    assert (header.first, header.end, header.size) == (before, before, 183)
    assert (report.verdict, report.entries, report.size, len(lines)) == ("whole", 0, 183, 2)


async def test_few_exports_are_made_at_once(grown_log: GrownLog, monkeypatch: pytest.MonkeyPatch):
    """Readers that leave exports open keep others from more of them, not from the log; a closed one makes room."""
    monkeypatch.setattr(export, "MOST_AT_ONCE", 1)
    await grow_by_days(grown_log, 1, 10)
    running = await grown_log.log.export(Wanted(), operator="auditor")
    async with aclosing(running.lines) as batches:
        await anext(batches)
        with pytest.raises(ExportsBusy):
            await grown_log.log.export(Wanted(), operator="auditor")

    assert checked(grown_log, await export_of(grown_log)).verdict == "whole"


async def test_of_many_exports_at_the_same_moment_few_begin(grown_log: GrownLog, monkeypatch: pytest.MonkeyPatch):
    """Who asks while others only begin is told at once; the log has no read of theirs, and one that is closed unread makes room."""
    monkeypatch.setattr(export, "MOST_AT_ONCE", 2)
    await grow_by_days(grown_log, 1, 10)
    asked = [grown_log.log.export(Wanted(), operator="auditor") for _ in range(8)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    begun = [answer for answer in answers if isinstance(answer, Export)]

    assert [len(begun), sum(isinstance(answer, ExportsBusy) for answer in answers)] == [2, 6]
    for one in begun:
        await one.lines.aclose()
    assert (await grown_log.kinds()).count("log.read") == 2
    assert checked(grown_log, await export_of(grown_log)).verdict == "whole"


async def test_a_reader_who_takes_too_long_is_cut_off(grown_log: GrownLog):
    """No reader holds a state of the database for longer than an hour: the file has no end then, and the next export begins anew."""
    await grow_by_days(grown_log, 1, BATCH + 1)
    slow = await grown_log.log.export(Wanted(), operator="auditor")
    async with aclosing(slow.lines) as batches:
        read = [(await anext(batches)).lines, (await anext(batches)).lines]
        grown_log.clock.advance(export.LONGEST_MS + 1)
        with pytest.raises(ExportTooSlow, match=r"257 of 257 entries were read in 60 min"):
            await anext(batches)

    assert checked(grown_log, b"".join(read).splitlines(keepends=True)).verdict == "tampered"
    assert checked(grown_log, await export_of(grown_log)).verdict == "whole"


async def test_an_export_that_cannot_be_recorded_makes_room(grown_log: GrownLog, monkeypatch: pytest.MonkeyPatch):
    """Exports that fail before their first line keep nobody from later ones."""
    monkeypatch.setattr(export, "MOST_AT_ONCE", 1)
    with pytest.raises(NoCheckpoint):
        await export_of(grown_log)
    await grow_by_days(grown_log, 1, 10)
    with monkeypatch.context() as patched:
        patched.setattr(grown_log.intake, "write", refuse)
        with pytest.raises(AuditUnavailable):
            await export_of(grown_log)

    assert checked(grown_log, await export_of(grown_log)).verdict == "whole"
