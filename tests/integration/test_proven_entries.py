"""Searching the log for entries that are proven, on a real PostgreSQL."""

from datetime import timedelta
from uuid import UUID

import pytest

from app.audit.format.leaf import leaf_hash
from app.audit.format.merkle import root_by_inclusion
from app.audit.reading import proven
from app.audit.reading.caught_up import LogBehind
from app.audit.reading.checkpoints import SequencerSilent
from app.audit.reading.hashes import LogDamaged
from app.audit.reading.proven import ProvenEntries, Search, of_kinds
from app.observability.metrics import Metrics
from tests.fixtures.entries import numbered
from tests.fixtures.log import GrownLog
from tests.fixtures.postgres import TIMEOUT_MS

RARE = "report.made"
ROWS_ALONE = 512
"""What the proof of an entry without neighbours reads of a log of less than 256 * 256 entries."""


@pytest.fixture
def entries(grown_log: GrownLog) -> ProvenEntries:
    return ProvenEntries(grown_log.engine, grown_log.clock, Metrics(), timeout_ms=TIMEOUT_MS)


async def add_rare(log: GrownLog, count: int = 1) -> None:
    await log.add(*(numbered(number, kind=RARE, recorded=log.clock.utcnow()) for number in range(count)))


async def test_what_is_found_is_proven(grown_log: GrownLog, entries: ProvenEntries, rows_read):
    """Rare entries among others: each leads to the signed root, by few rows; a batch shares what it needs of the tree."""
    for _ in range(3):
        await grown_log.grow(300)
        await add_rare(grown_log, 2)
    await grown_log.sign()
    closing = await entries.closing()
    rows_read()
    found = await entries.all(of_kinds(RARE), closing.checkpoint)
    _, rows = rows_read()

    head = closing.checkpoint.tree_head
    assert [one.logged.seq for one in found] == [300, 301, 602, 603, 904, 905]
    for one in found:
        assert root_by_inclusion(leaf_hash(one.logged.leaf.text), one.logged.seq, head.size, one.path) == head.root
    assert rows < 3 * ROWS_ALONE


async def test_searches_reach_beyond_one_batch(grown_log: GrownLog, entries: ProvenEntries):
    """By a column, and without one that leads there, all entries are found that lie under the checkpoint, and no later ones."""
    await grown_log.grow(300)
    await add_rare(grown_log, 600)
    await grown_log.sign()
    closing = await entries.closing()
    await add_rare(grown_log, 3)
    looked_through = Search("body.kind = :kind", {"kind": RARE}, lambda body: body["kind"] == RARE, indexed=False)

    for search in (of_kinds(RARE), looked_through):
        assert [one.logged.seq for one in await entries.all(search, closing.checkpoint)] == list(range(300, 900))


async def test_a_row_whose_columns_lie_is_passed_over(grown_log: GrownLog, entries: ProvenEntries):
    """What a body says decides, not what stands beside it."""
    await grown_log.grow(3)
    await add_rare(grown_log)
    await grown_log.sign()
    await grown_log.damage("UPDATE audit.body SET kind = 'report.made'")

    assert [one.logged.seq for one in await entries.all(of_kinds(RARE), (await entries.closing()).checkpoint)] == [3]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE audit.body SET body = body || ' '::bytea WHERE seq = 2",
        "UPDATE audit.leaf SET leaf_hash = body_hash WHERE seq = 2",
        "DELETE FROM audit.leaf WHERE seq = 0",
        "UPDATE audit.checkpoint SET note = replace(note, '3', '4')",
    ],
    ids=["body", "leaf", "neighbour", "checkpoint"],
)
async def test_what_is_not_proven_is_not_given(grown_log: GrownLog, entries: ProvenEntries, damage: str):
    """A changed body, leaf or checkpoint, or a leaf that is gone beside it: LogDamaged."""
    await grown_log.grow(2)
    await add_rare(grown_log)
    await grown_log.sign()
    await grown_log.damage(damage)

    with pytest.raises(LogDamaged):
        await entries.all(of_kinds(RARE), (await entries.closing()).checkpoint)


async def test_without_a_signature_nothing_is_proven(grown_log: GrownLog, entries: ProvenEntries, monkeypatch: pytest.MonkeyPatch):
    """Entries that nobody signs are waited for, and then it is said who is silent."""
    monkeypatch.setattr("app.audit.reading.checkpoints.FRESH_WITHIN_S", 0.1)
    await grown_log.grow(2)

    with pytest.raises(SequencerSilent):
        await entries.closing()


async def test_what_comes_later_is_not_waited_for(grown_log: GrownLog, entries: ProvenEntries, monkeypatch: pytest.MonkeyPatch):
    """An entry of a moment after the question holds no answer up."""
    monkeypatch.setattr(proven, "FRESH_WITHIN_S", 0.1)
    await grown_log.grow(2)
    await grown_log.sign()
    await grown_log.intake.write(numbered(1, recorded=grown_log.clock.utcnow() + timedelta(milliseconds=1)))

    assert (await entries.closing()).checkpoint.size == 2


async def test_an_entry_is_numbered_once_it_is_in_the_log(grown_log: GrownLog, entries: ProvenEntries, monkeypatch: pytest.MonkeyPatch):
    """By its id; one that nobody has sequenced is waited for and then told, and of an id that no entry has there is no number."""
    monkeypatch.setattr(proven, "FRESH_WITHIN_S", 0.1)
    entry = numbered(7, recorded=grown_log.clock.utcnow())
    await grown_log.grow(2)
    await grown_log.intake.write(entry)

    with pytest.raises(LogBehind):
        await entries.number(str(entry.id))
    await grown_log.add()
    assert (await entries.number(str(entry.id)), await entries.number(str(UUID(int=1)))) == (2, None)
