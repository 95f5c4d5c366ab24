"""Exporting the log: a range of it as one file from which anybody can check it without us (app/audit/format/export_file.py).

What is there is written as it is there. A damaged log is exported like any other, so that the verifier names the damage: an
entry that is missing has no line, and a hash that is missing is 32 zero bytes, which no proof accepts.

When down: DatabaseDown; a file that was begun has no last line then, and no verifier takes it for whole.
"""

import contextlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.audit.format.checkpoint import origin_of
from app.audit.format.export_file import CheckpointLine, Consistency, EndLine, EntryLine, Header, PurgedLine
from app.audit.format.leaf import GENESIS, HASH_BYTES
from app.audit.format.merkle import Subtree, consistency_spans, covering
from app.audit.reading import hashes
from app.audit.reading.checkpoints import certificates, newest, origin_and_size
from app.audit.reading.entries import Filters, logged
from app.audit.reading.hashes import LogDamaged
from app.clock import Clock
from app.errors import DependencyDown, NotFound
from app.observability.metrics import Metrics
from app.transaction import Transactions

BATCH = 256
"""Entries at a time: some 200 KB in memory, and 256 MiB at the very most, where each has the largest body."""
BATCH_TIMEOUT_MS = 60_000
"""For one batch or one look for a period, and for a reader who takes his time between two."""
MAX_ANCHORS = 100
LONGEST_MS = 60 * 60 * 1000
"""For a whole file: enough for a hundred million entries. While one is made nothing is cleaned up that was deleted since it began,
and each look into the intake passes over all the rows that were: 6 ms for a hundred thousand."""
MOST_AT_ONCE = 2
"""Each holds a connection for as long as its reader takes; other readers need some, too."""

_MISSING = bytes(HASH_BYTES)
_PATIENCE = text(
    f"SELECT set_config('statement_timeout', '{BATCH_TIMEOUT_MS}', true),"
    f" set_config('idle_in_transaction_session_timeout', '{BATCH_TIMEOUT_MS}', true)"
)
_PERIOD = 'SELECT min(seq) AS first, max(seq) + 1 AS "end" FROM audit.body WHERE seq < :size'
_CHAIN = text("SELECT chain_hash FROM audit.leaf WHERE seq = :seq")
_BATCH = text("""
    SELECT leaf.seq, leaf.leaf_hash, leaf.chain_hash, leaf.shelf, body.body, checkpoint.note
    FROM audit.leaf
    LEFT JOIN audit.body ON body.shelf = leaf.shelf AND body.seq = leaf.seq
    LEFT JOIN audit.checkpoint ON checkpoint.size = leaf.seq + 1
    WHERE leaf.seq >= :first AND leaf.seq < :end ORDER BY leaf.seq
""")


class ExportsBusy(DependencyDown):
    """As many exports as this replica makes at once are under way."""

    code = "exports_busy"
    hint = "Try again when one of them is done, or use `sluice audit export`."


class ExportTooSlow(DependencyDown):
    """The reader took longer than a whole export may, and the file was cut off: a database that is read that long fills up."""

    code = "export_too_slow"
    hint = "Read it faster, or in parts: name periods with from and to, or use `sluice audit export` on the machine of the database."


class NothingRecorded(NotFound):
    """No entry of the log was recorded in that period."""

    code = "nothing_recorded"
    hint = "Name another period, as RFC 3339 from (included) to (not included), or none for all of the log."


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to export: all entries that were recorded in [begin, end), and proofs for checkpoints of these sizes kept elsewhere."""

    begin: datetime | None = None
    end: datetime | None = None
    anchors: tuple[int, ...] = ()

    @property
    def told(self) -> dict[str, str | list[int]]:
        """The same for the record of who exported what."""
        period = Filters(begin=self.begin, end=self.end).told
        return {**period, "anchors": list(self.anchors)} if self.anchors else dict(period)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some lines of the file, and how many entries they bring it to."""

    lines: bytes
    entries: int


