"""Whether the checkpoints of an export are signed, in time, and sign the tree that its entries make. Pure, but for the threads it uses."""

from dataclasses import dataclass

from app.audit.format.checkpoint import MAX_NOTE_BYTES, Checkpoint, NoteRefused
from app.audit.verification.report import Finding, What, finding
from app.audit.verification.signers import OpenedNote, SignerKey, Signers

BATCH = 256
"""Checkpoints that are checked together while nothing is read: threads that take turns with the reader only wait for it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the file a checkpoint stands, and what it has to agree with."""

    name: str
    size: int
    root: bytes | None
    """None where it cannot be told, since entries are missing."""
    recorded: str
    """Of the entry before it that was recorded last, RFC 3339."""
    seq: int
    """Of the same entry."""


class Signed:
    """Takes the checkpoints of one file in order, and adds what is wrong with them to `findings`."""

    def __init__(self, signers: Signers, findings: list[Finding]) -> None:
        self.good = 0
        self.breaks = 0
        """Checkpoints that do not fit the entries; only the first is a finding, since none after it can fit."""
        self.newest: Checkpoint | None = None
        """The newest good one."""
        self._signers = signers
        self._findings = findings
        self._waiting: list[tuple[Place, str]] = []
        self._proven = 0
        self._late: set[int] = set()

    def take(self, note: str, place: Place) -> None:
        """Check `note` now or later."""
        # One that is too long is refused for it; meanwhile hundreds of them would fill memory.
        self._waiting.append((place, note[: MAX_NOTE_BYTES + 1]))
        if len(self._waiting) >= BATCH:
            self.settle()

    def settle(self) -> None:
        """Check all that wait."""
        places, notes = [place for place, _ in self._waiting], [note for _, note in self._waiting]
        self._waiting.clear()
        for place, note in zip(places, self._signers.open(notes), strict=True):
            self._check(place, note)

    def _check(self, place: Place, note: OpenedNote) -> None:
        if isinstance(note, NoteRefused):
            if self._signers.known:
                self._found("checkpoint", f"{place.name}: {note.message}")
            return
        checkpoint, signer = note
        if checkpoint.size != place.size:
            self._found("checkpoint", f"{place.name}: the checkpoint of size {checkpoint.size} stands where the tree has {place.size}")
            return
        self._check_time(place, signer)
        if place.root is None:
            return
        if checkpoint.root != place.root:
            self._broken(checkpoint.size)
            return
        self.good += 1
        self._proven, self.newest = checkpoint.size, checkpoint

    def _check_time(self, place: Place, signer: SignerKey) -> None:
        if place.recorded > signer.not_after and place.seq not in self._late:
            self._late.add(place.seq)
            why = f"recorded at {place.recorded}, and signed at size {place.size} with a certificate that ended at {signer.not_after}"
            self._found("checkpoint", why, place.seq)

    def _broken(self, size: int) -> None:
        self.breaks += 1
        if self.breaks == 1:
            since = f"the checkpoint of size {self._proven}" if self._proven else "the beginning"
            why = f"between {since} and that of size {size} there are entries or hashes that are not those that were signed"
            self._found("tree", why, self._proven, size - 1)

    def _found(self, what: What, why: str, seq: int | None = None, last: int | None = None) -> None:
        self._findings.append(finding("tampered", what, why, seq, last))
