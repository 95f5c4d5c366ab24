"""The openssl program and Sluice read each other's keys, signatures and certificates."""

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from asn1crypto import cms as asn1_cms
from asn1crypto import pem

from app.clock import SystemClock
from app.signing import cms
from app.signing.certificates import Certificate, CertificateRefused, make_root, make_signer, verify_issued
from app.signing.key_files import load_key
from app.signing.sm2 import PrivateKey, PublicKey

OPENSSL = shutil.which("openssl")
ID = "distid:1234567812345678"
MESSAGE = b"sluice/0192\n1234\ncm9vdA==\n"

Openssl = Callable[..., subprocess.CompletedProcess[str]]


def has_sm2() -> bool:
    """Whether the program is there, of OpenSSL 3, and built with SM2."""
    if OPENSSL is None:
        return False
    listed = subprocess.run([OPENSSL, "list", "-signature-algorithms"], capture_output=True, text=True, check=False)
    return "SM2" in listed.stdout


pytestmark = pytest.mark.skipif(not has_sm2(), reason="there is no openssl program with SM2 on this machine")


@pytest.fixture
def openssl(tmp_path: Path) -> Openssl:
    """Runs the program in the test's folder."""

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([OPENSSL, *command.split()], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=30)

    return run


@pytest.fixture
def ours(tmp_path: Path, signer: PrivateKey) -> PrivateKey:
    """A key of ours, with its files: clear public key, encrypted private key, message and signature."""
    (tmp_path / "public.pem").write_bytes(pem.armor("PUBLIC KEY", signer.spki))
    (tmp_path / "private.pem").write_bytes(pem.armor("ENCRYPTED PRIVATE KEY", signer.encrypt(b"sesame")))
    (tmp_path / "message").write_bytes(MESSAGE)
    (tmp_path / "signature").write_bytes(signer.sign(MESSAGE))
    return signer


VERIFY = [
    f"pkeyutl -verify -pubin -inkey public.pem -rawin -in message -digest sm3 -sigfile signature -pkeyopt {ID}",
    f"dgst -sm3 -verify public.pem -sigopt {ID} -signature signature message",
]


@pytest.mark.usefixtures("ours")
@pytest.mark.parametrize("command", VERIFY)
def test_ours_verify_there(openssl: Openssl, command: str):
    """What we sign, the program calls verified, with the ID named and not without."""
    assert openssl(command).returncode == 0
    assert openssl(command.replace(ID, "distid:12345678")).returncode != 0
    assert openssl(command.replace(f" -pkeyopt {ID}", "").replace(f" -sigopt {ID}", "")).returncode != 0


@pytest.mark.parametrize(
    "command",
    [
        f"pkeyutl -sign -inkey private.pem -passin pass:sesame -rawin -in message -digest sm3 -out theirs -pkeyopt {ID}",
        f"dgst -sm3 -sign private.pem -passin pass:sesame -sigopt {ID} -out theirs message",
    ],
)
def test_theirs_verify_here(openssl: Openssl, ours: PrivateKey, tmp_path: Path, command: str):
    """The program opens our encrypted key and signs with it; with our ID it verifies here, with another or none it does not."""
    for there, here in ((command, True), (command.replace(ID, "distid:12345678"), False), (command.replace(ID, "distid:"), False)):
        done = openssl(there)
        assert done.returncode == 0, done.stderr
        assert ours.public.verify((tmp_path / "theirs").read_bytes(), MESSAGE) == here


@pytest.mark.parametrize(
    "command",
    [
        "genpkey -algorithm SM2 -out theirs.pem",
        "genpkey -algorithm SM2 -aes-256-cbc -pass pass:sesame -out theirs.pem",
        "ecparam -name SM2 -genkey -out theirs.pem",
    ],
    ids=["PKCS#8", "encrypted PKCS#8", "SEC 1"],
)
def test_their_keys_are_read(openssl: Openssl, tmp_path: Path, command: str):
    """Private keys that the program makes are the same keys here."""
    assert openssl(command).returncode == 0

    key = load_key((tmp_path / "theirs.pem").read_bytes(), b"sesame")

    assert openssl("pkey -in theirs.pem -passin pass:sesame -pubout -outform DER -out public.der").returncode == 0
    assert PublicKey((tmp_path / "public.der").read_bytes()).verify(key.sign(MESSAGE), MESSAGE)


def test_our_certificates_verify_there(openssl: Openssl, tmp_path: Path):
    """The program's strict check of root and signer says OK, before and beyond the year 2050 too."""
    for now in (SystemClock().utcnow(), datetime(2049, 6, 1, tzinfo=UTC)):
        root_key, key = PrivateKey.generate(), PrivateKey.generate()
        root = make_root(root_key, now)
        (tmp_path / "root.pem").write_text(root.pem)
        (tmp_path / "signer.pem").write_text(make_signer(key.spki, root_key, root, now).pem)

        seconds = int((now + timedelta(days=1)).timestamp())
        done = openssl(f"verify -attime {seconds} -vfyopt {ID} -x509_strict -CAfile root.pem signer.pem")

        assert (done.returncode, done.stdout) == (0, "signer.pem: OK\n"), done.stderr


