"""A signer's certificate is taken if its root issued it for signing; any other is refused with its reason."""

from datetime import UTC, datetime, timedelta

import pytest
from asn1crypto import algos, core, x509
from asn1crypto import keys as asn1_keys
from hypothesis import given, settings
from hypothesis import strategies as st

from app.signing import certificates
from app.signing.certificates import Certificate, CertificateRefused, make_root, make_signer, verify_issued, verify_root
from app.signing.sm2 import PrivateKey

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ROOT_KEY, KEY = PrivateKey.generate(), PrivateKey.generate()
ROOT = make_root(ROOT_KEY, NOW)
SIGNER = make_signer(KEY.spki, ROOT_KEY, ROOT, NOW)

Extensions = dict[str, tuple[bool, core.Asn1Value]]
AS_SIGNER: Extensions = {
    "basic_constraints": (True, x509.BasicConstraints({"ca": False})),
    "key_usage": (True, x509.KeyUsage({"digital_signature"})),
}
AS_ROOT: Extensions = {
    "basic_constraints": (True, x509.BasicConstraints({"ca": True})),
    "key_usage": (True, x509.KeyUsage({"key_cert_sign"})),
}


def issued(extensions: Extensions, *, root: Certificate = ROOT, key: PrivateKey = ROOT_KEY) -> Certificate:
    """A certificate of KEY that `root` issued with these extensions."""
    return certificates._issue(root._parsed.subject, KEY.spki, extensions, (NOW - DAY, NOW + DAY), issuer=root._parsed.subject, key=key)


def resigned(certificate: Certificate, **changes: object) -> Certificate:
    """`certificate` with other fields of what is signed, and a good signature of ROOT_KEY over them."""
    tbs = x509.Certificate.load(certificate.der)["tbs_certificate"].copy()
    for field, value in changes.items():
        tbs[field] = value
    outer = {"tbs_certificate": tbs, "signature_algorithm": tbs["signature"], "signature_value": ROOT_KEY.sign(tbs.dump(force=True))}
    return Certificate.load(x509.Certificate(outer).dump())


def test_what_a_signer_is():
    """A signer of two years under a root of twenty: names, key, times, and fingerprints by SM3."""
    verify_issued(SIGNER, ROOT, NOW)

    assert ROOT.is_ca
    assert not SIGNER.is_ca
    assert KEY.spki == SIGNER.spki
    assert SIGNER.subject.startswith("Sluice audit signer ")
    assert (SIGNER.not_before, SIGNER.not_after) == (NOW - HOUR, NOW + 730 * DAY)
    assert (ROOT.not_before, ROOT.not_after) == (NOW - HOUR, NOW + 7300 * DAY)
    assert len(SIGNER.fingerprint) == 32
    assert SIGNER.fingerprint != ROOT.fingerprint


def test_a_signer_ends_with_its_root():
    """A signer that is issued late is not valid for longer than the root."""
    assert ROOT.not_after == make_signer(KEY.spki, ROOT_KEY, ROOT, ROOT.not_after - DAY).not_after


def test_no_two_certificates_are_alike():
    """Two certificates for one key have serial numbers of their own, positive and of 16 bytes at the most."""
    numbers = [make_signer(KEY.spki, ROOT_KEY, ROOT, NOW)._parsed.serial_number for _ in range(20)]

    assert len(set(numbers)) == 20
    assert all(0 < number < 2**127 for number in numbers)


def test_pem_and_back():
    """PEM holds the same certificate, also under lines of comment and before further ones."""
    assert Certificate.load_pem(f"# the root\n{ROOT.pem}{SIGNER.pem}".encode()) == ROOT


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 8 * len(SIGNER.der) - 1))
def test_no_single_bit_may_change(bit: int):
    """A certificate of which one bit was flipped, wherever, is refused."""
    changed = bytearray(SIGNER.der)
    changed[bit // 8] ^= 1 << bit % 8

    with pytest.raises(CertificateRefused):
        verify_issued(Certificate.load(bytes(changed)), ROOT)


@settings(max_examples=80, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.integers(0, len(SIGNER.der) - 1).map(lambda end: SIGNER.der[:end])))
def test_other_bytes_are_no_certificate(der: bytes):
    """Any bytes, and a certificate that was cut off, are refused, and nothing else is raised."""
    with pytest.raises(CertificateRefused):
        verify_issued(Certificate.load(der), ROOT)


def test_parts_within_parts_are_refused():
    """A certificate that nests deeper than any reader follows is none; whoever checks one is not ended by it."""
    nested = b"\x05\x00"
    while len(nested) < 12_000:
        nested = core.Sequence(contents=nested).dump()
    tbs = x509.Certificate.load(SIGNER.der)["tbs_certificate"]
    deep = core.Sequence(contents=core.ObjectIdentifier("1.2.3.4").dump() + nested).dump()
    subject = core.Sequence(contents=core.Set(contents=deep).dump()).dump()
    inner = core.Sequence(contents=tbs.contents.replace(tbs["subject"].dump(), subject)).dump()
    rest = SIGNER._parsed["signature_algorithm"].dump() + SIGNER._parsed["signature_value"].dump()
    with pytest.raises(CertificateRefused):
        Certificate.load(core.Sequence(contents=inner + rest).dump())


def test_a_trailing_byte_or_a_huge_one_is_refused():
    """What follows a certificate makes it none, and nobody takes megabytes apart."""
    for der in (SIGNER.der + b"\0", b"\x30\x82\xff\xff" + bytes(65535)):
        with pytest.raises(CertificateRefused):
            Certificate.load(der)


