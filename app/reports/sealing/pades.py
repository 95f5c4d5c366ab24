"""A second signature for ordinary PDF readers, which know no SM2: PAdES (ETSI EN 319 142) with ECDSA P-256 and SHA-256.

It comes first; the SM2 signature after it is over it, too, and readers call that a further signature, which is allowed. Its level
is B-B, or B-T where an authority gave a time stamp.

When down: a key or certificate that cannot be used is a ConfigError before anything is made.
"""

import asyncio
from datetime import datetime
from pathlib import Path

from asn1crypto import keys, pem, x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pyhanko.sign.fields import SigSeedSubFilter
from pyhanko.sign.signers.pdf_cms import PdfCMSSignedAttributes, SimpleSigner

from app import private_files
from app.errors import ConfigError
from app.reports.sealing.pdf import with_signature
from app.reports.sealing.timestamps import StampedWithin, TimeStampAuthority

FIELD = "PAdES"
DIGEST = "sha256"
KEY, CERTIFICATES = "report.pades_key", "report.pades_certificates"
ROOM_BYTES = 4096  # beside the certificates
TOKEN_BYTES = 12 * 1024  # an authority's certificates come with its token
_REMEDY = "Give a P-256 key (PEM, PKCS#8, not encrypted, mode 0600) and its certificate with those above it (PEM)."


class Pades:
    """The key and the certificates of such signatures."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificates: list[x509.Certificate]) -> None:
        own, *above = certificates
        der = key.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        # None gives it a store of its own, which its base class says.
        self._signer = SimpleSigner(signing_cert=own, signing_key=keys.PrivateKeyInfo.load(der), cert_registry=None)  # type: ignore[arg-type]
        self._signer.cert_registry.register_multiple(above)
        self._room = ROOM_BYTES + sum(len(one.dump()) for one in certificates)
        self.not_before: datetime = own["tbs_certificate"]["validity"]["not_before"].native
        self.not_after: datetime = own["tbs_certificate"]["validity"]["not_after"].native

    @classmethod
    def of(cls, key: str, certificates: str) -> "Pades | None":
        """As the two settings have it; None where neither is set. Raises ConfigError."""
        for field, value, other in ((KEY, key, certificates), (CERTIFICATES, certificates, key)):
            if other and not value:
                raise ConfigError(
                    f"{field}: not set, and such a signature takes both its key and its certificates", hint=_REMEDY, field=field
                )
        return cls.load(Path(key), Path(certificates)) if key else None

    @classmethod
    def load(cls, key_file: Path, certificates_file: Path) -> "Pades":
        """The key and the certificates in these files. Raises ConfigError."""
        text = private_files.read(key_file, named_by=KEY)
        try:
            key = serialization.load_pem_private_key(text, password=None)
        except (ValueError, TypeError):
            raise ConfigError(f"{KEY}: {key_file} has no private key that can be used", hint=_REMEDY, field=KEY) from None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
            raise ConfigError(f"{KEY}: {key_file} is not of the curve P-256", hint=_REMEDY, field=KEY)
        certificates = _certificates(certificates_file)
        public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        if certificates[0].public_key.dump() != public:
            raise ConfigError(f"{CERTIFICATES}: the first in {certificates_file} is not of the key {KEY}", hint=_REMEDY, field=CERTIFICATES)
        return cls(key, certificates)

    def sign(self, pdf: bytes, at: datetime, authority: TimeStampAuthority | None) -> bytes:
        """`pdf` with such a signature as of `at`. Raises NotSealed, and NoTimeStamp where `authority` gives none."""
        stamper = StampedWithin(authority) if authority else None

        def sign(digest: bytes) -> bytes:
            attributes = PdfCMSSignedAttributes(signing_time=None)  # PAdES has it in the PDF, not among what the CMS signs
            work = self._signer.async_sign(digest, DIGEST, use_pades=True, timestamper=stamper, signed_attr_settings=attributes)
            return bytes(asyncio.run(work).dump())

        room = self._room + (TOKEN_BYTES if authority else 0)
        return with_signature(pdf, FIELD, at, subfilter=SigSeedSubFilter.PADES, digest=DIGEST, room=room, sign=sign)


def _certificates(file: Path) -> list[x509.Certificate]:
    with private_files.refused_as(f"{CERTIFICATES}: {file}", _REMEDY):
        text = file.read_bytes()
    try:
        found = [x509.Certificate.load(der, strict=True) for label, _, der in pem.unarmor(text, multiple=True) if label == "CERTIFICATE"]
        _ = [one.native for one in found]
    except (ValueError, TypeError):
        found = []
    if not found:
        raise ConfigError(f"{CERTIFICATES}: {file} has no certificate in PEM", hint=_REMEDY, field=CERTIFICATES)
    return found
