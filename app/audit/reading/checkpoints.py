"""The signed checkpoints that the log keeps, and the certificates of those who signed them.

When down: DatabaseDown; with the sequencer away a fresh checkpoint is SequencerSilent, and the newest one is still given.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.audit.format.checkpoint import Checkpoint, NoteRefused, key_id, parse_note
from app.audit.reading.hashes import LogDamaged
from app.errors import DependencyDown, NotFound
from app.signing.certificates import Certificate, CertificateRefused
from app.transaction import Transactions

CHANNEL = "sluice_checkpoint"
"""Where anybody on the database asks for a checkpoint."""
FRESH_WITHIN_S = 2.0
"""The sequencer answers in some 20 ms; whoever asks for a fresh checkpoint waits this long and no longer."""
LOOK_EVERY_S = 0.02

_COLUMNS = "size, note, signed"
_NEWEST = text(f"SELECT {_COLUMNS} FROM audit.checkpoint ORDER BY size DESC LIMIT 1")  # noqa: S608 - constants
_AT = text(f"SELECT {_COLUMNS} FROM audit.checkpoint WHERE size = :size")  # noqa: S608 - constants
_HEAD = text("SELECT log, size FROM audit.head")
_CERTIFICATES = text("SELECT der FROM audit.certificate ORDER BY role, added, fingerprint")
_ASK = text(f"NOTIFY {CHANNEL}")


class NoCheckpoint(NotFound):
    """The log has no signed checkpoint of what was asked for."""

    code = "no_checkpoint"
    hint = "Ask GET /audit/checkpoint?fresh=true and try again; it needs a running `sluice audit run`."


class SequencerSilent(DependencyDown):
    """The process that signs the log gave no checkpoint in time; decisions and the intake of the log go on."""

    code = "sequencer_silent"
    hint = "Start `sluice audit run`, or ask without fresh=true for the newest checkpoint that there is."


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint as it is kept."""

    size: int
    note: str
    signed_at: datetime

    @property
    def tree_head(self) -> Checkpoint:
        """What the note says; its signature is for the reader to check. Raises LogDamaged."""
        try:
            said, _ = parse_note(self.note)
        except NoteRefused as refused:
            raise LogDamaged(f"the checkpoint kept for size {self.size}: {refused.message}") from None
        if said.size != self.size:
            raise LogDamaged(f"the checkpoint kept for size {self.size} is one of size {said.size}")
        return said


async def newest(connection: AsyncConnection) -> SignedCheckpoint:
    """The newest checkpoint. Raises NoCheckpoint."""
    row = (await connection.execute(_NEWEST)).one_or_none()
    if row is None:
        raise NoCheckpoint("nothing of the log is signed yet", field="size")
    return SignedCheckpoint(row.size, row.note, row.signed)


async def checkpoint_at(connection: AsyncConnection, size: int | None) -> SignedCheckpoint:
    """The checkpoint of `size` entries, the newest where it is None. Raises NoCheckpoint."""
    if size is None:
        return await newest(connection)
    row = (await connection.execute(_AT, {"size": size})).one_or_none()
    if row is None:
        raise NoCheckpoint(
            f"size: no checkpoint was signed at {size} entries",
            hint="Leave it out for the newest; GET /audit/checkpoint says which size that has.",
            field="size",
        )
    return SignedCheckpoint(row.size, row.note, row.signed)


async def certificates(connection: AsyncConnection) -> list[bytes]:
    """The root's and every signer's certificate, as DER."""
    return [bytes(row.der) for row in await connection.execute(_CERTIFICATES)]


async def origin_and_size(connection: AsyncConnection) -> tuple[str, int]:
    """The id of the log and how many entries it has."""
    row = (await connection.execute(_HEAD)).one()
    return str(row.log), row.size


async def fresh(transactions: Transactions) -> SignedCheckpoint:
    """A checkpoint of all that is in the log now, signed for us where there was none. Raises SequencerSilent, NoCheckpoint, DatabaseDown."""

    async def ask(connection: AsyncConnection) -> int:
        _, size = await origin_and_size(connection)
        await connection.execute(_ASK)
        return size

    size = await transactions.run(ask)
    try:
        async with asyncio.timeout(FRESH_WITHIN_S):
            while size:
                signed = await transactions.run(_newest_or_none)
                if signed is not None and signed.size >= size:
                    return signed
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        raise SequencerSilent(f"no checkpoint of the log's {size} entries within {FRESH_WITHIN_S:.0f} s") from None
    return await transactions.run(newest)


async def _newest_or_none(connection: AsyncConnection) -> SignedCheckpoint | None:
    try:
        return await newest(connection)
    except NoCheckpoint:
        return None


def signer_of(signed: SignedCheckpoint, ders: Sequence[bytes]) -> Certificate:
    """Which of these certificates signed the note, by the key that it names. Raises LogDamaged where none is kept."""
    return signer_of_note(signed.tree_head, signed.note, ders)


def signer_of_note(checkpoint: Checkpoint, note: str, ders: Sequence[bytes]) -> Certificate:
    """The same of a note that says `checkpoint`."""
    _, signatures = parse_note(note)
    named = {identity for identity, _ in signatures}
    for der in ders:
        try:
            certificate = Certificate.load(der)
        except CertificateRefused:
            continue  # a damaged one is no reason to hide the others
        if key_id(checkpoint.origin, certificate.spki) in named:
            return certificate
    raise LogDamaged(f"the certificate that signed the checkpoint of size {checkpoint.size} is not in the log")
