"""Where in a folder of keys what is, and how it is read: certificates without, private keys with the passphrase.

When down: a file that is missing, damaged or open to others is a ConfigError that names it and the remedy.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from asn1crypto import pem

from app import private_files
from app.errors import ConfigError, SluiceError
from app.signing.certificates import Certificate, CertificateRefused, verify_issued, verify_root
from app.signing.sm2 import KeyRefused, PrivateKey
from app.signing.uses import LOG, KeyUse

SIGNER_FILE = re.compile(r"([0-9]{4,})\.pem")
MAX_MAKER_BYTES = 128
"""Names of users are shorter; whatever else stands there is not worth an entry."""
RESTORE = "Restore it from a copy of this folder."
_ENCRYPTED = "ENCRYPTED PRIVATE KEY"
_CLEAR = ("PRIVATE KEY", "EC PRIVATE KEY")


@dataclass(frozen=True, slots=True)
class Certificates:
    """What a folder of keys shows to everybody."""

    root: Certificate
    signers: tuple[Certificate, ...]
    """In their order: the last one signs."""

    @property
    def all(self) -> tuple[Certificate, ...]:
        """The root, then the signers."""
        return (self.root, *self.signers)


def root_file(folder: Path) -> Path:
    """The root's certificate; its private key, where it is here, has the suffix .key."""
    return folder / "root.pem"


def signer_file(folder: Path, number: int) -> Path:
    """The certificate of the signer `number`, counted from 1; its private key has the suffix .key."""
    return folder / "signers" / f"{number:04}.pem"


def write_maker(folder: Path, number: int, maker: str | None) -> None:
    """Note beside the signer `number` who had it made or brought it: an operator, or None for the process that signs. Raises ConfigError."""
    file = _maker_file(folder, number)
    if maker is not None:
        private_files.replace(file, maker.encode())
        return
    with told(file, "Let this user write to its folder."):
        file.unlink(missing_ok=True)


def read_maker(folder: Path, number: int) -> str | None:
    """Who that was, as far as the folder knows; it is its owner's word, and no reason to sign nothing where it cannot be read."""
    try:
        maker = private_files.read(_maker_file(folder, number))[:MAX_MAKER_BYTES].decode()
    except (ConfigError, UnicodeDecodeError):
        return None
    return maker if maker and maker.isprintable() else None


def _maker_file(folder: Path, number: int) -> Path:
    return signer_file(folder, number).with_suffix(".by")


def newest_signer(folder: Path) -> int:
    """The number of the newest signer; 0 where there is none, or no folder yet. Raises ConfigError."""
    signers = folder / "signers"
    with told(signers, "Let this user read it."):
        here = signers.is_dir()
        names = [file.name for file in signers.iterdir()] if here else []
    if not here and os.path.lexists(signers):
        raise ConfigError(f"{signers}: is no folder", hint=f"{RESTORE} Where there is none, move what is left of the keys away.")
    return max((int(match[1]) for name in names if (match := SIGNER_FILE.fullmatch(name))), default=0)


def read_certificates(folder: Path, use: KeyUse = LOG) -> Certificates:
    """The certificates in `folder`, each signer's checked against the root; takes no passphrase. Raises ConfigError."""
    newest = newest_signer(folder)
    if not newest:
        hint = f"{use.first}; `{use.command} import` takes yours."
        raise ConfigError(f"{folder}: has no signer yet", hint=hint)
    private_files.check_folder(folder)
    root = read_certificate(root_file(folder))
    # One after the other: a file of a number far beyond is told as a gap, not counted to.
    return Certificates(root, tuple(_read_signer(signer_file(folder, number), root) for number in range(1, newest + 1)))


def _read_signer(file: Path, root: Certificate) -> Certificate:
    signer = read_certificate(file)
    with told(file, RESTORE):
        verify_issued(signer, root)
    return signer


