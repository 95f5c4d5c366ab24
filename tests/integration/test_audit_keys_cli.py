"""`sluice audit keys` on a folder of keys; no database is needed."""

import base64
import getpass
import json
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from asn1crypto import pem
from asn1crypto.keys import PrivateKeyInfo
from typer.testing import CliRunner, Result

from app.cli.audit.keys import app
from app.clock import SystemClock
from app.errors import ConfigError
from app.signing.certificates import Certificate, make_root, make_signer
from app.signing.keys import KeyFolder
from app.signing.passphrase import passphrase_of
from app.signing.sm2 import PrivateKey
from tests.fixtures.signing import PASSPHRASE

Sluice = Callable[..., Result]
OWN_DATABASE = "database.url=postgresql://sluice_registry:x@127.0.0.1/sluice"

pytestmark = pytest.mark.usefixtures("quick_encryption")


@pytest.fixture
def var(tmp_path: Path) -> Path:
    (tmp_path / "var").mkdir()
    return tmp_path / "var"


@pytest.fixture
def passphrase(tmp_path: Path) -> Path:
    """A file with the passphrase, outside of --var."""
    path = tmp_path / "passphrase"
    path.touch(0o600)
    path.write_bytes(PASSPHRASE)
    return path


@pytest.fixture
def keys(var: Path, passphrase: Path, forbidden: list[str]) -> Iterator[Sluice]:
    """Runs `sluice audit keys …`, chatty; errors are raised, as main() shows them."""

    def run(*arguments: str) -> Result:
        settings = (OWN_DATABASE, f"audit.passphrase=file:{passphrase}", "log_level=debug")
        options = [text for setting in settings for text in ("--set", setting)]
        return CliRunner().invoke(app, [*arguments, "--var", str(var), *options])

    handlers = logging.getLogger().handlers[:]
    yield run
    logging.getLogger().handlers[:] = handlers  # the command's own write to streams that are closed by now
    structlog.reset_defaults()


@pytest.fixture
def folder(var: Path) -> KeyFolder:
    """What the first start of the log makes."""
    made = KeyFolder(var / "audit-keys", PASSPHRASE)
    made.open_or_make(SystemClock().utcnow())
    return made


def certificates(text: str) -> list[Certificate]:
    """All certificates of a PEM text."""
    return [Certificate.load(der) for _, _, der in pem.unarmor(text.encode(), multiple=True)]


def test_rotate_issues_the_next_signer(keys: Sluice, folder: KeyFolder, forbidden: list[str]):
    """The new signer is told with its fingerprint, a running process sees it, and memory was closed before a key was opened."""
    done = keys("rotate")

    assert done.exit_code == 0, done.exception
    assert folder.current_changed()
    folder.open(SystemClock().utcnow())
    assert folder.certificate.subject in done.stdout
    assert folder.certificate.fingerprint.hex() in done.stdout
    assert folder.maker(folder.certificate) == f"cli:{getpass.getuser()}"
    assert forbidden == ["forbid"]


def test_list_shows_who_signs_and_who_signed(keys: Sluice, folder: KeyFolder):
    """The root, the replaced signer without its key, the one that signs: for people and for programs."""
    folder.rotate(SystemClock().utcnow())

    rows = json.loads(keys("list", "--output", "json").stdout)
    table = keys("list").stdout

    assert [(row["state"], row["key_here"]) for row in rows] == [("root", True), ("replaced", False), ("signs", True)]
    assert [row["sm3_fingerprint"] for row in rows] == [one.fingerprint.hex() for one in folder.certificates]
    for one in folder.certificates:
        assert one.fingerprint.hex() in table


def test_export_public_is_what_verifiers_need(keys: Sluice, folder: KeyFolder, passphrase: Path, forbidden: list[str]):
    """The root first, then all signers, each under its fingerprint; with --root the root alone; without any passphrase."""
    folder.rotate(SystemClock().utcnow())
    passphrase.unlink()

    everything, root = keys("export-public").stdout, keys("export-public", "--root").stdout

    assert certificates(everything) == list(folder.certificates)
    assert certificates(root) == [folder.root]
    for one in folder.certificates:
        assert f"# SM3 fingerprint {one.fingerprint.hex()}\n{one.pem}" in everything
    assert forbidden == []


