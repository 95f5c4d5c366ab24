"""X.509 certificates for SM2 keys: a root that issues, signers that it issued, and no level between.

Two levels, because `openssl verify` hands the SM2 ID to the first certificate of a chain alone. The signature algorithm is
SM2-with-SM3 (1.2.156.10197.1.501) with its parameters absent, inside and outside of what is signed.
"""

import hashlib
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from asn1crypto import algos, core, pem, x509
from asn1crypto import keys as asn1_keys

from app.errors import SluiceError
from app.signing.sm2 import KeyRefused, PrivateKey, PublicKey
from app.signing.uses import LOG, KeyUse

ROOT_LIFE = timedelta(days=20 * 365)  # outlives the longest retention of entries that its signers signed
SIGNER_LIFE = timedelta(days=2 * 365)  # to be replaced each year; the second is for those who are late
BACKDATED = timedelta(hours=1)  # the clock of whoever verifies may be behind ours
SM2_WITH_SM3 = "1.2.156.10197.1.501"
CURVE = "1.2.156.10197.1.301"
ALGORITHM = bytes.fromhex("300a06082a811ccf55018375")
"""DER of SM2-with-SM3 without parameters."""
MAX_DER_BYTES = 16 * 1024  # thirty times ours; what is larger is not worth taking apart
SERIAL_BITS = 127  # random, and positive in 16 bytes
KEY_ID_BYTES = 20  # what RFC 7093 keeps of a longer hash
UTC_TIME_ENDS = 2050  # RFC 5280: from this year on the longer form
UNDERSTOOD = {"basic_constraints", "key_usage"}
"""Critical extensions that we act on; RFC 5280 has any other refuse the certificate."""
_PEM_LABEL = "CERTIFICATE"


class CertificateRefused(SluiceError):
    """A certificate is malformed, was not issued by the root that was given, or does not allow what it is used for."""

    code = "certificate_refused"
    status = 422
    exit_code = 4
    hint = "Compare its SM3 fingerprint with `sluice audit keys export-public` or `sluice report keys export-public`, and the root's with the one you were given."


@dataclass(frozen=True)
class Certificate:
    """What a certificate says; nothing of it is checked but its form."""

    der: bytes = field(repr=False)
    subject: str
    """Its common name."""
    spki: bytes = field(repr=False)
    """Its public key as DER SubjectPublicKeyInfo."""
    not_before: datetime
    not_after: datetime
    is_ca: bool

    @classmethod
    def load(cls, der: bytes) -> "Certificate":
        """The certificate that `der` is. Raises CertificateRefused."""
        if len(der) > MAX_DER_BYTES:
            raise CertificateRefused(f"a certificate of {len(der)} bytes; ours have 500")
        try:
            parsed = x509.Certificate.load(der, strict=True)
            tbs = parsed["tbs_certificate"]
            _ = parsed.native  # walks all of it: what is malformed deep inside is found here
            constraints = parsed.basic_constraints_value
            return cls(
                der=der,
                subject=str(tbs["subject"].native.get("common_name", "")),
                spki=tbs["subject_public_key_info"].dump(),
                not_before=tbs["validity"]["not_before"].native,
                not_after=tbs["validity"]["not_after"].native,
                is_ca=bool(constraints and constraints["ca"].native),
            )
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError):  # the last: parts within parts
            raise CertificateRefused("not a certificate in DER") from None

    @classmethod
    def load_pem(cls, text: bytes) -> "Certificate":
        """The first certificate of a PEM text. Raises CertificateRefused."""
        try:
            label, _, der = pem.unarmor(text)
        except (ValueError, TypeError):
            raise CertificateRefused("not PEM") from None
        if label != _PEM_LABEL:
            raise CertificateRefused(f"the PEM is of a {label}, not of a {_PEM_LABEL}")
        return cls.load(der)

    @property
    def pem(self) -> str:
        """The certificate between its two lines."""
        return str(pem.armor(_PEM_LABEL, self.der).decode("ascii"))

    @cached_property
    def fingerprint(self) -> bytes:
        """SM3 of the DER, 32 bytes."""
        return hashlib.new("sm3", self.der).digest()

    @cached_property
    def public_key(self) -> PublicKey:
        """Its public key, ready to verify. Raises KeyRefused."""
        return PublicKey(self.spki)

    @cached_property
    def _parsed(self) -> Any:
        return x509.Certificate.load(self.der, strict=True)