class Exports:
    """Makes exports with an engine of role sluice_log."""

    def __init__(self, engine: AsyncEngine, clock: Clock, metrics: Metrics) -> None:
        self._clock = clock
        self._transactions = Transactions(engine, metrics, call="export", timeout_ms=BATCH_TIMEOUT_MS)
        self._running = 0

    async def begin(self, wanted: Wanted) -> tuple[Header, AsyncGenerator[Batch]]:
        """The first line, and the whole file in pieces, the header first, each read when it is asked for.

        The first line says which entries, and what links them to the newest checkpoint. Close the pieces where they are not read to
        their end. Raises NoCheckpoint, NothingRecorded where a period is asked for and empty, ExportsBusy, DatabaseDown.
        """

        async def look(connection: AsyncConnection) -> Header:
            await connection.execute(_PATIENCE)
            return await _header(connection, wanted)

        with contextlib.ExitStack() as held:
            held.enter_context(self._place())
            header = await self._transactions.run(look)
            lines = self._lines(header, held.pop_all())
            await anext(lines)
        return header, lines

    @contextlib.contextmanager
    def _place(self) -> Iterator[None]:
        """One of the few, from before the first look on: of many who ask at the same moment the others hear it at once."""
        if self._running >= MOST_AT_ONCE:
            raise ExportsBusy(f"{self._running} exports are under way")
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    async def _lines(self, header: Header, place: contextlib.ExitStack) -> AsyncGenerator[Batch]:
        with place:
            yield Batch(b"", 0)  # for who begins it: a generator that was never begun gives nothing back when it is closed
            began_ms = self._clock.monotonic_ms()
            async with contextlib.aclosing(self._transactions.stream(lambda connection: _lines(connection, header))) as batches:
                async for batch in batches:
                    if self._clock.monotonic_ms() - began_ms > LONGEST_MS:
                        raise ExportTooSlow(
                            f"{batch.entries} of {header.end - header.first} entries were read in {LONGEST_MS / 60_000:g} min"
                        )
                    yield batch


async def _header(connection: AsyncConnection, wanted: Wanted) -> Header:
    log, _ = await origin_and_size(connection)
    closing = await newest(connection)
    size = closing.size
    first, end = await _range(connection, wanted, size)
    left, right = list(covering(0, first)), list(covering(end, size))
    known = await hashes.subtrees(connection, [*left, *right])
    return Header(
        log=origin_of(log),
        first=first,
        end=end,
        size=size,
        chain=await _chain_before(connection, first),
        left=tuple(_told(known, left)),
        right=tuple(_told(known, right)),
        note=closing.note,
        certificates=tuple(await certificates(connection)),
        consistency=tuple(await _consistency(connection, wanted.anchors, first, end, size)),
    )


async def _range(connection: AsyncConnection, wanted: Wanted, size: int) -> tuple[int, int]:
    """The numbers [first, end) that reach from the first to the last entry of the period; between them may be others."""
    if wanted.begin is None and wanted.end is None:
        return 0, size
    conditions = {"begin": (" AND recorded >= :begin", wanted.begin), "end": (" AND recorded < :end", wanted.end)}
    given = {name: (condition, value) for name, (condition, value) in conditions.items() if value is not None}
    statement = text(_PERIOD + "".join(condition for condition, _ in given.values()))
    row = (await connection.execute(statement, {"size": size} | {name: value for name, (_, value) in given.items()})).one()
    if row.first is None:
        said = " ".join(f"{name} {value}" for name, value in Filters(begin=wanted.begin, end=wanted.end).told.items())
        raise NothingRecorded(f"from, to: no signed entry was recorded {said}", field="from" if wanted.begin else "to")
    return row.first, row.end


async def _chain_before(connection: AsyncConnection, first: int) -> bytes:
    if first == 0:
        return GENESIS
    chain: bytes | None = (await connection.execute(_CHAIN, {"seq": first - 1})).scalar()
    return _MISSING if chain is None else bytes(chain)


def _told(known: dict[Subtree, bytes], wanted: Sequence[Subtree]) -> Iterator[bytes]:
    return (known.get(tree, _MISSING) for tree in wanted)


async def _consistency(connection: AsyncConnection, anchors: Sequence[int], first: int, end: int, size: int) -> list[Consistency]:
    """Proofs for the anchors whose tree cannot be made from the entries of the file; a damaged log may have none."""
    proofs = []
    for anchor in sorted(set(anchors)):
        if 0 < anchor < first or end < anchor < size:
            try:
                path = await hashes.spans(connection, consistency_spans(anchor, size))
            except LogDamaged:
                continue  # the verifier says that the anchor could not be checked
            proofs.append(Consistency(anchor, tuple(path)))
    return proofs


async def _lines(connection: AsyncConnection, header: Header) -> AsyncGenerator[Batch]:
    await connection.execute(_PATIENCE)
    yield Batch(header.line(), 0)
    chain = header.chain
    for first in range(header.first, header.end, BATCH):
        end = min(first + BATCH, header.end)
        rows = (await connection.execute(_BATCH, {"first": first, "end": end})).all()
        if rows:
            chain = bytes(rows[-1].chain_hash)
            yield Batch(b"".join(line for row in rows for line in _lines_of(row)), end - header.first)
    yield Batch(EndLine(header.end - header.first, chain).line(), header.end - header.first)


def _lines_of(row: Row[tuple[object, ...]]) -> Iterator[bytes]:
    entry = logged(row)
    if entry.leaf is None:
        yield PurgedLine(entry.seq, entry.shelf, entry.leaf_hash).line()
    else:
        yield EntryLine(entry.leaf, entry.leaf_hash).line()
    if row.note is not None:
        yield CheckpointLine(row.note).line()