class Operator:
    """An operator's own root, and the files of a signer that it issued."""

    def __init__(self, path: Path, key: PrivateKey, clear: bytes) -> None:
        now = SystemClock().utcnow()
        root_key = PrivateKey.generate()
        self.root = make_root(root_key, now)
        self.certificate = make_signer(key.spki, root_key, self.root, now)
        self.files = [f"--{name}={path / name}" for name in ("key", "certificate", "root")]
        (path / "key").write_bytes(pem.armor("PRIVATE KEY", clear))
        (path / "certificate").write_text(self.certificate.pem)
        (path / "root").write_text(self.root.pem)


SCALAR = 0x3945208F7B2144B13F36E38AC6D39F95889393692860B51A42FB81EF4DF7C5B8
CLEAR = bytes.fromhex(
    "308187020100301306072a8648ce3d020106082a811ccf5501822d046d306b0201010420"
    "3945208f7b2144b13f36e38ac6d39f95889393692860b51a42fb81ef4df7c5b8a14403420004"
    "09f9df311e5421a150dd7d161e4bc5c672179fad1833fc076bb08ff356f35020ccea490ce26775a52dc6ea718cc1aa600aed05fbf35e084a6632f6072da9ad13"
)


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    (tmp_path / "operator").mkdir()
    return Operator(tmp_path / "operator", PrivateKey.load(CLEAR), CLEAR)


def test_import_takes_an_operators_signer(keys: Sluice, operator: Operator, var: Path):
    """An empty folder takes key, certificate and root; then a rotation says that the root's key is elsewhere."""
    done = keys("import", *operator.files)
    assert done.exit_code == 0, done.exception
    assert operator.certificate.fingerprint.hex() in done.stdout

    again = KeyFolder(var / "audit-keys", PASSPHRASE)
    again.open(SystemClock().utcnow())
    assert again.certificates == (operator.root, operator.certificate)
    with pytest.raises(ConfigError, match=r"root\.key: not here"):
        raise keys("rotate").exception


def test_import_takes_an_encrypted_key_with_its_passphrase(keys: Sluice, operator: Operator, tmp_path: Path):
    """--key-passphrase opens it; without, the remedy is told."""
    encrypted = PrivateKey.load(CLEAR).encrypt(b"x")
    (tmp_path / "operator" / "key").write_bytes(pem.armor("ENCRYPTED PRIVATE KEY", encrypted))
    other = tmp_path / "other"
    other.touch(0o600)
    other.write_bytes(b"x\n")

    refused = keys("import", *operator.files).exception
    assert isinstance(refused, ConfigError)
    assert "--key-passphrase" in refused.advice
    assert keys("import", *operator.files, f"--key-passphrase=file:{other}").exit_code == 0


def test_the_answer_is_all_that_is_printed(keys: Sluice, operator: Operator, var: Path):
    """The first import into a serve's own folder makes a passphrase, and no line of a log stands beside the answer to it."""
    done = CliRunner().invoke(app, ["import", *operator.files, "--var", str(var)])

    first, second = done.stdout.splitlines()
    assert first.startswith(f"{operator.certificate.subject} signs from now on")
    assert second == f"SM3 fingerprint {operator.certificate.fingerprint.hex()}"
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["key", "certificate", "root"])
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"], ids=["none", "empty", "no text"])
def test_import_names_the_file_that_will_not_do(keys: Sluice, operator: Operator, tmp_path: Path, name: str, content: bytes | None):
    """A file that is not there or not what it should be is a ConfigError with its path."""
    file = tmp_path / "operator" / name
    file.unlink()
    if content is not None:
        file.write_bytes(content)

    refused = keys("import", *operator.files).exception

    assert isinstance(refused, ConfigError)
    assert refused.message.startswith(f"{file}: ")


