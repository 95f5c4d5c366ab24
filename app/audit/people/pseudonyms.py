"""Pseudonyms: subject ids and addresses stand in the log as HMAC-SM3 under a key of their tenant.

A bare hash of an e-mail address is guessed in minutes; without the master file nobody can test a guess, and equal subjects
of two tenants stay unlinked.

When down: a master file that cannot be read or made stops the start with ConfigError, since entries without pseudonyms
would either lose the subject or expose it.
"""

import hashlib
import hmac
from pathlib import Path

from app.audit.people.master_key import master_key
from app.errors import ConfigError

MASTER_FILE = "pseudonym.key"
PREFIX = "p1:"  # names the derivation, so that a later one can stand beside it
_DIGEST = "sm3"


class Pseudonyms:
    """Makes pseudonyms from the master key in `secrets_dir`; the first start makes the key (0600)."""

    def __init__(self, secrets_dir: Path) -> None:
        if _DIGEST not in hashlib.algorithms_available:
            raise ConfigError("this Python's OpenSSL lacks SM3", hint="Use a Python linked to OpenSSL 1.1.1 or newer with SM3 enabled.")
        self._master = master_key(secrets_dir / MASTER_FILE)

    def subject(self, tenant: str, subject_id: str) -> str:
        """The pseudonym of a subject of `tenant`."""
        return self._pseudonym(tenant, "subject", subject_id)

    def address(self, tenant: str, address: str) -> str:
        """The pseudonym of a network address that called for `tenant`."""
        return self._pseudonym(tenant, "address", address)

    def tenant(self, tenant: str) -> str:
        """The pseudonym of a tenant that is itself a person, such as a sole trader."""
        return self._pseudonym(tenant, "tenant", tenant)

    def operator(self, name: str) -> str:
        """The pseudonym of who made a change, by the name in its entry: whose key seals what they wrote. Operators have no tenant."""
        return self._pseudonym("", "operator", name)

    def _pseudonym(self, tenant: str, use: str, text: str) -> str:
        key = hmac.digest(self._master, tenant.encode(), _DIGEST)
        return PREFIX + hmac.digest(key, f"{use}\0{text}".encode(), _DIGEST).hex()
