"""Proofs from the log: that an entry is under a checkpoint, and that one checkpoint's tree begins another's.

No proof leaves that does not lead to the root which was signed.
"""

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.format.merkle import consistency_spans, inclusion_spans, is_consistent, root_by_inclusion
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
