"""What is signed is the file as it was and one revision more; what is optional is left out where it fails, and that is said."""

import hashlib
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from pathlib import Path

import pypdfium2
import pytest
from pyhanko.keys import load_cert_from_pemder
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.validation import validate_pdf_signature
from pyhanko_certvalidator import ValidationContext

from app.errors import ConfigError
from app.reports.checking.check import check
from app.reports.sealing.pades import Pades
from app.reports.sealing.pdf import NotSealed
from app.reports.sealing.sealer import Sealer
from app.settings import load_settings
from app.signing import cms
from app.signing.sm2 import PrivateKey, SigningFailed
from tests.fixtures.signed_reports import AT, CSV, Keys, pades_files, page

KEYS = Keys.make()
PAGE = page()


@pytest.fixture
def pades(tmp_path: Path) -> Pades:
    return Pades.load(*pades_files(tmp_path))


def test_a_signed_pdf_is_the_file_and_a_revision_more():
    """Not a byte of it changes, it has the same page, and its time is the one that was handed in, not this machine's."""
    signed = Sealer(KEYS).pdf("mlps.pdf", PAGE, AT).content
    added = signed[len(PAGE) :]

    assert signed.startswith(PAGE)
    assert b"/M (D\\07220261130010203Z)" in added
    assert b"/ModDate" not in added
    assert b"/Producer" not in added
    document = pypdfium2.PdfDocument(signed)
    assert (len(document), document[0].get_textpage().get_text_bounded().strip()) == (1, "0 decisions")
    assert picture(signed) == picture(PAGE)


def picture(pdf: bytes) -> bytes:
    return bytes(pypdfium2.PdfDocument(pdf)[0].render().buffer)


def test_its_fields_and_its_form():
    """One field SM2 that shows nothing, with the subfilter that readers know, signed with SM3."""
    reader = PdfFileReader(BytesIO(Sealer(KEYS).pdf("mlps.pdf", PAGE, AT).content))
    (signature,) = reader.embedded_regular_signatures

    assert signature.field_name == "SM2"
    assert [int(edge) for edge in signature.sig_field["/Rect"]] == [0, 0, 0, 0]
    assert signature.sig_object["/SubFilter"] == "/adbe.pkcs7.detached"
    assert signature.md_algorithm == "1.2.156.10197.1.401"
    assert signature.evaluate_signature_coverage().name == "ENTIRE_FILE"


def test_a_file_of_any_kind_is_signed_beside(tmp_path: Path):
    """The signature is over every byte of it, by the newest signer."""
    (tmp_path / "decisions.csv").write_bytes(CSV)
    sealed = Sealer(KEYS).beside(tmp_path / "decisions.csv", AT)
    (tmp_path / "decisions.csv.p7s").write_bytes(sealed.content)

    assert check(tmp_path / "decisions.csv", KEYS.root).verdict == "valid"
    assert cms.read(sealed.content).digest == hashlib.new("sm3", CSV).digest()
    assert sealed.time_stamp is None


def test_a_reader_that_knows_no_sm2_takes_the_signature_below(tmp_path: Path, pades: Pades):
    """Another validator finds PAdES intact, by the given certificate, and after it a further signature alone; SM2 is over all of it."""
    sealer = Sealer(KEYS, pades)
    (tmp_path / "mlps.pdf").write_bytes(signed := sealer.pdf("mlps.pdf", PAGE, AT).content)

    first, second = PdfFileReader(BytesIO(signed)).embedded_regular_signatures
    trusted = ValidationContext(trust_roots=[load_cert_from_pemder(tmp_path / "pades.pem")], moment=AT)
    status = validate_pdf_signature(first, trusted)

    assert (first.field_name, second.field_name) == ("PAdES", "SM2")
    assert (status.intact, status.valid, status.trusted) == (True, True, True)
    assert status.modification_level.name == "FORM_FILLING"
    assert first.sig_object["/SubFilter"] == "/ETSI.CAdES.detached"
    assert check(tmp_path / "mlps.pdf", KEYS.root).verdict == "valid"
    assert sealer.troubles == ()


def test_a_pades_certificate_whose_time_is_over_signs_nothing(pades: Pades):
    """The report is made with its SM2 signature alone, and says so."""
    sealer = Sealer(KEYS, pades)
    late = pades.not_after + timedelta(seconds=1)

    assert b"(PAdES)" not in sealer.pdf("mlps.pdf", PAGE, late).content
    assert sealer.troubles == ("no PAdES signature: its certificate is not valid at the time of signing",)