def make_root(key: PrivateKey, now: datetime, use: KeyUse = LOG) -> Certificate:
    """A certificate with which `key` may issue signers, signed by itself."""
    extensions = {
        "basic_constraints": (True, x509.BasicConstraints({"ca": True, "path_len_constraint": 0})),
        "key_usage": (True, x509.KeyUsage({"key_cert_sign", "crl_sign"})),
    }
    name = _name(f"{use.section} root", key.spki)
    return _issue(name, key.spki, extensions, (now - BACKDATED, now + ROOT_LIFE), issuer=name, key=key)


def make_signer(spki: bytes, root_key: PrivateKey, root: Certificate, now: datetime, use: KeyUse = LOG) -> Certificate:
    """A certificate for the signer with public key `spki`, issued by `root`; it ends no later than the root does."""
    extensions = {
        "basic_constraints": (True, x509.BasicConstraints({"ca": False})),
        "key_usage": (True, x509.KeyUsage({"digital_signature", "non_repudiation"})),
    }
    issuer = root._parsed.subject  # noqa: SLF001 - its bytes, which text would lose
    valid = (now - BACKDATED, min(now + SIGNER_LIFE, root.not_after))
    return _issue(_name(f"{use.section} signer", spki), spki, extensions, valid, issuer=issuer, key=root_key)


def verify_root(root: Certificate) -> None:
    """Check that `root` is signed by itself with SM2-with-SM3 and may issue signers. Raises CertificateRefused."""
    _check_form(root)
    if not root.is_ca or "key_cert_sign" not in _key_usage(root):
        raise CertificateRefused(f"{_called(root)} is no root: it may not issue certificates")
    _check_issued(root, root)


def verify_issued(certificate: Certificate, root: Certificate, at: datetime | None = None) -> None:
    """Check that `root` is one and issued `certificate` for signing, valid at `at` where that is given. Raises CertificateRefused."""
    verify_root(root)
    _check_form(certificate)
    if certificate.is_ca:
        raise CertificateRefused(f"{_called(certificate)} is a CA; a signer must not be one")
    constraints = certificate._parsed.basic_constraints_value  # noqa: SLF001
    if "key_cert_sign" in _key_usage(certificate) or (constraints and constraints["path_len_constraint"].native is not None):
        raise CertificateRefused(f"{_called(certificate)} is no CA, and says how it may issue certificates")
    if "digital_signature" not in _key_usage(certificate):
        raise CertificateRefused(f"{_called(certificate)} does not allow digital signatures")
    _check_issued(certificate, root)
    if at is not None:
        verify_valid(certificate, at)
        verify_valid(root, at)


def verify_valid(certificate: Certificate, at: datetime) -> None:
    """Check that `at` lies in the time of `certificate`, both ends included. Raises CertificateRefused."""
    if not certificate.not_before <= at <= certificate.not_after:
        begin, end, asked = (f"{instant:%Y-%m-%d %H:%M}" for instant in (certificate.not_before, certificate.not_after, at))
        raise CertificateRefused(f"{_called(certificate)} is valid from {begin} to {end} UTC, not on {asked}")


def _check_form(certificate: Certificate) -> None:
    parsed, called = certificate._parsed, _called(certificate)  # noqa: SLF001
    tbs = parsed["tbs_certificate"]
    if tbs["version"].native != "v3":
        raise CertificateRefused(f"{called} is not of version 3")
    if tbs["signature"].dump() != ALGORITHM or parsed["signature_algorithm"].dump() != ALGORITHM:
        raise CertificateRefused(f"{called} is not signed with SM2-with-SM3 ({SM2_WITH_SM3}, parameters absent), named alike twice")
    names = [extension["extn_id"].native for extension in tbs["extensions"]]
    if len(set(names)) != len(names):
        raise CertificateRefused(f"{called} has an extension twice")
    if unknown := parsed.critical_extensions - UNDERSTOOD:
        raise CertificateRefused(f"{called} has a critical extension that we do not know: {min(unknown)}")