def read_root(folder: Path) -> Certificate | None:
    """The root's certificate in `folder`; None where there is none, or no folder. Raises ConfigError."""
    file = root_file(folder)
    return read_certificate(file) if _is_there(file) else None


def read_root_alone(folder: Path, use: KeyUse = LOG) -> Certificate:
    """The root's certificate, which a folder may have without any signer, to check under it. Raises ConfigError."""
    root = read_root(folder)
    if root is None:
        return read_certificates(folder, use).root  # says how keys come to be
    private_files.check_folder(folder)
    with told(root_file(folder), RESTORE):
        verify_root(root)
    return root


def refuse_another_root(folder: Path, here: Certificate | None, first: Certificate, use: KeyUse = LOG) -> None:
    """Raise ConfigError unless the root `here`, in `folder`, is the `first` of this use: it has one for ever, under which verifiers know it."""
    if here is not None and here.fingerprint == first.fingerprint:
        return
    found = f"has another, {here.fingerprint.hex()}" if here else "has none"
    raise ConfigError(
        f"the root of {use.whose} is {first.fingerprint.hex()}, and {folder} {found}",
        hint=f"Put the folder of its keys back from its backup, or name it with {use.keys_field}. {use.other_root}",
        field=use.keys_field,
    )


def read_certificate(file: Path) -> Certificate:
    """The certificate in `file`. Raises ConfigError."""
    text = _read(file)
    with told(file, RESTORE):
        return Certificate.load_pem(text)


def read_key(file: Path, passphrase: bytes, certificate: Certificate, use: KeyUse = LOG) -> PrivateKey:
    """The private key in `file`, which must be that of `certificate`. Raises ConfigError."""
    text = _read(file, f"{RESTORE}{use.way_on}")
    passphrase_is = f"{use.passphrase_field}; where that is not set, secrets/{use.passphrase_file}"
    with told(file, f"Is the passphrase ({passphrase_is}) that of this folder? If so: {RESTORE}"):
        key = load_key(text, passphrase)
        check_pair(key, certificate)
    return key


def write_key(file: Path, key: PrivateKey, passphrase: bytes) -> None:
    """Let `file` hold `key`, encrypted. Raises ConfigError."""
    private_files.replace(file, pem.armor(_ENCRYPTED, key.encrypt(passphrase)))


def load_key(text: bytes, passphrase: bytes | None) -> PrivateKey:
    """The first private key of a PEM text, encrypted or in clear. Raises KeyRefused."""
    with contextlib.suppress(ValueError, TypeError):
        for label, headers, der in pem.unarmor(text, multiple=True):
            if label == _ENCRYPTED and passphrase is not None:
                return PrivateKey.decrypt(der, passphrase)
            if label == _ENCRYPTED:
                raise KeyRefused("it is encrypted, and no passphrase was given for it")
            if label in _CLEAR and not headers:
                return PrivateKey.load(der)
    raise KeyRefused("no private key in PEM; `openssl pkcs8 -topk8` makes one of other forms")


def check_pair(key: PrivateKey, certificate: Certificate) -> None:
    """Check that `key` is that of `certificate`. Raises CertificateRefused."""
    if key.spki != certificate.spki:
        raise CertificateRefused(f"this private key is not the one of the certificate {certificate.subject!r}")


@contextlib.contextmanager
def told(what: Path | str, hint: str) -> Iterator[None]:
    """Turn what is refused in the block into a ConfigError that names `what` and the remedy."""
    try:
        with private_files.refused_as(what, hint):
            yield
    except ConfigError:
        raise
    except SluiceError as error:
        raise ConfigError(f"{what}: {error.message}", hint=hint) from None


def _read(file: Path, restore: str = RESTORE) -> bytes:
    if not _is_there(file):
        raise ConfigError(f"{file}: missing", hint=restore)
    return private_files.read(file)


def _is_there(file: Path) -> bool:
    """Whether there is such a file. Raises ConfigError where this user may not see that."""
    with private_files.refused_as(file):
        return file.exists()
