"""The folder of the log's keys: made once, opened later, rotated, fed with an operator's own; refused where it is not sound."""

import os
import shutil
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from asn1crypto import pem

from app import private_files
from app.errors import ConfigError
from app.settings import load_settings
from app.signing.certificates import Certificate, make_root, make_signer, verify_issued
from app.signing.key_files import load_key, read_certificates, read_root, refuse_another_root
from app.signing.keys import KeyFolder, keys_folder
from app.signing.sm2 import KeyRefused, PrivateKey
from tests.fixtures.signing import MADE, PASSPHRASE

pytestmark = pytest.mark.usefixtures("quick_encryption")

DAY = timedelta(days=1)
NEXT_YEAR = MADE + 365 * DAY


def names(path: Path) -> set[str]:
    """The files in the folder."""
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def test_the_first_start_makes_a_root_and_a_signer(key_folder: KeyFolder, keys_path: Path):
    """A root, a signer that it issued, and their keys, which sign; all for their owner alone."""
    verify_issued(key_folder.certificate, key_folder.root, MADE)

    assert key_folder.certificates == (key_folder.root, key_folder.certificate)
    assert key_folder.certificate.public_key.verify(key_folder.signer.sign(b"note"), b"note")
    assert names(keys_path) == {"lock", "root.key", "root.pem", "signers/0001.key", "signers/0001.pem"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in keys_path.rglob("*") if path.is_file()} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (keys_path, keys_path / "signers")} == {0o700}


def test_it_is_opened_later(key_folder: KeyFolder, keys_path: Path):
    """A later start finds the same root and the same signer, and makes nothing."""
    again = KeyFolder(keys_path, PASSPHRASE)
    again.open_or_make(MADE + DAY)

    assert (key_folder.root, key_folder.certificate) == (again.root, again.certificate)
    assert key_folder.signer.spki == again.signer.spki


def test_of_several_first_starts_one_makes_the_keys(tmp_path: Path):
    """Four that start at the same moment end up with the same root and signer."""

    def start(_: int) -> tuple[Certificate, ...]:
        folder = KeyFolder(tmp_path / "keys", PASSPHRASE)
        folder.open_or_make(MADE)
        return folder.certificates

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(start, range(4)))

    assert len(found) == 1
    assert len(found.pop()) == 2


class Cut(BaseException):
    """Stands for the end of the process."""


def cut_after(writes: int) -> Callable[[Path, bytes], None]:
    """Writes files as ever, so many, and ends the process at the next."""
    replace, left = private_files.replace, writes

    def cut(file: Path, content: bytes) -> None:
        nonlocal left
        if not left:
            raise Cut
        left -= 1
        replace(file, content)

    return cut


@pytest.mark.parametrize("writes", range(4))
def test_a_first_start_that_was_cut_short_is_made_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int):
    """Whichever of the four files was the last one written, the next start has a sound folder."""
    path = tmp_path / "keys"
    with monkeypatch.context() as patched:
        patched.setattr(private_files, "replace", cut_after(writes))
        with pytest.raises(Cut):
            KeyFolder(path, PASSPHRASE).open_or_make(MADE)

    folder = KeyFolder(path, PASSPHRASE)
    folder.open_or_make(MADE)
    assert len(folder.certificates) == 2


def test_a_rotation_brings_the_next_signer(key_folder: KeyFolder, keys_path: Path):
    """The next signer is issued by the same root; of the old one the certificate stays, and its private key goes."""
    old = key_folder.certificate

    new = key_folder.rotate(NEXT_YEAR)

    assert key_folder.certificates == (key_folder.root, old, new)
    assert key_folder.certificate.public_key.verify(key_folder.signer.sign(b"note"), b"note")
    assert names(keys_path) == {"lock", "root.key", "root.pem", "signers/0001.pem", "signers/0002.key", "signers/0002.pem"}


def test_a_folder_that_was_opened_is_held_to_its_root(key_folder: KeyFolder, keys_path: Path, tmp_path: Path):
    """Another folder in its place, with however many signers, is refused with both fingerprints, and what was opened stays."""
    root, signer = key_folder.root, key_folder.certificate
    keys_path.rename(tmp_path / "away")
    other = KeyFolder(keys_path, PASSPHRASE)
    other.open_or_make(MADE)
    other.rotate(MADE)
    assert key_folder.current_changed()

    with pytest.raises(ConfigError, match=f"{root.fingerprint.hex()}, and .* has another, {other.root.fingerprint.hex()}"):
        key_folder.open(MADE)
    assert (key_folder.root, key_folder.certificate) == (root, signer)


