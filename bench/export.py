"""An export of a log that was never in a database, for whoever measures how fast one is checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from app.audit.format.checkpoint import Checkpoint, origin_of, sign_note
from app.audit.format.export_file import CheckpointLine, EndLine, EntryLine, Header
from app.audit.format.leaf import GENESIS, Leaf, chain_hash, leaf_hash
from app.audit.format.merkle import Frontier
from app.audit.records.entry import Entry
from app.signing.certificates import Certificate, make_root, make_signer
from app.signing.sm2 import PrivateKey

ORIGIN = origin_of(str(UUID(int=0)))


@dataclass(frozen=True, slots=True)
class Export:
    """The lines of a file, and the root certificate that vouches for it."""

    lines: tuple[bytes, ...]
    root: Certificate


def export(entries: Sequence[Entry], *, every: int) -> Export:
    """The file of a log with these entries and a checkpoint after `every` of them; their number is a multiple of it."""
    root_key, key = PrivateKey.generate(), PrivateKey.generate()
    began = datetime.now(UTC) - timedelta(days=1)
    root = make_root(root_key, began)
    signer = make_signer(key.spki, root_key, root, began)
    frontier, chain, note, lines = Frontier(), GENESIS, "", []
    for seq, entry in enumerate(entries):
        leaf = Leaf.of(seq, entry.id, entry.recorded, entry.retention, entry.body).text
        hashed = leaf_hash(leaf)
        frontier.append(hashed)
        chain = chain_hash(chain, hashed)
        lines.append(EntryLine(entry.body, leaf, hashed).line())
        if frontier.size % every == 0:
            note = sign_note(Checkpoint(ORIGIN, frontier.size, frontier.root()), key)
            lines.append(CheckpointLine(note).line())
    size = frontier.size
    header = Header(ORIGIN, 0, size, size, GENESIS, (), (), note, (root.der, signer.der))
    return Export((header.line(), *lines, EndLine(size, chain).line()), root)