def _check_issued(certificate: Certificate, issuer: Certificate) -> None:
    parsed, above, called = certificate._parsed, issuer._parsed, _called(certificate)  # noqa: SLF001
    tbs = parsed["tbs_certificate"]
    if tbs["issuer"].dump() != above["tbs_certificate"]["subject"].dump():
        raise CertificateRefused(f"{called} names another issuer than {_called(issuer)}")
    if parsed.authority_key_identifier and above.key_identifier and parsed.authority_key_identifier != above.key_identifier:
        raise CertificateRefused(f"{called} was issued by another key than that of {_called(issuer)}")
    try:
        _ = certificate.public_key
        unused_bits, signature = parsed["signature_value"].contents[:1], parsed["signature_value"].contents[1:]
        signed = unused_bits == b"\0" and issuer.public_key.verify(signature, tbs.dump())
    except KeyRefused as error:
        raise CertificateRefused(f"{called}: {error.message}") from None
    if not signed:
        raise CertificateRefused(f"{called} is not signed by {_called(issuer)}")


def _key_usage(certificate: Certificate) -> set[str]:
    usage = certificate._parsed.key_usage_value  # noqa: SLF001
    return set(usage.native) if usage else set()


def _called(certificate: Certificate) -> str:
    return f"the certificate {certificate.subject!r} ({certificate.fingerprint.hex()[:16]}…)"


def _name(what: str, spki: bytes) -> x509.Name:
    """No two are alike: a file with several roots stays unambiguous to whoever looks issuers up by name."""
    return x509.Name.build({"organization_name": "Sluice", "common_name": f"Sluice {what} {_key_identifier(spki).hex()[:16]}"})


def _key_identifier(spki: bytes) -> bytes:
    point = asn1_keys.PublicKeyInfo.load(spki)["public_key"].native
    return hashlib.new("sm3", point).digest()[:KEY_ID_BYTES]


def _issue(
    subject: x509.Name,
    spki: bytes,
    extensions: dict[str, tuple[bool, core.Asn1Value]],
    valid: tuple[datetime, datetime],
    *,
    issuer: x509.Name,
    key: PrivateKey,
) -> Certificate:
    identifiers = {
        "key_identifier": (False, core.OctetString(_key_identifier(spki))),
        "authority_key_identifier": (False, x509.AuthorityKeyIdentifier({"key_identifier": _key_identifier(key.spki)})),
    }
    algorithm = algos.SignedDigestAlgorithm({"algorithm": "sm2_sm3"})
    tbs = x509.TbsCertificate(
        {
            "version": "v3",
            "serial_number": secrets.randbits(SERIAL_BITS) or 1,
            "signature": algorithm,
            "issuer": issuer,
            "validity": {"not_before": _time(valid[0]), "not_after": _time(valid[1])},
            "subject": subject,
            "subject_public_key_info": asn1_keys.PublicKeyInfo.load(spki),
            "extensions": [
                {"extn_id": name, "critical": critical, "extn_value": value}
                for name, (critical, value) in (extensions | identifiers).items()
            ],
        }
    )
    certificate = {"tbs_certificate": tbs, "signature_algorithm": algorithm, "signature_value": key.sign(tbs.dump())}
    return Certificate.load(x509.Certificate(certificate).dump())


def _time(instant: datetime) -> x509.Time:
    form = "utc_time" if instant.year < UTC_TIME_ENDS else "general_time"
    return x509.Time(name=form, value=instant.replace(microsecond=0))


def _teach_asn1crypto() -> None:
    """Give asn1crypto the names of SM2's identifiers; twice is once."""
    algorithms = algos.SignedDigestAlgorithmId
    algorithms._map[SM2_WITH_SM3] = "sm2_sm3"  # noqa: SLF001 - only curves can be registered by a public way
    if algorithms._reverse_map is not None:  # noqa: SLF001 - made of the first at its first use
        algorithms._reverse_map["sm2_sm3"] = SM2_WITH_SM3  # noqa: SLF001
    asn1_keys.NamedCurve.register("sm2p256v1", CURVE, 32)


_teach_asn1crypto()