def test_the_root_of_a_log_is_the_only_one(key_folder: KeyFolder, keys_path: Path, tmp_path: Path):
    """The log's own folder passes; another root or none is refused, and the remedy is the backup."""
    refuse_another_root(keys_path, read_root(keys_path), key_folder.root)

    with pytest.raises(ConfigError, match="has none") as refused:
        refuse_another_root(tmp_path / "gone", read_root(tmp_path / "gone"), key_folder.root)
    assert "backup" in refused.value.advice
    assert not (tmp_path / "gone").exists()


def test_the_folder_knows_who_had_a_signer_made(key_folder: KeyFolder, keys_path: Path):
    """It stands beside the certificate; what a process made, or what nobody can read, is nobody's."""
    new = key_folder.rotate(NEXT_YEAR, operator="cli:alice")

    assert [key_folder.maker(signer) for signer in key_folder.certificates[1:]] == [None, "cli:alice"]
    (keys_path / "signers" / "0002.by").write_bytes(b"cli:\xff")
    assert key_folder.maker(new) is None


def test_a_running_process_notices_a_rotation(key_folder: KeyFolder, keys_path: Path):
    """It goes on with its signer until it looks, and then has the new one and all certificates."""
    old = key_folder.signer
    assert not key_folder.current_changed()

    KeyFolder(keys_path, PASSPHRASE).rotate(NEXT_YEAR)

    assert key_folder.current_changed()
    assert old.public.verify(key_folder.signer.sign(b"note"), b"note")
    key_folder.open_or_make(NEXT_YEAR)
    assert not key_folder.current_changed()
    assert len(key_folder.certificates) == 3
    assert old.spki != key_folder.signer.spki


def test_when_the_folder_is_gone_who_signs_goes_on(key_folder: KeyFolder, keys_path: Path):
    """A folder that cannot be read is no rotation; the key in memory signs."""
    shutil.rmtree(keys_path)
    assert not key_folder.current_changed()

    keys_path.write_bytes(b"")
    assert not key_folder.current_changed()
    assert key_folder.certificate.public_key.verify(key_folder.signer.sign(b"note"), b"note")


@pytest.mark.parametrize("writes", range(2))
def test_a_rotation_that_was_cut_short_leaves_a_signer(
    key_folder: KeyFolder, keys_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
):
    """Before the new certificate stands the old signer signs; whatever lies about, the next rotation succeeds."""
    old = key_folder.certificate
    with monkeypatch.context() as patched:
        patched.setattr(private_files, "replace", cut_after(writes))
        with pytest.raises(Cut):
            KeyFolder(keys_path, PASSPHRASE).rotate(NEXT_YEAR)

    key_folder.open(NEXT_YEAR)
    assert old == key_folder.certificate
    assert len({key_folder.rotate(NEXT_YEAR), *key_folder.certificates}) == 3


def test_a_private_key_that_a_cut_rotation_left_goes_at_the_next_start(key_folder: KeyFolder, keys_path: Path):
    """What was replaced signs no more, even if its key was not removed in time; to look alone removes nothing."""
    left = (keys_path / "signers" / "0001.key").read_bytes()
    key_folder.rotate(NEXT_YEAR)
    private_files.replace(keys_path / "signers" / "0001.key", left)

    key_folder.check(NEXT_YEAR)
    assert (keys_path / "signers" / "0001.key").exists()
    key_folder.open_or_make(NEXT_YEAR)
    assert not (keys_path / "signers" / "0001.key").exists()


def test_nothing_is_rotated_where_nothing_is(tmp_path: Path):
    """Without keys there is nothing to rotate, and no folder is made."""
    with pytest.raises(ConfigError, match="has no signer yet"):
        KeyFolder(tmp_path / "keys", PASSPHRASE).rotate(MADE)
    assert not (tmp_path / "keys").exists()


