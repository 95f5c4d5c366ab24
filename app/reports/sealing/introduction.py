"""Tells the log who signs reports: an entry for each signer of the folder of report keys that the log doesn't know yet. Pure.

They are owed before the first report that the new signer signs; `sluice report keys rotate` has no log to write to.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from app.audit.records.entry import SERVICE, Entry
from app.audit.records.key import signer_created, signer_rotated
from app.signing.keys import KeyFolder

KINDS = ("key.created", "key.rotated")
"""Entries that tell of signers; those of other uses are among them."""


def known_signers(entries: Iterable[Mapping[str, Any]]) -> set[str]:
    """The signers of reports that these bodies of entries of KINDS tell of: SM3 fingerprints in hex."""
    return {str(entry["key"]) for entry in entries if entry.get("use") == "report"}


def introductions(keys: KeyFolder, known: Collection[str], recorded: datetime) -> list[Entry]:
    """The entries that the log is owed for the signers of the opened folder that are not `known`, the oldest first; none where all are."""
    _, *signers = keys.certificates
    entries = []
    for before, signer in zip((None, *signers), signers, strict=False):
        if signer.fingerprint.hex() in known:
            continue
        operator = keys.maker(signer) or SERVICE
        if before is None:
            entries.append(signer_created(recorded=recorded, operator=operator, signer=signer, use="report"))
        else:
            entries.append(signer_rotated(recorded=recorded, operator=operator, before=before, after=signer, use="report"))
    return entries
