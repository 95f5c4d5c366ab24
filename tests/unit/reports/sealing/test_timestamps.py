"""A time stamp is one of what was asked; an authority that gives none is waited for once, and its absence is said."""

import hashlib
import shutil
import subprocess
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from asn1crypto import tsp
from pyhanko.pdf_utils.reader import PdfFileReader

from app.errors import ConfigError
from app.reports.checking.check import check
from app.reports.sealing.pades import Pades
from app.reports.sealing.sealer import Sealer
from app.reports.sealing.timestamps import MAX_REPLY_BYTES, NoTimeStamp, TimeStampAuthority
from app.signing import cms
from tests.fixtures.signed_reports import AT, CSV, Keys, pades_files, page
from tests.fixtures.time_stamps import Authority, authority_on_loopback

KEYS = Keys.make()
DIGEST = hashlib.sha256(b"a signature").digest()


@pytest.fixture(scope="module")
def one_authority() -> Iterator[Authority]:
    with authority_on_loopback() as authority:
        yield authority


@pytest.fixture
def authority(one_authority: Authority) -> Authority:
    one_authority.asked.clear()
    one_authority.reply = one_authority.stamp
    return one_authority


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl program on this machine")
def test_openssl_takes_the_time_stamp_of_a_signature(tmp_path: Path, authority: Authority):
    """The file beside is an answer of RFC 3161 over the SM2 signature's bytes, and openssl verifies it with the authority's certificate."""
    (tmp_path / "decisions.csv").write_bytes(CSV)
    sealed = Sealer(KEYS, authority=TimeStampAuthority(authority.url)).beside(tmp_path / "decisions.csv", AT)
    (tmp_path / "tsr").write_bytes(sealed.time_stamp or b"")
    (tmp_path / "tsa.pem").write_bytes(authority.pem)

    digest = hashlib.sha256(cms.read(sealed.content).signature).hexdigest()
    command = ["openssl", "ts", "-verify", "-digest", digest, "-in", "tsr", "-CAfile", "tsa.pem"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert "Verification: OK" in ran.stdout, ran.stderr


def test_a_pdf_is_stamped_too(tmp_path: Path, authority: Authority):
    """Of a PDF the SM2 signature in it is stamped, and the PAdES one below has a time stamp within."""
    sealer = Sealer(KEYS, Pades.load(*pades_files(tmp_path)), TimeStampAuthority(authority.url))
    sealed = sealer.pdf("mlps.pdf", page(), AT)
    (tmp_path / "mlps.pdf").write_bytes(sealed.content)

    with (tmp_path / "mlps.pdf").open("rb") as file:
        first, second = PdfFileReader(file).embedded_regular_signatures
        assert [one["type"].native for one in first.signer_info["unsigned_attrs"]] == ["signature_time_stamp_token"]
        assert second.signer_info["unsigned_attrs"].native is None
    assert check(tmp_path / "mlps.pdf", KEYS.root).verdict == "valid"
    assert len(authority.asked) == 2
    assert sealed.time_stamp
    assert sealer.troubles == ()


def test_whoever_checks_is_told_of_it(tmp_path: Path, authority: Authority):
    """When, over this signature or over another, and how to check who says so; what is no time stamp is told, too, and judges nothing."""
    (tmp_path / "decisions.csv").write_bytes(CSV)
    sealer = Sealer(KEYS, authority=TimeStampAuthority(authority.url))
    good, other = (sealer.beside(tmp_path / "decisions.csv", at) for at in (AT, AT + timedelta(seconds=1)))
    (tmp_path / "decisions.csv.p7s").write_bytes(good.content)

    def told(content: bytes | None) -> tuple[str, ...]:
        (tmp_path / "decisions.csv.tsr").write_bytes(content or b"")
        result = check(tmp_path / "decisions.csv", KEYS.root)
        assert result.verdict == "valid"
        return result.remarks

    [remark] = told(good.time_stamp)
    digest = hashlib.sha256(cms.read(good.content).signature).hexdigest()
    assert f"`openssl ts -verify -digest {digest} -in decisions.csv.tsr -CAfile AUTHORITY.pem`" in remark
    assert told(other.time_stamp) == ("the time stamp decisions.csv.tsr is not of this signature",)
    assert told(b"x") == ("decisions.csv.tsr is no time stamp",)


def wrong_status(authority: Authority, request: bytes) -> bytes:
    del authority, request
    return bytes.fromhex("30053003020102")  # SEQUENCE { SEQUENCE { INTEGER rejection } }, without a token


def another_digest(authority: Authority, request: bytes) -> bytes:
    asked = tsp.TimeStampReq.load(request)
    asked["message_imprint"]["hashed_message"] = bytes(32)
    return authority.stamp(asked.dump(force=True))


def another_nonce(authority: Authority, request: bytes) -> bytes:
    asked = tsp.TimeStampReq.load(request)
    asked["nonce"] = 7
    return authority.stamp(asked.dump(force=True))


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (lambda _, __: b"", "is no time stamp"),
        (lambda _, __: b"<html>", "is no time stamp"),
        (lambda _, __: bytes(MAX_REPLY_BYTES + 9), "is no time stamp"),
        (lambda authority, request: authority.stamp(request) + b"\0", "is no time stamp"),
        (wrong_status, "the authority answers rejection"),
        (another_digest, "stamped something else"),
        (another_nonce, "stamped something else"),
    ],
)
def test_what_is_no_time_stamp_of_what_was_asked_is_refused(authority: Authority, reply, why: str):
    """An answer is believed for what it says it stamped, and once refused the authority is not asked again."""
    authority.reply = lambda request: reply(authority, request)
    asking = TimeStampAuthority(authority.url)

    for _ in range(2):
        with pytest.raises(NoTimeStamp, match=why):
            asking.stamp(DIGEST)
    assert len(authority.asked) == 1


def test_a_report_is_made_without_an_authority(tmp_path: Path):
    """Nobody listens there: SM2 and PAdES signatures are there, time stamps are not, and that is said once."""
    nobody = TimeStampAuthority("http://127.0.0.1:1/?token=secret")
    sealer = Sealer(KEYS, Pades.load(*pades_files(tmp_path)), nobody)

    sealed = [sealer.pdf("mlps.pdf", page(), AT), sealer.pdf("gdpr.pdf", page(), AT)]

    assert [one.time_stamp for one in sealed] == [None, None]
    assert all(b"(PAdES)" in one.content for one in sealed)
    assert sealer.troubles == ("no time stamp: 127.0.0.1: [Errno 111] Connection refused",)


def test_an_authority_that_does_not_answer_is_left_behind(authority: Authority):
    """After its time, whatever it does."""
    silent = threading.Event()

    def never(request: bytes) -> bytes:
        silent.wait(10)
        return authority.stamp(request)

    authority.reply = never
    with pytest.raises(NoTimeStamp, match=r"timed out|no answer within 0\.2 s"):
        TimeStampAuthority(authority.url, timeout_s=0.2).stamp(DIGEST)
    silent.set()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/", "tsa.example"])
def test_an_authority_has_an_http_address(url: str):
    """Nothing else is opened in its name."""
    with pytest.raises(ConfigError, match=r"report\.timestamp_url"):
        TimeStampAuthority(url)