def unsigned(certificate: Certificate) -> Certificate:
    """`certificate` with a signature of something else."""
    changed = x509.Certificate.load(certificate.der).copy()
    changed["signature_value"] = ROOT_KEY.sign(b"something else")
    return Certificate.load(changed.dump())


ALGORITHM_WITH_NULL = algos.SignedDigestAlgorithm({"algorithm": "sm2_sm3", "parameters": core.Null()})
ECDSA = algos.SignedDigestAlgorithm({"algorithm": "sha256_ecdsa"})
P256 = asn1_keys.PublicKeyInfo.load(
    bytes.fromhex(
        "3059301306072a8648ce3d020106082a8648ce3d03010703420004"
        "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
        "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"
    )
)
UNKNOWN = {"extn_id": "1.2.3.4", "critical": True, "extn_value": core.ParsableOctetString(core.Null().dump())}


@pytest.mark.parametrize(
    ("why", "certificate"),
    [
        ("is a CA", ROOT),
        ("is a CA", issued(AS_SIGNER | {"basic_constraints": (True, x509.BasicConstraints({"ca": True}))})),
        ("digital signatures", issued(AS_SIGNER | {"key_usage": (True, x509.KeyUsage({"key_encipherment"}))})),
        ("digital signatures", issued({"basic_constraints": AS_SIGNER["basic_constraints"]})),
        ("issued by another key", issued(AS_SIGNER, key=KEY)),
        ("is not signed by", unsigned(SIGNER)),
        ("another issuer", resigned(SIGNER, issuer=x509.Name.build({"common_name": "another"}))),
        ("another issuer", resigned(SIGNER, issuer=x509.Name.build({"common_name": ROOT.subject.upper(), "organization_name": "Sluice"}))),
        ("not signed with SM2-with-SM3", resigned(SIGNER, signature=ALGORITHM_WITH_NULL)),
        ("not signed with SM2-with-SM3", resigned(SIGNER, signature=ECDSA)),
        ("not an SM2 public key", resigned(SIGNER, subject_public_key_info=P256)),
        (
            "critical extension that we do not know: 1.2.3.4",
            resigned(SIGNER, extensions=[*SIGNER._parsed["tbs_certificate"]["extensions"], UNKNOWN]),
        ),
        ("an extension twice", resigned(SIGNER, extensions=[*SIGNER._parsed["tbs_certificate"]["extensions"]] * 2)),
        ("not of version 3", resigned(SIGNER, version="v1")),
    ],
)
def test_other_certificates_are_refused(why: str, certificate: Certificate):
    """A good signature of the root is not enough: use, names, algorithms, key and extensions count."""
    with pytest.raises(CertificateRefused, match=why):
        verify_issued(certificate, ROOT)


def test_algorithms_inside_and_outside_must_agree():
    """The algorithm that is signed and the one beside the signature are the same, so neither can be swapped unseen."""
    changed = x509.Certificate.load(SIGNER.der).copy()
    changed["signature_algorithm"] = ECDSA

    with pytest.raises(CertificateRefused, match="named alike twice"):
        verify_issued(Certificate.load(changed.dump()), ROOT)


def test_another_root_of_the_same_name_is_refused():
    """A root with the right name and another key did not issue the signer."""
    other_key = PrivateKey.generate()
    name = ROOT._parsed.subject
    other = certificates._issue(name, other_key.spki, AS_ROOT, (NOW, NOW + DAY), issuer=name, key=other_key)

    verify_root(other)
    with pytest.raises(CertificateRefused, match="issued by another key"):
        verify_issued(SIGNER, other)


def test_a_root_must_be_one():
    """A signer, a root that another signed, and one that may not issue, are no roots: nothing is valid under them."""
    name = x509.Name.build({"common_name": "root"})
    no_right = certificates._issue(name, KEY.spki, AS_SIGNER, (NOW, NOW + DAY), issuer=name, key=KEY)
    crossed = certificates._issue(name, KEY.spki, AS_ROOT, (NOW, NOW + DAY), issuer=name, key=ROOT_KEY)

    for root in (SIGNER, no_right, crossed):
        with pytest.raises(CertificateRefused):
            verify_root(root)
        with pytest.raises(CertificateRefused):
            verify_issued(SIGNER, root)


@pytest.mark.parametrize(
    ("at", "valid"),
    [
        (NOW - HOUR, True),
        (NOW - HOUR - timedelta(seconds=1), False),
        (SIGNER.not_after, True),
        (SIGNER.not_after + timedelta(seconds=1), False),
    ],
)
def test_it_is_valid_in_its_time(at: datetime, valid: bool):
    """Both ends of a certificate's time belong to it; without an instant the time is not looked at."""
    verify_issued(SIGNER, ROOT)
    if valid:
        verify_issued(SIGNER, ROOT, at)
    else:
        with pytest.raises(CertificateRefused, match=r"is valid from 2025-12-31 23:00 to 2028-01-01 00:00 UTC, not on "):
            verify_issued(SIGNER, ROOT, at)


def test_asn1crypto_learns_once():
    """Teaching it again changes nothing, and what it knew it knows."""
    certificates._teach_asn1crypto()
    certificates._teach_asn1crypto()

    assert algos.SignedDigestAlgorithm({"algorithm": "sm2_sm3"}).dump() == certificates.ALGORITHM
    assert algos.SignedDigestAlgorithm({"algorithm": "sha256_ecdsa"}).hash_algo == "sha256"
    assert ROOT._parsed.public_key.curve == ("named", "sm2p256v1")
