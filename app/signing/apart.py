"""The keys of reports are never the log's: whoever trusts a root knows what it vouches for."""

import os
from pathlib import Path

from app.errors import ConfigError
from app.signing.key_files import newest_signer, read_certificates, read_root
from app.signing.uses import LOG, REPORTS, KeyUse

HINT = f"Name a folder of their own with {REPORTS.keys_field}, which is empty: {REPORTS.first}."


def check_apart(reports: Path, log: Path) -> None:
    """Raise ConfigError where the folder `reports` of report keys is that of the `log`, lies in it or around it, or has a key of the log's.

    A log's folder that this user cannot read has no key to sign with here, and is not looked into.
    """
    mine, theirs = reports.resolve(), log.resolve()
    if mine == theirs or mine in theirs.parents or theirs in mine.parents:
        raise ConfigError(f"{REPORTS.keys_field}: {mine}: the report keys are not the log's, whose folder is {theirs}", hint=HINT)
    if os.access(theirs, os.R_OK | os.X_OK) and _keys(mine, REPORTS) & _keys(theirs, LOG):
        raise ConfigError(f"{REPORTS.keys_field}: {mine}: has a key of the log, as it is in {theirs}", hint=HINT)


def _keys(folder: Path, use: KeyUse) -> set[bytes]:
    """Public keys of the root and of all signers that ever were, as DER; none of a folder that is not there."""
    if newest_signer(folder):
        return {certificate.spki for certificate in read_certificates(folder, use).all}
    root = read_root(folder)
    return {root.spki} if root else set()
