"""Entries of the older log, each with a proof that leads to one checkpoint. What has none is left out, and named.

When down: DatabaseDown, by whoever runs the transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.format.proof_file import proof_text
from app.audit.reading.checkpoints import certificates, signer_of_note
from app.audit.reading.entries import Logged as Row
from app.audit.reading.proofs import paths
from app.reports.evidence.export import logged
from app.reports.evidence.facts import Closing, Logged

AT_ONCE = 256
"""Entries whose proofs are read together."""


@dataclass(frozen=True, slots=True)
class Proven:
    """What was asked for."""

    entries: Sequence[Logged]
    unproven: Sequence[int]
    """Numbers of those that are not what the checkpoint signs."""
    proofs: Mapping[int, str]
    """Of each entry, by its number, the proof as text."""


async def proven(connection: AsyncConnection, rows: Sequence[Row], closing: Closing | None) -> Proven:
    """Those of `rows` that `closing` covers, none where it is None. A row without its body is passed over: it went by retention.

    Raises LogDamaged where the log lacks the certificate of who signed.
    """
    there = [row for row in rows if row.body is not None]
    if closing is None:
        return Proven([], [row.seq for row in there], {})
    checkpoint = closing.checkpoint
    signer = signer_of_note(checkpoint, closing.note, await certificates(connection)).pem if there else ""
    good: list[Logged] = []
    bad: list[int] = []
    proofs: dict[int, str] = {}
    for begin in range(0, len(there), AT_ONCE):
        batch = there[begin : begin + AT_ONCE]
        known = await paths(connection, batch, checkpoint.size, checkpoint.root)
        for row in batch:
            path = known.get(row.seq)
            entry = None if path is None else _entry(row)
            if entry is None:
                bad.append(row.seq)
            else:
                good.append(entry)
                proofs[row.seq] = proof_text(row.leaf.text, row.seq, path or (), closing.note, signer, body=row.body)
    return Proven(good, bad, proofs)


def _entry(row: Row) -> Logged | None:
    """The row as what was hashed; None where it is not."""
    try:
        return logged(row.body or b"", row.leaf)
    except ValueError:
        return None
