"""Gives every entry of the intake its place in the log: one batch, one transaction, in which all of it happens or nothing.

When down: a psycopg.Error leaves the intake as it was; whoever calls tries again, on a new connection where this one is lost.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from psycopg import AsyncConnection, AsyncCursor

from app.audit.format.leaf import Leaf, chain_hash, leaf_hash
from app.audit.format.merkle import Frontier
from app.audit.reading.hashes import LogDamaged
from app.audit.records.entry import Entry
from app.audit.sequencing.admission import MALFORMED, Admitted, Malformed, Row, admit, malformed, own
from app.audit.sequencing.queries import QUERIES
from app.clock import Clock

MOST_ROWS = 2000
"""A batch: large enough that the commit costs little beside the rows, and done in a fraction of a second."""

MOST_BYTES = 16 * 1024 * 1024
"""The same for large rows: a broken writer may hand over a megabyte in each, and a batch is in memory several times."""
ROWS_MORE = 20
"""By how much a batch may be larger again than the last one that went well."""

LEAF_TYPES = ("int8", "uuid", "timestamptz", "text", "bytea", "bytea", "bytea")
"""Of what `copy_leaves` takes."""
Cursor = AsyncCursor[tuple[Any, ...]]
Shelf = tuple[str, date]
"""Retention class and first day of the month, as PostgreSQL takes them."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction did."""

    size: int
    """Of the log, after it."""
    appended: int = 0
    repeated: int = 0
    """Rows whose entry the log had already: a writer that did not hear our answer wrote them again."""
    malformed: int = 0
    """Of those appended."""
    full: bool = False
    """Whether more may wait."""


@dataclass(slots=True)
class _Growth:
    """The log in memory while a batch is added: where it ends, and the rows that bring it there."""

    size: int
    chain: bytes
    frontier: Frontier
    leaves: list[tuple[Any, ...]] = field(default_factory=list)
    bodies: list[tuple[Any, ...]] = field(default_factory=list)
    subtrees: list[tuple[int, int, bytes]] = field(default_factory=list)

    def add(self, admitted: Admitted) -> None:
        """Put one entry at the end."""
        entry, seq = admitted.entry, self.size
        leaf = Leaf.of(seq, entry.id, entry.recorded, entry.retention, entry.body)
        hashed = leaf_hash(leaf.text)
        self.chain = chain_hash(self.chain, hashed)
        self.leaves.append((seq, entry.id, entry.recorded, entry.retention, leaf.body_hash, hashed, self.chain))
        filters = (admitted.tenant, admitted.model, admitted.subject, admitted.decision)
        self.bodies.append((leaf.shelf, seq, entry.recorded, entry.kind, *filters, entry.body))
        completed = self.frontier.append(hashed)
        self.subtrees += [(tree.level, tree.index, one) for tree, one in completed if tree.stored]
        self.size += 1


