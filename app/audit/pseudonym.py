"""Pseudonyms: subject ids and addresses enter the log only as HMAC-SM3 under a key of their tenant.

A bare hash of an e-mail address is guessed in minutes; without the master file nobody can test a guess, and equal subjects
of two tenants stay unlinked.

When down: a master file that cannot be read or made stops the start with ConfigError, since entries without pseudonyms
would either lose the subject or expose it.
"""

import hashlib
import hmac
import secrets
from pathlib import Path

from app import private_files
from app.errors import ConfigError

MASTER_FILE = "pseudonym.key"
MASTER_BYTES = 32
PREFIX = "p1:"  # names the derivation, so that a later one can stand beside it
_DIGEST = "sm3"


class Pseudonyms:
    """Makes pseudonyms from the master key in `secrets_dir`; the first start makes the key (0600)."""

    def __init__(self, secrets_dir: Path) -> None:
        if _DIGEST not in hashlib.algorithms_available:
            raise ConfigError("this Python's OpenSSL lacks SM3", hint="Use a Python linked to OpenSSL 1.1.1 or newer with SM3 enabled.")
        self._master = _master_key(secrets_dir / MASTER_FILE)

    def subject(self, tenant: str, subject_id: str) -> str:
        """The pseudonym of a subject of `tenant`."""
        return self._pseudonym(tenant, "subject", subject_id)

    def address(self, tenant: str, address: str) -> str:
        """The pseudonym of a network address that called for `tenant`."""
        return self._pseudonym(tenant, "address", address)

    def _pseudonym(self, tenant: str, use: str, text: str) -> str:
        key = hmac.digest(self._master, tenant.encode(), _DIGEST)
        return PREFIX + hmac.digest(key, f"{use}\0{text}".encode(), _DIGEST).hex()


def _master_key(path: Path) -> bytes:
    key = private_files.write_once(path, secrets.token_bytes(MASTER_BYTES))
    if len(key) != MASTER_BYTES:
        raise ConfigError(
            f"{path}: not a key of {MASTER_BYTES} bytes", hint="Restore the file; a new one would break the link to old entries."
        )
    return key
