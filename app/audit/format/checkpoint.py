"""Checkpoint notes: size and root of the log in three lines, signed (C2SP signed-note and tlog-checkpoint, with SM2).

    sluice/0192…                                        origin: which log
    1234                                                size
    base64 of the root
                                                        an empty line, then one line for each signature:
    — sluice/0192… base64(key id || DER signature)

SM2 has no number of its own in that format, so its key ids are made with type 0xff and the name below.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from app.audit.format.leaf import HASH_BYTES
from app.errors import SluiceError

ALGORITHM = b"\xffsm2-sm3-1234567812345678"
KEY_ID_BYTES = 4
MAX_NOTE_BYTES = 16 * 1024
MAX_SIGNATURES = 16
MAX_SIZE = 2**63 - 1
DASH = "\u2014"
_BETWEEN = r"(?:#[^\n]*\n|\n)*+"
_NOTE = re.compile(_BETWEEN + r"((?:[^#\n][^\n]*\n){3}\n(?:\u2014 [^\n]*\n)+)")
_REST = re.compile(_BETWEEN)
_SHOWN = 60
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")


class NoteRefused(SluiceError):
    """A checkpoint note is malformed, of another log, or not signed by a key that is known."""

    code = "note_refused"
    status = 422
    exit_code = 4
    hint = "Compare it with GET /audit/checkpoint; a note that was changed does not prove anything."


class Signer(Protocol):
    """A private key that signs; software here, a device elsewhere."""

    def sign(self, message: bytes) -> bytes:
        """The DER signature of `message`, checked with the public key."""

    @property
    def spki(self) -> bytes:
        """The public key as DER SubjectPublicKeyInfo."""


class Verifier(Protocol):
    """A public key."""

    def verify(self, signature: bytes, message: bytes) -> bool:
        """Whether the DER signature is one of `message`; malformed ones are not."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The log `origin` at `size` entries, with its root of 32 bytes."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> bytes:
        """What is signed."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n".encode()


def origin_of(log: str) -> str:
    """The origin of the log with id `log`."""
    return f"sluice/{log}"


def key_id(origin: str, spki: bytes) -> bytes:
    """Which key a signature line is of: the first bytes of SHA-256 over name, newline, type, key (C2SP signed-note)."""
    return hashlib.sha256(origin.encode() + b"\n" + ALGORITHM + spki).digest()[:KEY_ID_BYTES]


def sign_note(checkpoint: Checkpoint, signer: Signer) -> str:
    """The note of `checkpoint` with one signature."""
    signature = key_id(checkpoint.origin, signer.spki) + signer.sign(checkpoint.text)
    return f"{checkpoint.text.decode()}\n{DASH} {checkpoint.origin} {base64.b64encode(signature).decode()}\n"


def parse_note(note: str) -> tuple[Checkpoint, list[tuple[bytes, bytes]]]:
    """What a note says, and key id and DER of each signature in its origin's name; none is checked. Raises NoteRefused."""
    if len(note) > MAX_NOTE_BYTES:
        raise NoteRefused("the note is larger than any checkpoint")
    text, blank, signatures = note.partition("\n\n")
    lines = text.split("\n")
    if not blank or len(lines) != 3 or not lines[0] or not signatures.endswith("\n"):
        raise NoteRefused("not a checkpoint: expected origin, size and root, an empty line, and signatures")
    origin, size, root = lines
    if not _SIZE.fullmatch(size) or int(size) > MAX_SIZE:
        raise NoteRefused(f"the size {size[:20]!r} of a checkpoint is not a plain number below 2^63")
    checkpoint = Checkpoint(origin, int(size), _decoded(root, "root"))
    if len(checkpoint.root) != HASH_BYTES:
        raise NoteRefused(f"the root has {len(checkpoint.root)} bytes, not {HASH_BYTES}")
    return checkpoint, _signatures(signatures, origin)


def open_note(note: str, origin: str, keys: Mapping[bytes, Verifier]) -> tuple[Checkpoint, bytes]:
    """The checkpoint of a note of log `origin` and the id of the key that signed it, one of `keys` by id.

    Unknown keys are passed over; a known one whose signature is wrong refuses the note. Raises NoteRefused.
    """
    checkpoint, signatures = parse_note(note)
    if checkpoint.origin != origin:
        raise NoteRefused(f"a checkpoint of the log {checkpoint.origin!r}, not of {origin!r}")
    known = [(identity, der) for identity, der in signatures if identity in keys]
    for identity, der in known:
        if not keys[identity].verify(der, checkpoint.text):
            raise NoteRefused(f"the checkpoint of size {checkpoint.size} has a signature that is not of what it says")
    if not known:
        raise NoteRefused(f"the checkpoint of size {checkpoint.size} is not signed by a key of this log")
    return checkpoint, known[0][0]


def _signatures(signatures: str, origin: str) -> list[tuple[bytes, bytes]]:
    lines = signatures.removesuffix("\n").split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise NoteRefused(f"the note has more than {MAX_SIGNATURES} signatures")
    found = []
    for line in lines:
        dash, _, rest = line.partition(" ")
        name, _, encoded = rest.partition(" ")
        if dash != DASH or not name:
            raise NoteRefused("a signature line is not '\u2014 name base64'")
        raw = _decoded(encoded, "signature")
        if len(raw) <= KEY_ID_BYTES:
            raise NoteRefused("a signature has no more bytes than the id of its key")
        if name == origin:
            found.append((raw[:KEY_ID_BYTES], raw[KEY_ID_BYTES:]))
    return found


def _decoded(text: str, what: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raw = None
    # The last character has bits to spare, so that several texts would be one value.
    if raw is None or base64.b64encode(raw).decode() != text:
        raise NoteRefused(f"the {what} of a checkpoint is not base64 as it is written")
    return raw


def split_notes(text: str) -> list[str]:
    """The notes that stand one after the other in `text`, as mails and files keep them: with empty lines, and lines that begin with `#`, between.

    Raises NoteRefused where there is anything else, or no note at all.
    """
    if not text.strip():
        raise NoteRefused("the file is empty")
    if text.lstrip().startswith(("{", "[")):
        raise NoteRefused("the file is JSON; a checkpoint is kept as text: Accept: text/plain")
    # Mails change the ends of lines, and editors the last one; neither is signed.
    plain, at, notes = text.replace("\r\n", "\n").strip("\n") + "\n", 0, []
    while match := _NOTE.match(plain, at):
        notes.append(match[1])
        at = match.end()
    if (rest := _REST.sub("", plain[at:], count=1)) or not notes:
        raise NoteRefused(
            f"no checkpoint, but {rest[:_SHOWN]!r} after {len(notes)} of them" if rest else "there is no checkpoint in the file"
        )
    return notes
