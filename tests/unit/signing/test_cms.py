"""A signature beside a file is taken in one form, of one signer, over one content; whatever else it is, the cause is named."""

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from asn1crypto import cms as asn1_cms
from asn1crypto import core
from hypothesis import given, settings
from hypothesis import strategies as st

from app.signing import cms
from app.signing.certificates import make_root, make_signer
from app.signing.cms import SignatureRefused
from app.signing.sm2 import PrivateKey

NOW = datetime(2026, 11, 30, 1, 2, 3, 456789, tzinfo=UTC)
ROOT_KEY, KEY = PrivateKey.generate(), PrivateKey.generate()
ROOT = make_root(ROOT_KEY, NOW)
SIGNER = make_signer(KEY.spki, ROOT_KEY, ROOT, NOW)
DIGEST = hashlib.new("sm3", b"abc").digest()
SIGNED = cms.sign(DIGEST, KEY, SIGNER, NOW)


def cause_of(der: bytes) -> str:
    """Why `der` is refused; empty where it is not."""
    try:
        cms.verify(der, DIGEST, ROOT)
    except SignatureRefused as error:
        return error.cause
    return ""


def test_what_a_signature_says():
    """Who signed, what, and when in whole seconds; the digest is the standard's of "abc" (GB/T 32905 A.1)."""
    signed = cms.verify(SIGNED, DIGEST, ROOT)

    assert (signed.certificate, signed.at) == (SIGNER, datetime(2026, 11, 30, 1, 2, 3, tzinfo=UTC))
    assert signed.digest.hex() == "66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0"


def test_its_form_is_that_of_rfc_5652():
    """Another reader of CMS finds one signer, SM3 and SM2-with-SM3 without parameters, three signed attributes, the signer's certificate."""
    content = asn1_cms.ContentInfo.load(SIGNED)["content"]
    (info,) = content["signer_infos"]

    assert (content["version"].native, info["version"].native, content["encap_content_info"]["content_type"].native) == ("v1", "v1", "data")
    assert info["digest_algorithm"].dump().hex() == "300a06082a811ccf55018311"
    assert info["signature_algorithm"].dump().hex() == "300a06082a811ccf55018375"
    assert [one["type"].native for one in info["signed_attrs"]] == ["content_type", "signing_time", "message_digest"]
    assert [one.dump() for one in content["certificates"]] == [SIGNER.der]


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 8 * len(SIGNED) - 1))
def test_no_single_bit_may_change(bit: int):
    """Each bit of a signature is of its form, its signer or its content."""
    changed = bytearray(SIGNED)
    changed[bit // 8] ^= 1 << bit % 8
    assert cause_of(bytes(changed))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused(content: bytes):
    """What is no signature is malformed, and never an error of another kind."""
    assert cause_of(content) == "malformed"
    assert cause_of(SIGNED[: len(content)]) == "malformed"
    assert cause_of(SIGNED + content) == ("malformed" if content else "")


def test_a_large_one_is_not_taken_apart():
    """Ours have a thousand bytes."""
    assert cause_of(SIGNED + bytes(cms.MAX_DER_BYTES)) == "malformed"


@pytest.mark.parametrize(
    ("at", "form"),
    [(datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC), core.UTCTime), (datetime(2050, 1, 1, tzinfo=UTC), core.GeneralizedTime)],
)
def test_the_time_has_the_form_of_its_century(at: datetime, form: type):
    """Two digits of a year until 2049, four from 2050 on (RFC 5652, section 11.3)."""
    root = make_root(ROOT_KEY, at)
    signer = make_signer(KEY.spki, ROOT_KEY, root, at)

    signed = cms.sign(DIGEST, KEY, signer, at)

    time = asn1_cms.ContentInfo.load(signed)["content"]["signer_infos"][0]["signed_attrs"][1]["values"][0].chosen
    assert type(time) is form
    assert cms.verify(signed, DIGEST, root).at == at


@pytest.mark.parametrize("offset", [timedelta(hours=-1), SIGNER.not_after - NOW.replace(microsecond=0)])
def test_the_first_and_the_last_second_of_a_certificate_are_its_own(offset: timedelta):
    """A second beyond either is expired."""
    at = NOW.replace(microsecond=0) + offset
    beyond = at + timedelta(seconds=1 if offset > timedelta(0) else -1)

    assert cms.verify(cms.sign(DIGEST, KEY, SIGNER, at), DIGEST, ROOT).at == at
    assert cause_of(cms.sign(DIGEST, KEY, SIGNER, beyond)) == "expired"


def test_a_digest_of_another_length_is_not_signed():
    """SM3 has 32 bytes; a caller that gives others has made a mistake."""
    with pytest.raises(ValueError, match="32 bytes, not 20"):
        cms.sign(bytes(20), KEY, SIGNER, NOW)