@pytest.mark.parametrize("content", [b"", b"a,b\r\n", b"%PDF-1.4\nnothing"])
def test_what_is_no_pdf_is_not_sealed(content: bytes):
    """It is refused in words, not with an error of pyHanko."""
    with pytest.raises(NotSealed, match="takes no signature SM2"):
        Sealer(KEYS).pdf("mlps.pdf", content, AT)


def test_a_pdf_is_signed_once():
    """A second SM2 signature would leave two to judge."""
    sealer = Sealer(KEYS)
    with pytest.raises(NotSealed):
        sealer.pdf("mlps.pdf", sealer.pdf("mlps.pdf", PAGE, AT).content, AT)


@pytest.mark.parametrize("at", [KEYS.certificate.not_after + timedelta(seconds=1), KEYS.certificate.not_before - timedelta(seconds=1)])
def test_what_would_not_be_valid_is_not_handed_on(tmp_path: Path, at):
    """Each signature is checked as an auditor would: one outside of the signer's time is none."""
    (tmp_path / "decisions.csv").write_bytes(CSV)
    with pytest.raises(NotSealed, match=r"mlps.pdf: signed at .* is valid from"):
        Sealer(KEYS).pdf("mlps.pdf", PAGE, at)
    with pytest.raises(NotSealed, match=r"decisions.csv: signed at .* is valid from"):
        Sealer(KEYS).beside(tmp_path / "decisions.csv", at)


def test_another_key_than_the_certificates_is_noticed(tmp_path: Path):
    """A folder of keys whose parts do not belong together signs no report."""
    (tmp_path / "decisions.csv").write_bytes(CSV)
    with pytest.raises(NotSealed, match="not by the key"):
        Sealer(replace(KEYS, signer=PrivateKey.generate())).beside(tmp_path / "decisions.csv", AT)


def test_a_key_that_does_not_sign_makes_no_report(monkeypatch: pytest.MonkeyPatch):
    """SigningFailed of the key is that of the report."""
    monkeypatch.setattr(PrivateKey, "_signed", lambda _, __: b"")
    with pytest.raises(SigningFailed):
        Sealer(KEYS).pdf("mlps.pdf", PAGE, AT)


def settings_with(key: Path, certificates: Path):
    return load_settings(overrides=(f"report.pades_key={key}", f"report.pades_certificates={certificates}")).report


def test_pades_comes_with_key_and_certificate(tmp_path: Path):
    """By the settings: both name files, or there is no such signature; one without the other is a mistake."""
    key, certificates = pades_files(tmp_path)

    assert b"(PAdES)" in Sealer.of(settings_with(key, certificates), KEYS).pdf("mlps.pdf", PAGE, AT).content
    assert b"(PAdES)" not in Sealer.of(load_settings().report, KEYS).pdf("mlps.pdf", PAGE, AT).content
    for alone in ({"pades_key": ""}, {"pades_certificates": ""}):
        with pytest.raises(ConfigError, match=r"report\.pades_(key|certificates): not set, and"):
            Sealer.of(settings_with(key, certificates).model_copy(update=alone), KEYS)


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda key, certificates: key.unlink(), r"report\.pades_key: .*No such file"),
        (lambda key, certificates: key.chmod(0o644), r"open to others"),
        (lambda key, certificates: key.write_bytes(b"nothing"), r"report\.pades_key: .* has no private key that can be used"),
        (lambda key, certificates: certificates.unlink(), r"report\.pades_certificates: .*No such file"),
        (lambda key, certificates: certificates.write_bytes(b"\xff"), r"report\.pades_certificates: .* has no certificate in PEM"),
        (
            lambda key, certificates: pades_files(certificates.parent)[0].rename(key.with_name("other")),
            r"report\.pades_key: .*No such file",
        ),
        (lambda key, certificates: certificates.write_bytes(pem_of_sm2()), r"report\.pades_certificates: the first .* is not of the key"),
    ],
)
def test_pades_files_that_will_not_do_are_named(tmp_path: Path, damage, named: str):
    """Before anything is made, with the setting and the remedy."""
    key, certificates = pades_files(tmp_path)
    damage(key, certificates)
    with pytest.raises(ConfigError, match=named) as refused:
        Sealer.of(settings_with(key, certificates), KEYS)
    assert refused.value.advice


def pem_of_sm2() -> bytes:
    return KEYS.certificate.pem.encode()
