"""Who signed the checkpoints of an export: the signers among its certificates that a given root issued. Pure."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

from app.audit.format.checkpoint import Checkpoint, NoteRefused, key_id, open_note
from app.instants import rfc3339
from app.signing.certificates import Certificate, CertificateRefused, verify_issued, verify_root
from app.signing.sm2 import PublicKey

THREADS = 2  # a signature takes most of a millisecond in OpenSSL, outside of the interpreter's lock
MAX_CERTIFICATES = 256  # a new signer each year for two centuries; each costs whoever verifies a few milliseconds


@dataclass(frozen=True, slots=True)
class SignerKey:
    """A key that signed checkpoints, and until when it might."""

    key: PublicKey
    not_after: str
    """RFC 3339, spelled like `recorded` of entries, so that the two compare as text."""

    def verify(self, signature: bytes, message: bytes) -> bool:
        """Whether the DER signature is one of `message`."""
        return self.key.verify(signature, message)


OpenedNote = tuple[Checkpoint, SignerKey] | NoteRefused


class Signers:
    """The signers of log `origin` that `root` issued, by the ids that notes name them with. Raises nothing: `wrong` says what is wrong.

    Signers of another root in the file are passed over: a log may have changed its root. What no root issued is wrong.
    """

    def __init__(self, certificates: Sequence[bytes], root: Certificate, origin: str) -> None:
        self._origin = origin
        self._by_id: dict[bytes, SignerKey] = {}
        self.wrong: list[str] = []
        if len(certificates) > MAX_CERTIFICATES:
            self.wrong.append(f"the file has {len(certificates)} certificates, more than {MAX_CERTIFICATES}")
            return
        others = []
        for certificate in self._loaded(certificates):
            if certificate.der == root.der:
                continue
            if _refusal(certificate, root) is None:
                self._add(certificate)
            else:
                others.append(certificate)
        self.wrong += _strays(others, root)
        if not self._by_id:
            self.wrong.append("the given root issued none of the signers in the file")

    @property
    def known(self) -> bool:
        """Whether there is any; without one no note can be told from another, and `wrong` has said so for all of them."""
        return bool(self._by_id)

    def open(self, notes: Sequence[str]) -> list[OpenedNote]:
        """Each note's checkpoint and who signed it, or why it is refused. Signatures are checked in threads, a share for each."""
        shares = [notes[at::THREADS] for at in range(THREADS)]
        with ThreadPoolExecutor(THREADS) as pool:
            futures = [pool.submit(self._open, share) for share in shares]
            wait(futures)  # who waits for one after the other takes the lock from those who work
        results = [iter(future.result()) for future in futures]
        return [next(results[at % THREADS]) for at in range(len(notes))]

    def _open(self, notes: Sequence[str]) -> list[OpenedNote]:
        return [self._open_one(note) for note in notes]

    def _open_one(self, note: str) -> OpenedNote:
        try:
            checkpoint, identity = open_note(note, self._origin, self._by_id)
        except NoteRefused as error:
            return error
        return checkpoint, self._by_id[identity]

    def _loaded(self, certificates: Sequence[bytes]) -> list[Certificate]:
        loaded = []
        for number, der in enumerate(certificates, 1):
            try:
                loaded.append(Certificate.load(der))
            except CertificateRefused as error:
                self.wrong.append(f"certificate {number} of the file: {error.message}")
        return loaded

    def _add(self, certificate: Certificate) -> None:
        signer = SignerKey(certificate.public_key, rfc3339(certificate.not_after))
        known = self._by_id.get(identity := key_id(self._origin, certificate.spki))
        if known is None or known.not_after < signer.not_after:  # one key may have had two certificates
            self._by_id[identity] = signer


def _strays(certificates: Sequence[Certificate], root: Certificate) -> list[str]:
    """What is wrong with each certificate that neither is a root nor was issued by one of them."""
    roots = [certificate for certificate in certificates if _is_root(certificate)]
    return [
        refusal
        for certificate in certificates
        if certificate not in roots
        and all(_refusal(certificate, one) for one in roots)
        and (refusal := _refusal(certificate, root)) is not None
    ]


def _is_root(certificate: Certificate) -> bool:
    try:
        verify_root(certificate)
    except CertificateRefused:
        return False
    return True


def _refusal(certificate: Certificate, root: Certificate) -> str | None:
    try:
        verify_issued(certificate, root)
    except CertificateRefused as error:
        return error.message
    return None
