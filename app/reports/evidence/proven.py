"""Entries of the older log, each with a proof that leads to one checkpoint. What has none is left out, and named.

When down: DatabaseDown, by whoever runs the transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.format.checkpoint import Checkpoint
from app.audit.format.leaf import leaf_hash
from app.audit.format.merkle import covering, fold, inclusion_spans, root_by_inclusion
from app.audit.reading import hashes
from app.audit.reading.entries import Logged as Row
from app.reports.evidence.export import logged
from app.reports.evidence.facts import Logged

AT_ONCE = 256
"""Entries whose proofs are read together: at most 511 hashes for each and every eight levels of the tree, and neighbours share them."""


@dataclass(frozen=True, slots=True)
class Proven:
    """What was asked for."""

    entries: Sequence[Logged]
    unproven: Sequence[int]
    """Numbers of those that are not what the checkpoint signs."""


async def proven(connection: AsyncConnection, rows: Sequence[Row], checkpoint: Checkpoint) -> Proven:
    """Those of `rows` that `checkpoint` covers. A row without its body is passed over: it went by retention."""
    good: list[Logged] = []
    bad: list[int] = []
    for begin in range(0, len(rows), AT_ONCE):
        batch = [row for row in rows[begin : begin + AT_ONCE] if row.body is not None]
        roots = await _roots(connection, [row for row in batch if row.seq < checkpoint.size], checkpoint.size)
        for row in batch:
            entry = _entry(row) if roots.get(row.seq) == checkpoint.root else None
            if entry is None:
                bad.append(row.seq)
            else:
                good.append(entry)
    return Proven(good, bad)


def _entry(row: Row) -> Logged | None:
    """The row as what was hashed; None where it is not."""
    try:
        return logged(row.body or b"", row.leaf)
    except ValueError:
        return None


async def _roots(connection: AsyncConnection, rows: Sequence[Row], size: int) -> dict[int, bytes | None]:
    """The root that each row's leaf leads to in the tree of `size`, by its number; None where hashes are missing."""
    spans = {row.seq: inclusion_spans(row.seq, size) for row in rows}
    known = await hashes.subtrees(connection, {piece for path in spans.values() for span in path for piece in covering(*span)})
    roots: dict[int, bytes | None] = {}
    for row in rows:
        path = [[known.get(piece) for piece in covering(*span)] for span in spans[row.seq]]
        steps = [fold([one for one in pieces if one]) for pieces in path if all(pieces)]
        roots[row.seq] = root_by_inclusion(leaf_hash(row.leaf.text), row.seq, size, steps) if len(steps) == len(path) else None
    return roots
