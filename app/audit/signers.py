"""Who signed the checkpoints of an export: the signers among its certificates that a given root issued. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.audit.checkpoint import key_id
from app.audit.entry import rfc3339
from app.signing.certificates import Certificate, CertificateRefused, verify_issued, verify_root
from app.signing.sm2 import PublicKey

MAX_CERTIFICATES = 256  # a new signer each year for two centuries; each costs whoever verifies a few milliseconds


@dataclass(frozen=True, slots=True)
class Signer:
    """A key that signed checkpoints, and until when it might."""

    key: PublicKey
    not_after: str
    """RFC 3339, spelled like `recorded` of entries, so that the two compare as text."""

    def verify(self, signature: bytes, message: bytes) -> bool:
        """Whether the DER signature is one of `message`."""
        return self.key.verify(signature, message)


def signers_of(certificates: Sequence[bytes], root: Certificate, origin: str) -> tuple[dict[bytes, Signer], list[str]]:
    """The signers that `root` issued, by key id for notes of `origin`, and what is wrong with certificates.

    Signers of another root in the file are passed over: a log may have changed its root. What no root issued is wrong.
    """
    if len(certificates) > MAX_CERTIFICATES:
        return {}, [f"the file has {len(certificates)} certificates, more than {MAX_CERTIFICATES}"]
    found: dict[bytes, Signer] = {}
    wrong, others = [], []
    for number, der in enumerate(certificates, 1):
        try:
            certificate = Certificate.load(der)
        except CertificateRefused as error:
            wrong.append(f"certificate {number} of the file: {error.message}")
            continue
        if der == root.der:
            continue
        if _refusal(certificate, root) is None:
            signer = Signer(certificate.public_key, rfc3339(certificate.not_after))
            identity = key_id(origin, certificate.spki)
            if identity not in found or found[identity].not_after < signer.not_after:
                found[identity] = signer
        else:
            others.append(certificate)
    return found, wrong + _strays(others, root)


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
