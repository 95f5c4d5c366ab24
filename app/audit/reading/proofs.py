"""Proofs from the log: that an entry is under a checkpoint, and that one checkpoint's tree begins another's.

No proof leaves that does not lead to the root which was signed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.format.leaf import leaf_hash
from app.audit.format.merkle import consistency_spans, covering, fold, inclusion_spans, is_consistent, root_by_inclusion
from app.audit.format.proof_file import proof_text
from app.audit.reading import hashes
from app.audit.reading.checkpoints import NoCheckpoint, SignedCheckpoint, certificates, checkpoint_at, signer_of
from app.audit.reading.entries import Logged, entry
from app.audit.reading.hashes import LogDamaged
from app.errors import BadRequest
from app.signing.certificates import Certificate


@dataclass(frozen=True, slots=True)
class Inclusion:
    """An entry, the checkpoint that covers it, and the path from one to the other, leaf side first."""

    entry: Logged
    checkpoint: SignedCheckpoint
    path: list[bytes]
    certificate: Certificate
    """Of the signer of the checkpoint."""

    @property
    def file(self) -> str:
        """The same as a text file (app/audit/format/proof_file.py)."""
        entry = self.entry
        return proof_text(entry.leaf.text, entry.seq, self.path, self.checkpoint.note, self.certificate.pem, body=entry.body)


@dataclass(frozen=True, slots=True)
class Extension:
    """Two checkpoints and the path that proves that the log between them was only added to."""

    old: SignedCheckpoint
    new: SignedCheckpoint
    path: list[bytes]


async def inclusion(connection: AsyncConnection, seq: int, size: int | None = None) -> Inclusion:
    """The proof of entry `seq` under the checkpoint of `size`, by default the newest. Raises NotInLog, NoCheckpoint, LogDamaged."""
    logged = await entry(connection, seq)
    signed = await checkpoint_at(connection, size)
    if seq >= signed.size:
        raise NoCheckpoint(f"seq: entry {seq} is not under the checkpoint of size {signed.size}", field="seq")
    path = await hashes.spans(connection, inclusion_spans(seq, signed.size))
    if root_by_inclusion(logged.leaf_hash, seq, signed.size, path) != signed.tree_head.root:
        raise LogDamaged(f"the hashes of the log do not lead from entry {seq} to the root of its checkpoint of size {signed.size}")
    return Inclusion(logged, signed, path, signer_of(signed, await certificates(connection)))


async def consistency(connection: AsyncConnection, old_size: int, new_size: int | None = None) -> Extension:
    """The proof from the checkpoint of one size to that of another, by default the newest. Raises NoCheckpoint, BadRequest, LogDamaged."""
    old, new = await checkpoint_at(connection, old_size), await checkpoint_at(connection, new_size)
    if old.size > new.size:
        raise BadRequest(f"from: the checkpoint of size {old.size} is not older than that of size {new.size}", field="from")
    path = await hashes.spans(connection, consistency_spans(old.size, new.size))
    if not is_consistent(old.size, new.size, old.tree_head.root, new.tree_head.root, path):
        raise LogDamaged(f"the checkpoints of sizes {old.size} and {new.size} are not of one log that only grew")
    return Extension(old, new, path)


async def paths(connection: AsyncConnection, entries: Sequence[Logged], size: int, root: bytes) -> dict[int, list[bytes]]:
    """The path of each entry whose leaf, as it says now, leads to `root` of the tree of `size`, by its number; of others none.

    For some hundred at a time: they share what they need of the tree, at most 511 hashes for each and every eight levels.
    """
    spans = {one.seq: inclusion_spans(one.seq, size) for one in entries if 0 <= one.seq < size}
    known = await hashes.subtrees(connection, {piece for path in spans.values() for span in path for piece in covering(*span)})
    found: dict[int, list[bytes]] = {}
    for one in entries:
        pieces = [[known.get(piece) for piece in covering(*span)] for span in spans.get(one.seq, ())]
        path = [fold([piece for piece in each if piece]) for each in pieces if all(each)]
        complete = one.seq in spans and len(path) == len(pieces)
        if complete and root_by_inclusion(leaf_hash(one.leaf.text), one.seq, size, path) == root:
            found[one.seq] = path
    return found
