"""Exporting the log: a range of it as one file from which anybody can check it without us (app/audit/format/export_file.py).

What is there is written as it is there. A damaged log is exported like any other, so that the verifier names the damage: an
entry that is missing has no line, and a hash that is missing is 32 zero bytes, which no proof accepts.

When down: DatabaseDown; a file that was begun has no last line then, and no verifier takes it for whole.
"""

import contextlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.audit.format.checkpoint import origin_of
from app.audit.format.export_file import CheckpointLine, Consistency, EndLine, EntryLine, Header, PurgedLine
from app.audit.format.leaf import GENESIS, HASH_BYTES
from app.audit.format.merkle import Subtree, consistency_spans, covering
from app.audit.reading import hashes
from app.audit.reading.checkpoints import SignedCheckpoint, certificates, newest, origin_and_size
from app.audit.reading.entries import BODY, COLUMNS, LEAF_COLUMNS, logged
from app.audit.reading.hashes import LogDamaged
from app.audit.reading.proofs import paths
from app.clock import Clock
from app.errors import DependencyDown, NotFound
from app.instants import ALWAYS, Period
from app.observability.metrics import Metrics
from app.transaction import Transactions

BATCH = 256
"""Entries at a time: some 200 KB in memory, and 256 MiB at the very most, where each has the largest body."""
BATCH_TIMEOUT_MS = 60_000
"""For one batch or one look for a period, and for a reader who takes his time between two."""
BESIDE = 32
"""Leaves on each side of a period that are looked at, since they may have been of it before somebody changed them."""
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
# With a count beside them the least and the greatest are found by the index on times, rather than by the one on numbers from an end on.
_PERIOD = 'SELECT min(seq) AS first, max(seq) + 1 AS "end", count(*) FROM audit.leaf WHERE seq < :size'
_BOUNDS = {"begin": " AND recorded >= :begin", "end": " AND recorded < :end"}
_AFTER = text("SELECT min(seq) AS first, count(*) FROM audit.leaf WHERE seq < :size AND recorded >= :end")
_BESIDE = text(
    f"SELECT {LEAF_COLUMNS} FROM audit.leaf "  # noqa: S608 - constants
    "WHERE seq >= :first - :beside AND seq < :first OR seq >= :end AND seq < least(:end + :beside, :size)"
)
_CHAIN = text("SELECT chain_hash FROM audit.leaf WHERE seq = :seq")
_BATCH = text(f"""
    SELECT {COLUMNS}, leaf.chain_hash, checkpoint.note
    FROM audit.leaf
    LEFT JOIN {BODY}
    LEFT JOIN audit.checkpoint ON checkpoint.size = leaf.seq + 1
    WHERE leaf.seq >= :first AND leaf.seq < :end ORDER BY leaf.seq
""")  # noqa: S608 - constants


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
    """What to export: all entries that were recorded in a period, and proofs for checkpoints of these sizes kept elsewhere."""

    period: Period = ALWAYS
    anchors: tuple[int, ...] = ()
    or_nothing: bool = False
    """Whether a period without entries is a file without any: it says between which entries they would stand."""
    joins: int | None = None
    """From which number on entries are in the file whatever times they say: where the file of the period before ended."""

    @property
    def as_query(self) -> dict[str, str | list[int]]:
        """The same as parameters, for the record of who exported what."""
        return {**self.period.as_query, **({"anchors": list(self.anchors)} if self.anchors else {})}


@dataclass(frozen=True, slots=True)
class Lines:
    """Some of the file, and how many entries they bring it to."""

    lines: bytes
    entries: int