def overwrite(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda path: private_files.replace(path / name, content)


def swap(one: str, other: str) -> Callable[[Path], None]:
    """Let `one` hold what `other` holds."""
    return lambda path: private_files.replace(path / one, (path / other).read_bytes())


def flip(name: str) -> Callable[[Path], None]:
    """Change one character in the middle of a PEM."""

    def change(path: Path) -> None:
        text = bytearray((path / name).read_bytes())
        text[200] = ord("A") if text[200] != ord("A") else ord("B")
        private_files.replace(path / name, bytes(text))

    return change


@pytest.mark.parametrize(
    ("damage", "named", "remedy"),
    [
        (lambda path: (path / "signers" / "0001.key").unlink(), "signers/0001.key: missing", "Restore it"),
        (lambda path: (path / "root.pem").unlink(), "root.pem: missing", "Restore it"),
        (overwrite("signers/0001.key", b""), "signers/0001.key: no private key in PEM", "Restore it"),
        (overwrite("signers/0001.key", b"\xff\xfe"), "signers/0001.key: no private key in PEM", "Restore it"),
        (flip("signers/0001.key"), "signers/0001.key: ", "audit.passphrase"),
        (flip("signers/0001.pem"), "signers/0001.pem: ", "Restore it"),
        (overwrite("signers/0001.pem", b"nothing"), "signers/0001.pem: not PEM", "Restore it"),
        (overwrite("root.pem", b""), "root.pem: not PEM", "Restore it"),
        (swap("signers/0001.key", "root.key"), "signers/0001.key: this private key is not the one of the certificate", "Restore it"),
        (swap("signers/0001.pem", "root.pem"), "signers/0001.pem: .* is a CA", "Restore it"),
        (swap("root.pem", "signers/0001.pem"), "signers/0001.pem: .* is no root", "Restore it"),
        (overwrite("signers/0003.pem", b""), "signers/0002.pem: missing", "Restore it"),
        (lambda path: path.chmod(0o750), r"audit-keys: open to others \(mode 750\)", "chmod 700 "),
        (lambda path: (path / "signers" / "0001.key").chmod(0o640), r"0001.key: open to others \(mode 640\)", "chmod 600 "),
    ],
)
def test_a_folder_that_is_not_sound_stops_the_start(keys_path: Path, damage: Callable[[Path], None], named: str, remedy: str):
    """Each damage is a ConfigError that names the file and what to do; nothing is made in its place."""
    damage(keys_path)
    before = names(keys_path)

    with pytest.raises(ConfigError, match=named) as refused:
        KeyFolder(keys_path, PASSPHRASE).open_or_make(MADE)
    assert remedy in refused.value.advice
    assert before == names(keys_path)


def test_a_number_far_beyond_is_a_signer_that_is_missing(key_folder: KeyFolder, keys_path: Path):
    """A file that names itself a signer of any number is told as a gap in the folder, and not counted to."""
    shutil.copy(keys_path / "signers" / "0001.pem", keys_path / "signers" / f"{10**15}.pem")
    with pytest.raises(ConfigError, match=r"0002\.pem: missing"):
        read_certificates(keys_path)


def test_a_wrong_passphrase_opens_and_changes_nothing(keys_path: Path):
    """It is a ConfigError that names the file; a rotation with it leaves the folder as it was."""
    folder = KeyFolder(keys_path, b"wrong horse battery")
    for attempt in (folder.open_or_make, folder.rotate):
        with pytest.raises(ConfigError, match=r"\.key: the passphrase does not open it, or it is damaged") as refused:
            attempt(MADE)
        assert "audit.passphrase" in refused.value.advice

    KeyFolder(keys_path, PASSPHRASE).open(MADE)
    assert names(keys_path) == {"lock", "root.key", "root.pem", "signers/0001.key", "signers/0001.pem"}


def test_a_signer_whose_time_is_over_does_not_sign(key_folder: KeyFolder, keys_path: Path):
    """After two years the start is refused with the remedy, and a rotation is that."""
    late = MADE + 731 * DAY
    with pytest.raises(ConfigError, match=r"0001.pem: .* is valid from .* to 2028-01-01") as refused:
        KeyFolder(keys_path, PASSPHRASE).open_or_make(late)
    assert "rotate" in refused.value.advice

    assert late < key_folder.rotate(late).not_after


def test_a_root_whose_time_is_over_issues_nothing(key_folder: KeyFolder):
    """No signer is issued that would not be valid."""
    with pytest.raises(ConfigError, match=r"root.pem: "):
        key_folder.rotate(MADE + 7301 * DAY)
    assert len(key_folder.certificates) == 2


def test_only_its_owner_changes_it(keys_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Another user, root too, rotates nothing: the owner could not read the new key."""
    monkeypatch.setattr(os, "getuid", lambda: keys_path.stat().st_uid + 1)

    with pytest.raises(ConfigError, match="belongs to user") as refused:
        KeyFolder(keys_path, PASSPHRASE).rotate(MADE)
    assert "Run this as that user" in refused.value.advice


class Operator:
    """Somebody with a root elsewhere, who issues signers."""

    def __init__(self) -> None:
        self.root_key = PrivateKey.generate()
        self.root = make_root(self.root_key, MADE)

    def issue(self) -> tuple[PrivateKey, Certificate]:
        key = PrivateKey.generate()
        return key, make_signer(key.spki, self.root_key, self.root, MADE)


@pytest.fixture
def operator() -> Operator:
    return Operator()


def test_an_operator_brings_a_signer(tmp_path: Path, operator: Operator):
    """Key and certificate are taken into an empty folder and sign; the root's key is not here, so to rotate is to import again."""
    path = tmp_path / "keys"
    folder = KeyFolder(path, PASSPHRASE)
    first, second = operator.issue(), operator.issue()

    folder.import_signer(*first, operator.root, MADE)
    assert folder.signer.spki == first[0].spki
    assert names(path) == {"lock", "root.pem", "signers/0001.key", "signers/0001.pem"}

    with pytest.raises(ConfigError, match=r"root.key: not here, so no signer can be issued here") as refused:
        folder.rotate(MADE)
    assert "sluice audit keys import" in refused.value.advice

    folder.import_signer(*second, None, MADE)
    assert folder.certificates == (operator.root, first[1], second[1])
    assert not (path / "signers" / "0001.key").exists()
    folder.open_or_make(MADE)
    assert folder.signer.spki == second[0].spki


def test_what_does_not_fit_is_not_imported(key_folder: KeyFolder, keys_path: Path, tmp_path: Path, operator: Operator):
    """Another root, another's key, a certificate of another root or out of its time, a signer that is there: all refused, nothing changed."""
    key, certificate = operator.issue()
    empty = KeyFolder(tmp_path / "empty", PASSPHRASE)
    imported = KeyFolder(tmp_path / "imported", PASSPHRASE)
    imported.import_signer(key, certificate, operator.root, MADE)
    before = names(tmp_path)

    for why, attempt in (
        ("a log keeps its root", lambda: key_folder.import_signer(key, certificate, operator.root, MADE)),
        ("names another issuer", lambda: key_folder.import_signer(key, certificate, None, MADE)),
        ("--root: this folder has no root yet", lambda: empty.import_signer(key, certificate, None, MADE)),
        ("--root: .* is no root", lambda: empty.import_signer(key, certificate, certificate, MADE)),
        ("not the one of the certificate", lambda: empty.import_signer(operator.root_key, certificate, operator.root, MADE)),
        ("is valid from", lambda: empty.import_signer(key, certificate, operator.root, MADE + 900 * DAY)),
        ("is in this folder already", lambda: imported.import_signer(key, certificate, None, MADE)),
        (
            "the passphrase does not open it",
            lambda: KeyFolder(tmp_path / "imported", b"wrong").import_signer(*operator.issue(), None, MADE),
        ),
    ):
        with pytest.raises(ConfigError, match=why):
            attempt()

    assert before | {"empty/lock"} == names(tmp_path)


def test_certificates_are_read_without_passphrase(key_folder: KeyFolder, keys_path: Path):
    """What is public needs no secret: the root, and all signers in their order."""
    key_folder.rotate(NEXT_YEAR)

    found = read_certificates(keys_path)

    assert key_folder.certificates == found.all
    assert found.root == key_folder.root


def test_private_keys_come_in_known_forms(signer: PrivateKey):
    """Encrypted with the passphrase; what is encrypted in the old way of PEM, or is no key, is KeyRefused with the way out."""
    encrypted = pem.armor("ENCRYPTED PRIVATE KEY", signer.encrypt(b"sesame"))
    old = b"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n"

    assert load_key(encrypted, b"sesame").spki == signer.spki
    for text, why in ((encrypted, "no passphrase was given"), (old, "openssl pkcs8 -topk8"), (b"", "no private key")):
        with pytest.raises(KeyRefused, match=why):
            load_key(text, None)


def test_where_the_folder_is(tmp_path: Path):
    """Under --var, unless audit.keys names another."""
    assert keys_folder(load_settings(), tmp_path) == tmp_path / "audit-keys"
    assert keys_folder(load_settings(overrides=("audit.keys=/srv/keys",)), tmp_path) == Path("/srv/keys")
