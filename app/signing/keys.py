"""A folder of keys, of the log or of the reports: a root that issues signers, and the signers, of which the newest signs.

    root.pem            the root's certificate
    root.key            its private key; not here where an operator keeps it elsewhere
    signers/0001.pem    certificates of all signers that ever were, in their order
    signers/0002.key    the private key of the newest alone
    signers/0002.by     who ran the command that made or brought it; not there for one that the process that signs made
    lock                held by whoever changes the folder

Private keys are PKCS#8, encrypted with one passphrase; files are 0600 in folders of 0700. The private key of a signer goes when the
next one comes: nothing may be signed with it any more, and to verify what it signed takes its certificate alone.

When down: a folder that is open to others, or in which a key is missing, damaged, of another passphrase or not of its certificate,
is a ConfigError that names the file. A process that already signs goes on with the key it has.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from app import private_files
from app.errors import ConfigError
from app.setting_sections import AuditSettings, ReportSettings
from app.settings import Settings
from app.signing.apart import check_apart
from app.signing.certificates import Certificate, make_root, make_signer, verify_issued, verify_root
from app.signing.key_files import (
    Certificates,
    check_pair,
    newest_signer,
    read_certificate,
    read_certificates,
    read_key,
    read_maker,
    read_root,
    refuse_another_root,
    root_file,
    signer_file,
    told,
    write_key,
    write_maker,
)
from app.signing.sm2 import PrivateKey
from app.signing.uses import LOG, REPORTS, KeyUse


def keys_folder(settings: Settings, var: Path, use: KeyUse = LOG) -> Path:
    """Where the keys of this use are, with these settings and `var`. Raises ConfigError where those of reports are the log's."""
    folder = Path(section_of(settings, use).keys or var / use.folder)
    if use is REPORTS:
        check_apart(folder, keys_folder(settings, var))
    return folder


def section_of(settings: Settings, use: KeyUse) -> AuditSettings | ReportSettings:
    """The settings of the keys of this use."""
    return settings.report if use is REPORTS else settings.audit