def test_without_keys_there_is_nothing_to_show(keys: Sluice):
    """list, export-public and rotate say how keys come to be."""
    for command in ("list", "export-public", "rotate"):
        refused = keys(command).exception
        assert isinstance(refused, ConfigError)
        assert "has no signer yet" in refused.message
        assert "sluice audit run" in refused.advice


def traces_of(secret: bytes) -> set[str]:
    """How `secret` would look in a text: as it is, in hex, as a number, in base64 at any place of a longer text."""
    inner = {base64.b64encode(bytes(shift) + secret)[4:-4].decode() for shift in range(3)}
    return {secret.hex(), secret.hex().upper(), str(int.from_bytes(secret, "big")), str(secret)[2:-1], repr(secret), *inner}


def test_nothing_secret_is_told(keys: Sluice, operator: Operator, var: Path, capfd: pytest.CaptureFixture[str]):
    """Through import, rotation, listing and every refusal no output, log line, error, repr or file has the passphrase or a private key."""
    scalar = SCALAR.to_bytes(32, "big")
    assert PrivateKeyInfo.load(CLEAR)["private_key"].parsed["private_key"].native == SCALAR
    told = [keys("import", *operator.files), keys("import", *operator.files), keys("rotate"), keys("list"), keys("export-public")]
    folder = KeyFolder(var / "audit-keys", PASSPHRASE)
    folder.open(SystemClock().utcnow())
    reprs = [repr(one) for one in (folder, folder.signer, folder.signer.public, folder.certificate, PrivateKey.load(CLEAR))]
    key_file = var / "audit-keys" / "signers" / "0001.key"
    key_file.write_bytes(key_file.read_bytes()[:150])
    told += [keys("rotate"), keys("import", *operator.files)]
    key_file.unlink()
    told += [keys("rotate"), keys("rotate", "--set", "audit.passphrase=fd:9999"), keys("rotate", "--set", f"audit.passphrase={key_file}")]

    output = [result.output for result in told] + [result.stderr for result in told]
    errors = ["".join(traceback.format_exception(result.exception)) for result in told if result.exception]
    everything = "\n".join([*output, *errors, *reprs, *capfd.readouterr()])
    files = b"".join(file.read_bytes() for file in var.rglob("*") if file.is_file())

    assert len(errors) >= 6
    for trace in traces_of(scalar) | traces_of(PASSPHRASE):
        assert trace not in everything
        assert trace.encode() not in files
    assert scalar not in files
    assert CLEAR not in files


def test_the_program_reads_the_passphrase_from_a_descriptor(var: Path, folder: KeyFolder):
    """`sluice audit keys rotate` as a process: passphrase by fd, exit 0; with a wrong one exit 2, message and remedy, and no secret."""
    del folder

    def rotate(passphrase: bytes) -> subprocess.CompletedProcess[str]:
        reading, writing = os.pipe()
        os.write(writing, passphrase)
        os.close(writing)
        options = ("--var", str(var), "--set", OWN_DATABASE, "--set", f"audit.passphrase=fd:{reading}")
        command = [sys.executable, "-m", "app.cli", "audit", "keys", "rotate", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, pass_fds=(reading,), timeout=60)
        os.close(reading)
        return done

    right, wrong = rotate(PASSPHRASE), rotate(b"a wrong passphrase")

    assert right.returncode == 0, right.stderr
    assert wrong.returncode == 2
    assert "root.key: the passphrase does not open it, or it is damaged" in wrong.stderr
    assert "audit.passphrase" in wrong.stderr
    assert "wrong passphrase" not in wrong.stdout + wrong.stderr


def test_the_passphrase_for_trying_stays_in_its_file(var: Path, capfd: pytest.CaptureFixture[str]):
    """The line that says that it is for trying names the file and not what is in it."""
    from app.observability.logs import configure_logs
    from app.settings import load_settings

    handlers = logging.getLogger().handlers[:]
    configure_logs("debug", "json", "test")
    made = passphrase_of(load_settings(), var).decode()
    logging.getLogger().handlers[:] = handlers
    structlog.reset_defaults()

    line = capfd.readouterr().err
    assert "audit_keys_for_trying" in line
    assert "secrets/audit-passphrase" in line
    assert made not in line
