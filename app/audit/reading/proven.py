"""Entries that a search finds anywhere in the log, each proven under one checkpoint before it is given.

Columns only find; what an entry says is read from its body, and the search is asked again there: a row whose columns lie is
passed over. The paths of a batch share what they need of the tree: at most 512 rows for an entry that has no neighbours, 8 for
one that has. All of it is one state of the database, under a checkpoint that was signed after the reading was asked for.

When down: DatabaseDown; SequencerSilent or LogBehind where nobody sequences or signs what was handed over before; LogDamaged for an
entry that does not lead to the signed root. Nothing is given of an entry that is not proven.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.audit.format.checkpoint import NoteRefused, key_id, open_note
from app.audit.format.leaf import parse_body
from app.audit.reading.caught_up import caught_up
from app.audit.reading.checkpoints import FRESH_WITHIN_S, SignedCheckpoint, certificates, fresh, signer_of
from app.audit.reading.entries import BODY, COLUMNS, Logged, logged
from app.audit.reading.hashes import LogDamaged
from app.audit.reading.proofs import paths
from app.clock import Clock
from app.observability.metrics import Metrics
from app.signing.sm2 import PublicKey
from app.transaction import Transactions

BATCH = 256
"""Entries at a time, as in an export: at the very most 256 MiB."""
BATCH_TIMEOUT_MS = 60_000
"""For one batch and for whoever takes it."""

_PATIENCE = text(
    f"SELECT set_config('statement_timeout', '{BATCH_TIMEOUT_MS}', true),"
    f" set_config('idle_in_transaction_session_timeout', '{BATCH_TIMEOUT_MS}', true)"
)

_NUMBER = text("SELECT seq FROM audit.leaf WHERE id = CAST(:id AS uuid)")


@dataclass(frozen=True, slots=True)
class Search:
    """Which entries. `condition` is SQL over the columns of a body, whose parameters are `values`; `says` asks the body the same."""

    condition: str
    values: Mapping[str, Any]
    says: Callable[[Mapping[str, Any]], bool] = field(repr=False)
    indexed: bool = True
    """Whether a column leads to them; else the log is looked through from its beginning."""


@dataclass(frozen=True, slots=True)
class Proven:
    """An entry, what its body says, and its path to the root of the checkpoint, leaf side first."""

    logged: Logged
    body: Mapping[str, Any]
    path: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Closing:
    """The checkpoint under which entries are proven, and the certificates, as DER, of all who ever signed for the log."""

    checkpoint: SignedCheckpoint
    certificates: Sequence[bytes]


def of_kinds(*kinds: str) -> Search:
    """All entries of these kinds."""
    return Search("body.kind = ANY(:kinds)", {"kinds": list(kinds)}, lambda body: body["kind"] in kinds)


class ProvenEntries:
    """Searches the log with an engine of role sluice_log."""

    def __init__(self, engine: AsyncEngine, clock: Clock, metrics: Metrics, *, timeout_ms: int) -> None:
        self._clock = clock
        self._looks = Transactions(engine, metrics, call="closing checkpoint", timeout_ms=timeout_ms)
        self._reads = Transactions(engine, metrics, call="proven entries", timeout_ms=BATCH_TIMEOUT_MS)

    async def closing(self) -> Closing:
        """A checkpoint of all that was handed over to the log before now. Raises LogBehind, SequencerSilent, NoCheckpoint, LogDamaged, DatabaseDown."""
        await caught_up(self._looks, self._clock.utcnow(), FRESH_WITHIN_S)
        signed = await fresh(self._looks)
        closing = Closing(signed, await self._looks.run(certificates))
        _check_signature(closing)
        return closing

    async def number(self, identity: str) -> int | None:
        """The number of an entry that was handed over before now, by its id, not proven; None where the log has none. Raises LogBehind, DatabaseDown."""
        await caught_up(self._looks, self._clock.utcnow(), FRESH_WITHIN_S)
        return await self._looks.run(lambda connection: _number(connection, identity))

    async def batches(self, search: Search, checkpoint: SignedCheckpoint) -> AsyncGenerator[list[Proven]]:
        """The entries, by number, that lie under `checkpoint`. Close it where it is not read to its end. Raises LogDamaged, DatabaseDown."""
        async for batch in self._reads.stream(lambda connection: _batches(connection, search, checkpoint)):
            yield batch

    async def all(self, search: Search, checkpoint: SignedCheckpoint) -> list[Proven]:
        """The same at once, for what is few."""
        return [entry async for batch in self.batches(search, checkpoint) for entry in batch]


async def _number(connection: AsyncConnection, identity: str) -> int | None:
    number: int | None = await connection.scalar(_NUMBER, {"id": identity})
    return number


def _check_signature(closing: Closing) -> None:
    """Raise LogDamaged unless one of the log's signers signed the checkpoint; whose they are the root says, which a reader has."""
    signer, origin = signer_of(closing.checkpoint, list(closing.certificates)), closing.checkpoint.tree_head.origin
    try:
        open_note(closing.checkpoint.note, origin, {key_id(origin, signer.spki): PublicKey(signer.spki)})
    except NoteRefused as refused:
        raise LogDamaged(f"the checkpoint of size {closing.checkpoint.size}: {refused.message}") from None


async def _batches(connection: AsyncConnection, search: Search, checkpoint: SignedCheckpoint) -> AsyncGenerator[list[Proven]]:
    await connection.execute(_PATIENCE)
    root = checkpoint.tree_head.root
    found = _by_column if search.indexed else _looked_through
    async for batch in found(connection, search, checkpoint.size):
        said = [(entry, body) for entry in batch if search.says(body := _body(entry))]
        if said:
            yield await _proven(connection, said, checkpoint.size, root)


async def _by_column(connection: AsyncConnection, search: Search, size: int) -> AsyncGenerator[list[Logged]]:
    statement = text(
        f"SELECT {COLUMNS} FROM audit.leaf JOIN {BODY} "  # noqa: S608 - constants
        f"WHERE ({search.condition}) AND leaf.seq >= :first AND leaf.seq < :size ORDER BY leaf.seq LIMIT {BATCH}"
    )
    first = 0
    while batch := [logged(row) for row in await connection.execute(statement, {**search.values, "first": first, "size": size})]:
        yield batch
        first = batch[-1].seq + 1


async def _looked_through(connection: AsyncConnection, search: Search, size: int) -> AsyncGenerator[list[Logged]]:
    statement = text(
        f"SELECT {COLUMNS} FROM audit.leaf JOIN {BODY} "  # noqa: S608 - constants
        f"WHERE leaf.seq >= :first AND leaf.seq < :end AND ({search.condition}) ORDER BY leaf.seq"
    )
    for first in range(0, size, BATCH):
        end = min(first + BATCH, size)
        yield [logged(row) for row in await connection.execute(statement, {**search.values, "first": first, "end": end})]


def _body(entry: Logged) -> Mapping[str, Any]:
    try:
        if entry.state == "kept" and entry.body is not None:
            return parse_body(entry.body, entry.leaf)
    except ValueError:
        pass
    raise LogDamaged(f"entry {entry.seq} is not what was hashed when it came")


async def _proven(connection: AsyncConnection, said: Sequence[tuple[Logged, Mapping[str, Any]]], size: int, root: bytes) -> list[Proven]:
    known = await paths(connection, [entry for entry, _ in said], size, root)
    for entry, _ in said:
        if entry.seq not in known:
            raise LogDamaged(f"the hashes of the log do not lead from entry {entry.seq} to the root of its checkpoint of size {size}")
    return [Proven(entry, body, known[entry.seq]) for entry, body in said]