class KeyFolder:
    """The keys in the folder `path`, for the one process that signs and for the commands that change them.

    `signer` and the certificates are there once it was opened.
    """

    signer: PrivateKey
    """The key that signs now."""
    _certificates: Certificates

    def __init__(self, path: Path, passphrase: bytes, use: KeyUse = LOG) -> None:
        self.path = path
        self._use = use
        self._passphrase = passphrase
        self._opened_root: Certificate | None = None

    def __repr__(self) -> str:
        return f"KeyFolder({str(self.path)!r})"

    @property
    def root(self) -> Certificate:
        """The certificate whose key issues the signers'."""
        return self._certificates.root

    @property
    def certificate(self) -> Certificate:
        """That of the key that signs now."""
        return self._certificates.signers[-1]

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """The root's, then those of all signers that ever were, in their order."""
        return self._certificates.all

    def open_or_make(self, now: datetime) -> None:
        """Open the folder, with new keys where it has none. Of several starts at once one makes them. Raises ConfigError."""
        if not newest_signer(self.path):
            with self._locked():
                if not newest_signer(self.path):
                    self._make(now)
        self.open(now)

    def make(self, now: datetime, *, operator: str | None = None) -> Certificate:
        """New keys where the folder has none, open. Raises ConfigError where it has some."""
        with self._locked():
            if newest_signer(self.path):
                raise ConfigError(
                    f"{self.path}: has keys already",
                    hint=f"`{self._use.command} rotate` issues the next signer; `list` shows them. If private keys of it are lost, bring them "
                    "back from your backup; where there is none, move the folder away first.",
                )
            self._make(now, operator)
        self.open(now)
        return self.certificate

    def open(self, now: datetime) -> None:
        """Open the newest signer, which must be valid `now`, and remove private keys of earlier ones. Raises ConfigError.

        Again, after a rotation, it follows that; a folder that was put in its place, with another root, is refused.
        """
        newest = newest_signer(self.path)
        try:
            self.check(now)
        except ConfigError:
            if newest_signer(self.path) == newest:
                raise
            self.check(now)  # rotated while we read, which took the key away
        self._remove_keys_before(signer_file(self.path, len(self._certificates.signers)))

    def check(self, now: datetime) -> None:
        """Open it as `open` does, and change nothing in the folder. Raises ConfigError."""
        certificates = read_certificates(self.path, self._use)
        if self._opened_root:
            refuse_another_root(self.path, certificates.root, self._opened_root, self._use)
        newest, file = certificates.signers[-1], signer_file(self.path, len(certificates.signers))
        remedy = f"`{self._use.command} rotate` issues the next one, `import` takes one that you issued. Or is this machine's clock wrong?"
        with told(file, remedy):
            verify_issued(newest, certificates.root, now)
        self.signer, self._certificates = self._read_key(file, newest), certificates
        self._opened_root = certificates.root

    def current_changed(self) -> bool:
        """Whether the folder has a newer signer than the one that was opened; cheap enough for every second."""
        try:
            return newest_signer(self.path) > len(self._certificates.signers)
        except ConfigError:
            return False

    def maker(self, signer: Certificate) -> str | None:
        """The operator who had this signer made or brought it; None where the process that signs did, or nobody knows."""
        return read_maker(self.path, self._certificates.signers.index(signer) + 1)

    def rotate(self, now: datetime, *, operator: str | None = None) -> Certificate:
        """Issue the next signer, open it, and remove the private key of the last one. Raises ConfigError."""
        read_certificates(self.path, self._use)  # before anything is made where there is nothing to rotate
        with self._locked():
            signers = read_certificates(self.path, self._use).signers
            self._issue(len(signers) + 1, now, operator)
        self.open(now)
        return self.certificate

    def import_signer(
        self, key: PrivateKey, certificate: Certificate, root: Certificate | None, now: datetime, *, operator: str | None = None
    ) -> Certificate:
        """Take a signer that an operator's own root issued as the next one. Raises ConfigError; nothing changed then.

        `root` may be left out where the folder has one, and must be the same otherwise: a folder keeps its root.
        """
        with self._locked():
            newest = newest_signer(self.path)
            issuer = self._root_for_import(root)
            with told("--certificate", "Give a certificate that this root issued for signing, valid now, with the key that belongs to it."):
                verify_issued(certificate, issuer, now)
                check_pair(key, certificate)
            if newest:
                self._refuse_unfit_import(certificate)
            private_files.write_once(root_file(self.path), issuer.pem.encode())
            self._install(newest + 1, key, certificate, operator)
        self.open(now)
        return self.certificate

    def _root_for_import(self, given: Certificate | None) -> Certificate:
        file, here = root_file(self.path), read_root(self.path)
        if here and given and here.fingerprint != given.fingerprint:
            raise ConfigError(
                f"{file}: another root than --root; {self._use.keeps}",
                hint=f"Name an empty folder with {self._use.keys_field} before anything is signed.",
            )
        if not (root := given or here):
            raise ConfigError("--root: this folder has no root yet", hint="Name the certificate of the root that issued the signer.")
        with told("--root", "Give a self-signed SM2 certificate that may issue others."):
            verify_root(root)
        return root

    def _refuse_unfit_import(self, certificate: Certificate) -> None:
        """The keys of a folder have one passphrase, and nobody signs again who was replaced."""
        signers = read_certificates(self.path, self._use).signers
        self._read_key(signer_file(self.path, len(signers)), signers[-1])
        if certificate.spki in {signer.spki for signer in signers}:
            raise ConfigError(f"--certificate: the key of {certificate.subject!r} is in this folder already", hint="Import a new key.")

    def _make(self, now: datetime, operator: str | None = None) -> None:
        """A root and a first signer. What a start that was cut short has left is used, or written anew where nothing refers to it."""
        root = root_file(self.path)
        if not root.exists():
            key = PrivateKey.generate()
            write_key(root.with_suffix(".key"), key, self._passphrase)
            private_files.replace(root, make_root(key, now, self._use).pem.encode())
        self._issue(1, now, operator)

    def _issue(self, number: int, now: datetime, operator: str | None) -> None:
        file = root_file(self.path)
        root, key_file = read_certificate(file), file.with_suffix(".key")
        if not key_file.exists():
            raise ConfigError(
                f"{key_file}: not here, so no signer can be issued here",
                hint=f"Issue one where the root's key is, and take it in with `{self._use.command} import`.{self._use.way_on}",
            )
        root_key = self._read_key(file, root)
        key = PrivateKey.generate()
        certificate = make_signer(key.spki, root_key, root, now, self._use)
        with told(file, f"Is this machine's clock right? When the time of a root is over, it takes {self._use.over}."):
            verify_issued(certificate, root, now)
        self._install(number, key, certificate, operator)

    def _read_key(self, file: Path, certificate: Certificate) -> PrivateKey:
        """The private key beside `file`, which is that of `certificate`. Raises ConfigError."""
        return read_key(file.with_suffix(".key"), self._passphrase, certificate, self._use)

    def _install(self, number: int, key: PrivateKey, certificate: Certificate, operator: str | None) -> None:
        """The certificate comes last: it makes the signer the newest, and by then its key is there."""
        file = signer_file(self.path, number)
        write_key(file.with_suffix(".key"), key, self._passphrase)
        write_maker(self.path, number, operator)
        private_files.replace(file, certificate.pem.encode())

    def _remove_keys_before(self, newest: Path) -> None:
        with told(newest.parent, "Let this user remove files there: private keys of earlier signers must go."):
            for file in newest.parent.glob("*.key"):
                if file.stem.isdecimal() and int(file.stem) < int(newest.stem):
                    file.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """The folder, made (0700) if need be, for this process alone to change."""
        if os.path.lexists(self.path) and not self.path.is_dir():
            raise ConfigError(f"{self.path}: is no folder", hint=f"Move it away, or name a folder with {self._use.keys_field}.")
        with told(self.path, f"Let this user write to it, or name another folder with {self._use.keys_field}."):
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            owner = self.path.stat().st_uid
        private_files.check_folder(self.path)
        if owner != os.getuid():
            raise ConfigError(f"{self.path}: belongs to user {owner}, who could not read what is made now", hint="Run this as that user.")
        with told(self.path / "lock", "Let this user write to it."):
            lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