class Sequencer:
    """Moves entries from the intake into the log, on connections in autocommit mode as sluice_sequencer."""

    def __init__(self, clock: Clock, *, most_rows: int = MOST_ROWS) -> None:
        self._clock = clock
        self._most_rows = self._rows = most_rows
        self._shelves: set[Shelf] = set()
        """Known to be there."""

    async def sequence(self, connection: AsyncConnection[Any], entries: Sequence[Entry] = (), *, latest: datetime | None = None) -> Batch:
        """Add `entries` of our own and the oldest rows of the intake to the log, and commit.

        A row that is recorded after `latest` is kept as no entry: nobody could sign for it without looking like a forger.
        Raises psycopg.Error and LogDamaged with nothing done. After a failure batches are smaller for a while: where it was their
        size, in time or in what the server holds for one transaction, that ends it.
        """
        try:
            async with connection.transaction(), connection.cursor(binary=True) as cursor:
                batch, shelves = await self._sequence(cursor, entries, latest)
        except BaseException:
            self._shelves.clear()  # some were taken back with the transaction, or one that we knew is gone
            self._rows = max(1, self._rows // 2)
            raise
        self._shelves |= shelves
        self._rows = min(self._most_rows, self._rows + ROWS_MORE)
        return batch

    async def _sequence(self, cursor: Cursor, entries: Sequence[Entry], latest: datetime | None) -> tuple[Batch, set[Shelf]]:
        await cursor.execute(QUERIES["lock_head"])
        _, size, chain, frontier = (await cursor.fetchall())[0]
        await cursor.execute(QUERIES["take"], {"most": self._rows, "most_bytes": MOST_BYTES})
        rows = [Row(*row) for row in await cursor.fetchall()]
        fresh, clashing, repeated = await _known_apart(cursor, rows)
        admitted = [own(entry) for entry in entries]
        admitted += [self._admitted(row, latest) for row in fresh]
        admitted += [malformed(row, "its id is that of another entry", recorded=self._clock.utcnow()) for row in clashing]
        growth = _Growth(size, chain, frontier_of(size, frontier))
        for one in admitted:
            growth.add(one)
        shelves = {_shelf_of(one.entry) for one in admitted}
        if admitted:
            await self._store(cursor, growth, shelves)
        bad = sum(one.entry.kind == MALFORMED for one in admitted)
        full = len(rows) == self._rows or sum(len(row.body) for row in rows) >= MOST_BYTES
        return Batch(growth.size, len(admitted), repeated, bad, full), shelves

    def _admitted(self, row: Row, latest: datetime | None) -> Admitted:
        try:
            return admit(row, latest=latest)
        except Malformed as error:
            return malformed(row, str(error), recorded=self._clock.utcnow())

    async def _store(self, cursor: Cursor, growth: _Growth, shelves: set[Shelf]) -> None:
        for retention, month in sorted(shelves - self._shelves):
            await cursor.execute(QUERIES["make_shelf"], {"retention": retention, "month": month})
        await _copy(cursor, "copy_leaves", LEAF_TYPES, growth.leaves)
        await _copy(cursor, "copy_bodies", ("text", "int8", "timestamptz", *["text"] * 5, "bytea"), growth.bodies)
        if growth.subtrees:
            await _copy(cursor, "copy_subtrees", ("int2", "int8", "bytea"), growth.subtrees)
        await cursor.execute(QUERIES["move_head"], {"size": growth.size, "chain": growth.chain, "frontier": growth.frontier.packed})


def frontier_of(size: int, packed: bytes) -> Frontier:
    """The tree that the head names. Raises LogDamaged where it is none."""
    try:
        return Frontier.parse(size, packed)
    except ValueError as error:
        raise LogDamaged(f"the head of the log is damaged: {error}") from None


async def _known_apart(cursor: Cursor, rows: Sequence[Row]) -> tuple[list[Row], list[Row], int]:
    """Rows that are new to the log, rows that bear the id of another entry, and how many repeat an entry."""
    await cursor.execute(QUERIES["known"], {"ids": [row.id for row in rows]})
    known = {identity: (seq, leaf) for identity, seq, leaf in await cursor.fetchall()}
    fresh = [row for row in rows if row.id not in known]
    clashing = [row for row in rows if row.id in known and not _is_leaf(row, *known[row.id])]
    return fresh, clashing, len(rows) - len(fresh) - len(clashing)


def _is_leaf(row: Row, seq: int, leaf: bytes) -> bool:
    return row.recorded is not None and leaf_hash(Leaf.of(seq, row.id, row.recorded, row.retention, row.body).text) == leaf


def _shelf_of(entry: Entry) -> Shelf:
    return entry.retention, entry.recorded.astimezone(UTC).date().replace(day=1)


async def _copy(cursor: Cursor, query: str, types: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    async with cursor.copy(QUERIES[query]) as copy:
        copy.set_types(types)
        for row in rows:
            await copy.write_row(row)
