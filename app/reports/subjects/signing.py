"""The report keys, where there are any, and the entries that the log is owed of whoever signs with them.

When down: a folder of keys that cannot be opened is a ConfigError, and no report is made; without a folder reports are not signed, and say so.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from app.audit.reading.proven import Closing, ProvenEntries, of_kinds
from app.audit.records.entry import Entry
from app.reports.sealing.introduction import KINDS, introductions, known_signers
from app.reports.sealing.sealer import Sealer
from app.settings import Settings
from app.signing import sm2
from app.signing.key_files import newest_signer
from app.signing.keys import KeyFolder, keys_folder
from app.signing.passphrase import passphrase_of
from app.signing.uses import REPORTS


@dataclass(frozen=True, slots=True)
class Signing:
    """What signs, and with what that is checked."""

    keys: KeyFolder
    """Of the reports, open."""
    sealer: Sealer

    async def introduced(self, entries: ProvenEntries, closing: Closing, now: datetime) -> list[Entry]:
        """What the log is owed before a report is given that a new signer signed. Raises DatabaseDown, LogDamaged."""
        told = await entries.all(of_kinds(*KINDS), closing.checkpoint)
        return introductions(self.keys, known_signers(entry.body for entry in told), now)


def signing_of(settings: Settings, var: Path, now: datetime) -> Signing | None:
    """The keys that the settings name; None where nobody made any. Raises ConfigError.

    Opens private keys: the caller has forbidden dumps of its memory.
    """
    folder = keys_folder(settings, var, REPORTS)
    if not newest_signer(folder):
        return None
    sm2.self_test()
    keys = KeyFolder(folder, passphrase_of(settings, var, REPORTS), REPORTS)
    keys.open(now)
    return Signing(keys, Sealer.of(settings.report, keys))
