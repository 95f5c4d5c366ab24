"""Signs the head of the log and publishes that as a checkpoint; shows the log every certificate before its key signs anything.

When down: without a database psycopg.Error, and nothing is stored. A key that does not sign leaves the log growing and unsigned,
which is tried again each second; /readyz tells the age of the newest checkpoint.
"""

import asyncio
from datetime import datetime

import structlog

from app.audit.format.checkpoint import Checkpoint, key_id, open_note, sign_note
from app.audit.records.entry import SERVICE, Entry
from app.audit.records.key import signer_created, signer_rotated
from app.audit.sequencing.head import newest
from app.audit.sequencing.queries import QUERIES
from app.audit.sequencing.root import check_root
from app.audit.sequencing.session import Connection
from app.clock import Clock
from app.errors import SluiceError
from app.signing.certificates import Certificate
from app.signing.keys import KeyFolder
from app.signing.sm2 import PublicKey

log = structlog.get_logger()


class SignerExpired(SluiceError):
    """The certificate of the log's key has ended, so that whatever it signs would be refused by verifiers."""

    code = "signer_expired"
    exit_code = 6
    hint = "Make another with `sluice audit keys rotate`; the running process takes it within a second."


class Publisher:
    """Checkpoints and certificates of one log, signed with the keys of one folder, on connections as sluice_sequencer."""

    def __init__(self, keys: KeyFolder, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock

    @property
    def latest(self) -> datetime | None:
        """The last instant of which our key may sign what was recorded then; None once that is over, since the next key will."""
        ends = self._keys.certificate.not_after
        return ends if self._clock.utcnow() <= ends else None

    async def introduce(self, connection: Connection) -> list[Entry]:
        """Store all certificates that the log does not have yet; the entries that say so belong into the same transaction.

        Raises ConfigError where the log has another root, which nobody can have given it meanwhile: we hold its head.
        """
        await connection.execute(QUERIES["lock_head"])
        await check_root(connection, self._keys.path, self._keys.root)
        root, *signers = self._keys.certificates
        await self._add(connection, "root", root)
        added = [(signer, await self._add(connection, "signer", signer)) for signer in signers]
        return [self._entry(signer, before) for signer, before in added if before is not None]

    async def publish(self, connection: Connection) -> int:
        """Sign the head unless that is done; the size of the newest checkpoint, 0 for an empty log.

        Raises psycopg.Error, LogDamaged, SignerExpired, SigningFailed, NoteRefused.
        """
        head = await newest(connection)
        checkpoint = head.checkpoint
        if head.size > head.signed:
            note = await asyncio.to_thread(self._signed, checkpoint)
            values = {"size": head.size, "note": note, "signed": self._clock.utcnow()}
            await connection.execute(QUERIES["add_checkpoint"], values)
        return head.size

    def _signed(self, checkpoint: Checkpoint) -> str:
        """The note, opened again with the key that its certificate names: a verifier has nothing else."""
        certificate = self._keys.certificate
        if self._clock.utcnow() > certificate.not_after:
            raise SignerExpired(f"the certificate {certificate.subject!r} of the log's key ended on {certificate.not_after:%Y-%m-%d}")
        note = sign_note(checkpoint, self._keys.signer)
        open_note(note, checkpoint.origin, {key_id(checkpoint.origin, certificate.spki): PublicKey(certificate.spki)})
        return note

    async def _add(self, connection: Connection, role: str, certificate: Certificate) -> list[Certificate] | None:
        """None where the log has it; else the certificate that it follows in its role, or nothing where it is the first."""
        values = {"fingerprint": certificate.fingerprint, "role": role, "der": certificate.der, "added": self._clock.utcnow()}
        added = await (await connection.execute(QUERIES["add_certificate"], values)).fetchall()
        if not added:
            return None
        log.info("certificate added to the log", role=role, fingerprint=certificate.fingerprint.hex())
        return [Certificate.load(before) for (before,) in added if before is not None]

    def _entry(self, certificate: Certificate, before: list[Certificate]) -> Entry:
        recorded, operator = self._clock.utcnow(), self._keys.maker(certificate) or SERVICE
        if not before:
            return signer_created(recorded=recorded, operator=operator, signer=certificate)
        return signer_rotated(recorded=recorded, operator=operator, before=before[0], after=certificate)
