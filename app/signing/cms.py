"""Signatures beside what they sign: CMS SignedData (RFC 5652) with SM2 and SM3, in the one form that Sluice writes and takes. Pure.

    ContentInfo signedData: version 1, digestAlgorithms {SM3}, content type data, no content
      certificates    the signer's alone
      signerInfo      one: version 1, issuer and serial number of that certificate, SM3, SM2-with-SM3, both without parameters
        signedAttrs   contentType (data), signingTime (whole seconds), messageDigest (SM3 of the content); no other
        unsignedAttrs none

What is read is written again and must be the same bytes, so that two readers can't read it differently. There is no
signing-certificate attribute (RFC 5035): a root issues one certificate for a key, so there is no other to put in its place.
`openssl cms -verify` knows no SM2 ID and refuses what conforms; `openssl dgst -verify` over the signedAttrs takes it.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from asn1crypto import algos, core, x509
from asn1crypto import cms as asn1_cms

from app.errors import SluiceError
from app.instants import rfc3339
from app.signing.certificates import SM2_WITH_SM3, UTC_TIME_ENDS, Certificate, CertificateRefused, verify_issued, verify_valid
from app.signing.sm2 import KeyRefused, PrivateKey

SM3 = "1.2.156.10197.1.401"
DIGEST_BYTES = 32
MAX_DER_BYTES = 32 * 1024
"""A certificate of the largest kind that we take, and as much again."""
Cause = Literal["malformed", "digest", "signature", "certificate", "expired"]


class SignatureRefused(SluiceError):
    """A signature is not one of these bytes by a signer of the given root; `cause` says in one word why."""

    code = "signature_refused"
    status = 422
    exit_code = 4

    def __init__(self, cause: Cause, message: str) -> None:
        super().__init__(message, hint="Get the file again from where it was made, and the root's certificate from a place you trust.")
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Signed:
    """What a signature says; only `verify` checks it."""

    certificate: Certificate
    """The signer's."""
    at: datetime
    """When it was made by the signer's own clock, in whole seconds, UTC."""
    digest: bytes = field(repr=False)
    """SM3 of what is signed, 32 bytes."""
    signature: bytes = field(repr=False)
    """SM2 over the signedAttrs, DER."""


def sign(digest: bytes, key: PrivateKey, certificate: Certificate, at: datetime) -> bytes:
    """The DER of a signature over content with the SM3 `digest`, by `key`, whose certificate is `certificate`. Raises SigningFailed."""
    at = at.astimezone(UTC).replace(microsecond=0)
    signature = key.sign(_attributes(digest, at).dump())
    return _encoded(Signed(certificate, at, digest, signature))


def read(der: bytes) -> Signed:
    """What the DER says. Raises SignatureRefused: malformed, or of a certificate that is not the one it names."""
    if len(der) > MAX_DER_BYTES:
        raise SignatureRefused("malformed", f"a signature of {len(der)} bytes; ours have 1 000")
    try:
        content = asn1_cms.ContentInfo.load(der, strict=True)["content"]
        (info,), (embedded,) = content["signer_infos"], content["certificates"]
        attributes = {attribute["type"].native: attribute["values"][0] for attribute in info["signed_attrs"]}
        signed = Signed(
            Certificate.load(embedded.dump()),
            attributes["signing_time"].native,
            attributes["message_digest"].native,
            info["signature"].native,
        )
        named = info["sid"].chosen.dump()
        again = _encoded(signed, named)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, CertificateRefused):
        raise SignatureRefused("malformed", "not a signature in the form that Sluice writes") from None
    if again != der:
        raise SignatureRefused("malformed", "a signature that is not written in the one form that Sluice writes")
    if named != _name(signed.certificate).dump():
        raise SignatureRefused("certificate", "the certificate in it is not the one that the signature names")
    return signed


def verify(der: bytes, digest: bytes, root: Certificate) -> Signed:
    """What was signed by whom and when, once all of it is checked: content of this SM3 `digest`, a signer that `root` issued.

    Raises SignatureRefused; the first that is wrong of form, digest, certificate, signature and time.
    """
    signed = read(der)
    if signed.digest != digest:
        raise SignatureRefused("digest", "the content is not what was signed: it has another SM3")
    try:
        verify_issued(signed.certificate, root)
        good = signed.certificate.public_key.verify(signed.signature, _attributes(signed.digest, signed.at).dump())
    except (CertificateRefused, KeyRefused) as error:
        raise SignatureRefused("certificate", error.message) from None
    if not good:
        raise SignatureRefused("signature", f"the signature is not by the key of {signed.certificate.subject!r}")
    try:
        verify_valid(signed.certificate, signed.at)
        verify_valid(root, signed.at)
    except CertificateRefused as error:
        raise SignatureRefused("expired", f"signed at {rfc3339(signed.at)}: {error.message}") from None
    return signed


def _encoded(signed: Signed, name: bytes | None = None) -> bytes:
    """The one form; `name` instead of what the certificate itself would be named by."""
    sm3, certificate = _sm3(), x509.Certificate.load(signed.certificate.der)
    named = asn1_cms.IssuerAndSerialNumber.load(name) if name else _name(signed.certificate)
    info = {
        "version": "v1",
        "sid": asn1_cms.SignerIdentifier({"issuer_and_serial_number": named}),
        "digest_algorithm": sm3,
        "signed_attrs": _attributes(signed.digest, signed.at),
        "signature_algorithm": algos.SignedDigestAlgorithm({"algorithm": SM2_WITH_SM3}),
        "signature": signed.signature,
    }
    content = {
        "version": "v1",
        "digest_algorithms": [sm3],
        "encap_content_info": {"content_type": "data"},
        "certificates": [certificate],
        "signer_infos": [info],
    }
    return bytes(asn1_cms.ContentInfo({"content_type": "signed_data", "content": asn1_cms.SignedData(content)}).dump())


def _attributes(digest: bytes, at: datetime) -> Any:
    """The signedAttrs as they are signed: a SET, which DER orders by its members' bytes."""
    if len(digest) != DIGEST_BYTES:
        raise ValueError(f"an SM3 digest has {DIGEST_BYTES} bytes, not {len(digest)}")
    form, time = ("utc_time", core.UTCTime) if at.year < UTC_TIME_ENDS else ("generalized_time", core.GeneralizedTime)
    members = [
        {"type": "content_type", "values": ["data"]},
        {"type": "signing_time", "values": [asn1_cms.Time({form: time(at)})]},
        {"type": "message_digest", "values": [digest]},
    ]
    return asn1_cms.CMSAttributes(members)


def _name(certificate: Certificate) -> Any:
    parsed = x509.Certificate.load(certificate.der)
    return asn1_cms.IssuerAndSerialNumber({"issuer": parsed.issuer, "serial_number": parsed.serial_number})


def _sm3() -> Any:
    return algos.DigestAlgorithm({"algorithm": SM3})
