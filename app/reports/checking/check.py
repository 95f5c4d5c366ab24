"""Whether a file of a night's reports is as it was signed: a PDF, a file with its signature beside it, a manifest, a night's folder.

It takes the file, what lies beside it, and the root certificate that whoever checks was given; no database, no settings, no network.
A root that came with what it vouches for proves nothing: take it from elsewhere. The root alone decides who may sign, and no name in a
certificate does: what the log's key signed would be valid under the log's root, which is why that key signs no report.

When down: what cannot be read is `unchecked`, never tampered.
"""

import os
from pathlib import Path

from app.reports.checking.night import check_file, check_manifest
from app.reports.checking.result import Result, failed
from app.reports.checking.source import Unreadable, opened
from app.reports.manifest import MANIFEST
from app.signing.certificates import Certificate, CertificateRefused, verify_root


def check(path: Path, root: Certificate) -> Result:
    """What is to be said of the file or folder at `path` under the root certificate `root`. Raises nothing of its own."""
    path = path / MANIFEST if os.path.isdir(path) else path  # noqa: PTH112 - which takes any name
    try:
        verify_root(root)
    except CertificateRefused as error:
        return failed(path.name, "root", error.message)
    try:
        with opened(path) as source:
            return check_manifest(path, source, root) if path.name == MANIFEST else check_file(path, source, root)
    except Unreadable as error:
        return failed(path.name, "unreadable", error.message)
