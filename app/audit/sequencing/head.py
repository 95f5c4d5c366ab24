"""Where the log ends, and whether what is there makes that end."""

from dataclasses import dataclass

from app.audit.format.checkpoint import Checkpoint, origin_of, parse_note
from app.audit.format.merkle import covering, fold
from app.audit.reading.hashes import LogDamaged, Parameters, found
from app.audit.sequencing.queries import QUERIES
from app.audit.sequencing.sequencer import frontier_of
from app.audit.sequencing.session import Connection


@dataclass(frozen=True, slots=True)
class Head:
    """Where the log ends, and its newest checkpoint."""

    log: str
    size: int
    frontier: bytes
    signed: int
    """Entries of its newest checkpoint; 0 and an empty note without any."""
    note: str

    @property
    def checkpoint(self) -> Checkpoint:
        """What is to be signed. Raises LogDamaged where the head is not one of a tree, or older than what was signed."""
        if self.size < self.signed:
            raise LogDamaged(f"the log ends at {self.size}, but its checkpoint of {self.signed} entries is signed: its end was removed")
        return Checkpoint(origin_of(self.log), self.size, frontier_of(self.size, self.frontier).root())


async def newest(connection: Connection) -> Head:
    """The head of the log as it is now."""
    cursor = await connection.execute(QUERIES["head"])
    log_id, size, frontier, signed, note = (await cursor.fetchall())[0]
    return Head(str(log_id), size, frontier, signed or 0, note or "")


async def check(connection: Connection) -> Head:
    """The head, where the leaves that are there make it and what was signed last. Raises LogDamaged.

    Reads a few hundred hashes, whatever the size: what lies below them is the business of `sluice audit verify`.
    """

    async def ask(statement: str, parameters: Parameters) -> list[tuple[int, int, bytes]]:
        return await (await connection.execute(statement.encode(), parameters)).fetchall()

    head = await newest(connection)
    _ = head.checkpoint
    whole, signed = list(covering(0, head.size)), list(covering(0, head.signed))
    known = await found(ask, whole + signed)
    if b"".join(known.get(piece, b"") for piece in whole) != head.frontier:
        raise LogDamaged(f"the head of the log, at {head.size} entries, is not that of its leaves")
    if head.note and fold([known.get(piece, b"") for piece in signed]) != parse_note(head.note)[0].root:
        raise LogDamaged(f"the leaves of the log are not those of its checkpoint of {head.signed} entries")
    return head
