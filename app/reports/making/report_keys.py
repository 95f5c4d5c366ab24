"""The keys of reports, open. They are made by the way only before the first night of a log was signed: later they are lost, not new.

Whoever checks reports was given one root. A second one that comes to be unasked would leave all earlier nights under a root that nobody
here has any more, and nobody would have been told.

When down: DatabaseDown where there are no keys and the log cannot be asked, and none are made. With keys the log is not asked.
"""

from datetime import datetime
from pathlib import Path

from app.errors import ConfigError
from app.reports.shelf.made import SignedBefore, signed_before
from app.settings import Settings
from app.signing.key_files import newest_signer
from app.signing.keys import KeyFolder, keys_folder
from app.signing.passphrase import known_passphrase, passphrase_of
from app.signing.uses import REPORTS
from app.transaction import Transactions

REMEDY = (
    f"Bring the folder back from your backup, or name it with {REPORTS.keys_field}. If it is lost, `{REPORTS.command} init` makes new keys: "
    "hand out their root; earlier nights stay checkable under the root.pem in their folders alone."
)


async def open_keys(settings: Settings, var: Path, now: datetime, transactions: Transactions) -> KeyFolder:
    """The keys that the settings name, open, and made where the log has no signed night. Raises ConfigError, DatabaseDown.

    `transactions` are of role sluice_log. Opens private keys: the caller has forbidden dumps of its memory.
    """
    folder = keys_folder(settings, var, REPORTS)
    known_passphrase(settings, var, REPORTS)  # what is wrong with it is told first, and none is made beside keys that are lost
    if not newest_signer(folder) and (signed := await signed_before(transactions)):
        raise ConfigError(lost(folder, signed), hint=REMEDY, field=REPORTS.keys_field)
    keys = KeyFolder(folder, passphrase_of(settings, var, REPORTS), REPORTS)
    keys.open_or_make(now)
    return keys


def lost(folder: Path, signed: SignedBefore) -> str:
    """What is said of missing keys."""
    times = "once" if signed.times == 1 else f"{signed.times} times"
    return f"{REPORTS.keys_field}: {folder} has no keys, and the log says that reports were signed {times} since {signed.since:%Y-%m-%d}"
