"""Under which root certificate a night's log is checked, and how far that one is to be trusted.

Whoever rewrites a log can give it a root of his own. So the root comes from elsewhere: from the file of the setting report.log_root, else
from the folder of the log's keys. Where there is neither, it is the one that the log itself names, and a report that was signed earlier
decides: the root of the newest that had a trusted one, else of the oldest on the shelf, is taken as the log's (trust on first use).
Without such a report, or where that names another, the log counts as not checked, and the reports say so.

When down: a shelf that cannot be read is ShelfDown, and no report is made.
"""

import os
from pathlib import Path

from app.errors import ConfigError
from app.reports.evidence.facts import RootFrom
from app.reports.making.earlier import signed
from app.reports.shelf.shelf import Shelf
from app.signing.certificates import Certificate, CertificateRefused, verify_root
from app.signing.key_files import read_root

SAID = "log_root"
"""Among the versions of a manifest: where its root came from."""


def given_root(file: str, keys: Path) -> Certificate | None:
    """The root in `file`, else that in the folder `keys` of the log's keys; None where neither is here. Raises ConfigError."""
    if file:
        return _read(Path(file))
    return read_root(keys) if os.access(keys, os.R_OK | os.X_OK) else None


def trust_in(root: Certificate, shelf: Shelf, signed_under: Certificate) -> RootFrom:
    """Whether `root`, which the log itself names, is `pinned` by the reports on the shelf that are signed under the given root. Raises ShelfDown."""
    oldest = None
    for manifest in signed(shelf, signed_under):
        oldest = manifest.log.certificate
        if manifest.versions.get(SAID) != "log":
            break
    return "pinned" if oldest == root.fingerprint.hex() else "log"


def _read(file: Path) -> Certificate:
    hint = (
        "Name a file with the root certificate of the log, as PEM: `sluice audit keys export-public --root` prints it where the keys are."
    )
    try:
        certificate = Certificate.load_pem(file.read_bytes())
        verify_root(certificate)
    except OSError as error:
        raise ConfigError(f"report.log_root: {file}: {error.strerror}", hint=hint, field="report.log_root") from None
    except CertificateRefused as error:
        raise ConfigError(f"report.log_root: {file}: {error.message}", hint=hint, field="report.log_root") from None
    return certificate