class Exports:
    """Makes exports with an engine of role sluice_log."""

    def __init__(self, engine: AsyncEngine, clock: Clock, metrics: Metrics) -> None:
        self._clock = clock
        self._transactions = Transactions(engine, metrics, call="export", timeout_ms=BATCH_TIMEOUT_MS)
        self._running = 0

    async def begin(self, wanted: Wanted) -> tuple[Header, AsyncGenerator[Lines]]:
        """The first line, and the whole file in pieces, the header first, each read when it is asked for.

        The first line says which entries, and what links them to the newest checkpoint. Close the pieces where they are not read to
        their end. Raises NoCheckpoint, NothingRecorded where a period is asked for and empty (unless `or_nothing`), ExportsBusy, DatabaseDown.
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

    async def _lines(self, header: Header, place: contextlib.ExitStack) -> AsyncGenerator[Lines]:
        with place:
            yield Lines(b"", 0)  # for who begins it: a generator that was never begun gives nothing back when it is closed
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
    first, end = await _range(connection, wanted, closing)
    left, right = list(covering(0, first)), list(covering(end, size))
    known = await hashes.subtrees(connection, [*left, *right])
    return Header(
        log=origin_of(log),
        first=first,
        end=end,
        size=size,
        chain=await _chain_before(connection, first),
        left=tuple(_hashes_of(left, known)),
        right=tuple(_hashes_of(right, known)),
        note=closing.note,
        certificates=tuple(await certificates(connection)),
        consistency=tuple(await _consistency(connection, wanted.anchors, first, end, size)),
    )


async def _range(connection: AsyncConnection, wanted: Wanted, closing: SignedCheckpoint) -> tuple[int, int]:
    """The numbers [first, end) that reach from the first to the last entry of the period; between them may be others.

    By the times that leaves say, which are hashed, and which stay when bodies go.
    """
    bounds, size = wanted.period.bounds, closing.size
    if not bounds:
        return 0, size
    statement = text(_PERIOD + "".join(_BOUNDS[name] for name in bounds))
    row = (await connection.execute(statement, {"size": size} | bounds)).one()
    first, end = row.first, row.end
    if first is None:
        first = end = await _before(connection, wanted.period, size)
    if wanted.joins is not None:
        first = min(first, wanted.joins)
    first, end = await _widened(connection, first, end, closing)
    if first == end and not wanted.or_nothing:
        query = wanted.period.as_query
        said = " ".join(f"{name} {value}" for name, value in query.items())
        raise NothingRecorded(f"from, to: no signed entry was recorded {said}", field=next(iter(query)))
    return first, end


async def _before(connection: AsyncConnection, period: Period, size: int) -> int:
    """How many of `size` entries come before the first that was recorded after an empty period; all where none was."""
    if period.end is None:
        return size
    found: int | None = (await connection.execute(_AFTER, {"size": size, "end": period.end})).one().first
    return size if found is None else found


async def _widened(connection: AsyncConnection, first: int, end: int, closing: SignedCheckpoint) -> tuple[int, int]:
    """The same numbers and those beside them of leaves that are missing or not what was hashed, until one is.

    Whatever time such a leaf says, it may be one of the period; with any of them in it no verifier takes the file for whole.
    """
    rows = await connection.execute(_BESIDE, {"first": first, "end": end, "size": closing.size, "beside": BESIDE})
    try:
        root = closing.tree_head.root
    except LogDamaged:
        return first, end  # nothing is signed that a leaf could lead to, and the file says so
    genuine = await paths(connection, [logged(row) for row in rows], closing.size, root)
    before = range(first - 1, max(first - BESIDE, 0) - 1, -1)
    behind = range(end, min(end + BESIDE, closing.size))
    lost_before = list(takewhile(lambda seq: seq not in genuine, before))
    lost_behind = list(takewhile(lambda seq: seq not in genuine, behind))
    return first - len(lost_before), end + len(lost_behind)


async def _chain_before(connection: AsyncConnection, first: int) -> bytes:
    if first == 0:
        return GENESIS
    chain: bytes | None = (await connection.execute(_CHAIN, {"seq": first - 1})).scalar()
    return _MISSING if chain is None else bytes(chain)


def _hashes_of(wanted: Sequence[Subtree], known: dict[Subtree, bytes]) -> Iterator[bytes]:
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


async def _lines(connection: AsyncConnection, header: Header) -> AsyncGenerator[Lines]:
    await connection.execute(_PATIENCE)
    yield Lines(header.line(), 0)
    chain = header.chain
    for first in range(header.first, header.end, BATCH):
        end = min(first + BATCH, header.end)
        rows = (await connection.execute(_BATCH, {"first": first, "end": end})).all()
        if rows:
            chain = bytes(rows[-1].chain_hash)
            yield Lines(b"".join(line for row in rows for line in _lines_of(row)), end - header.first)
    yield Lines(EndLine(header.end - header.first, chain).line(), header.end - header.first)


def _lines_of(row: Row[tuple[object, ...]]) -> Iterator[bytes]:
    entry = logged(row)
    if entry.body is None:
        yield PurgedLine(entry.leaf.text, entry.leaf_hash).line()
    else:
        yield EntryLine(entry.body, entry.leaf.text, entry.leaf_hash).line()
    if row.note is not None:
        yield CheckpointLine(row.note).line()