def test_their_certificates_verify_here(openssl: Openssl, tmp_path: Path):
    """A root and a signer that the program made are accepted; a signer signed under another ID is not."""
    usage = "[ca]\nbasicConstraints=critical,CA:true\nkeyUsage=critical,keyCertSign\n"
    usage += "[signer]\nbasicConstraints=critical,CA:false\nkeyUsage=critical,digitalSignature\n"
    (tmp_path / "extensions").write_text("[req]\ndistinguished_name=name\n[name]\n" + usage)
    for command in (
        "genpkey -algorithm SM2 -out root.key",
        "genpkey -algorithm SM2 -out signer.key",
        f"req -x509 -new -key root.key -sm3 -sigopt {ID} -subj /CN=root -config extensions -extensions ca -days 9 -out root.pem",
        f"req -new -key signer.key -sm3 -sigopt {ID} -subj /CN=signer -config extensions -out signer.csr",
    ):
        done = openssl(command)
        assert done.returncode == 0, done.stderr
    issue = f"x509 -req -in signer.csr -CA root.pem -CAkey root.key -sm3 -vfyopt {ID} -sigopt {ID} -extfile extensions -extensions signer -days 8"
    assert openssl(f"{issue} -out good.pem").returncode == 0
    assert openssl(f"{issue.replace(f'-sigopt {ID}', '-sigopt distid:12345678')} -out bad.pem").returncode == 0

    root, good, bad = (Certificate.load_pem((tmp_path / name).read_bytes()) for name in ("root.pem", "good.pem", "bad.pem"))

    verify_issued(good, root, SystemClock().utcnow())
    with pytest.raises(CertificateRefused, match="is not signed by"):
        verify_issued(bad, root)


def test_our_signatures_beside_files_verify_there(openssl: Openssl, tmp_path: Path):
    """The program reads the CMS, finds our certificate in it, and its parts verify: the file's SM3, and SM2 over what was signed of it."""
    now = SystemClock().utcnow()
    root_key, key = PrivateKey.generate(), PrivateKey.generate()
    certificate = make_signer(key.spki, root_key, make_root(root_key, now), now)
    signed = cms.sign(hashlib.new("sm3", MESSAGE).digest(), key, certificate, now)
    (info,) = asn1_cms.ContentInfo.load(signed)["content"]["signer_infos"]
    for name, content in {
        "p7s": signed,
        "message": MESSAGE,
        "attributes": info["signed_attrs"].untag().dump(),
        "signature": info["signature"].native,
    }.items():
        (tmp_path / name).write_bytes(content)

    printed = openssl("cms -cmsout -print -inform DER -in p7s").stdout
    assert "SM2-with-SM3" in printed
    assert openssl("pkcs7 -inform DER -in p7s -print_certs -out signer.pem").returncode == 0
    assert (
        Certificate.load_pem((tmp_path / "signer.pem").read_bytes()[(tmp_path / "signer.pem").read_bytes().index(b"-----") :])
        == certificate
    )
    assert openssl("dgst -sm3 -r message").stdout.split()[0] == info["signed_attrs"][2]["values"][0].native.hex()
    assert openssl("x509 -in signer.pem -noout -pubkey -out public.pem").returncode == 0
    assert openssl(f"dgst -sm3 -verify public.pem -sigopt {ID} -signature signature attributes").returncode == 0


def test_signatures_of_their_certificates_are_taken(openssl: Openssl, tmp_path: Path):
    """A signer of an operator's own root, made with the program, signs in the same form: its names are kept byte by byte."""
    (tmp_path / "extensions").write_text(
        "[req]\ndistinguished_name=name\n[name]\n[ca]\nbasicConstraints=critical,CA:true\nkeyUsage=critical,keyCertSign\n"
        "[signer]\nbasicConstraints=critical,CA:false\nkeyUsage=critical,digitalSignature\n"
    )
    for command in (
        "genpkey -algorithm SM2 -out root.key",
        "genpkey -algorithm SM2 -out signer.key",
        f"req -x509 -new -key root.key -sm3 -sigopt {ID} -subj /C=CN/O=A/CN=root -config extensions -extensions ca -days 9 -out root.pem",
        f"req -new -key signer.key -sm3 -sigopt {ID} -subj /CN=signer -config extensions -out signer.csr",
        f"x509 -req -in signer.csr -CA root.pem -CAkey root.key -sm3 -vfyopt {ID} -sigopt {ID} -extfile extensions -extensions signer -days 8 -out s.pem",
    ):
        assert openssl(command).returncode == 0
    root, signer = (Certificate.load_pem((tmp_path / name).read_bytes()) for name in ("root.pem", "s.pem"))
    digest, now = hashlib.new("sm3", MESSAGE).digest(), SystemClock().utcnow()

    signed = cms.sign(digest, load_key((tmp_path / "signer.key").read_bytes(), None), signer, now)

    assert cms.verify(signed, digest, root).certificate == signer
