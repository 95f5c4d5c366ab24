"""Whether a file is as the signature beside it says: FILE.p7s, a CMS in DER over every byte of FILE."""

import os
from pathlib import Path

from app.reports.checking.result import Result, failed, valid
from app.reports.checking.source import NotThere, Source, Unreadable, opened
from app.reports.manifest import MANIFEST, SIGNATURE_SUFFIX
from app.signing import cms
from app.signing.certificates import Certificate


def signature_of(path: Path) -> Path:
    """Where the signature of the file `path` is."""
    return path.with_name(path.name + SIGNATURE_SUFFIX)


def signature_beside(path: Path) -> bytes:
    """The DER that lies beside the file `path`. Raises NotThere, Unreadable."""
    beside = signature_of(path)
    try:
        with opened(beside) as signature:
            return signature.read(0, cms.MAX_DER_BYTES + 1)
    except Unreadable as error:
        raise type(error)(f"{beside.name}: {error.message}") from None


def check_beside(path: Path, source: Source, root: Certificate) -> Result:
    """What is to be said of the file `source`, which is at `path`, under the given root. Raises Unreadable for what is there and cannot be read."""
    try:
        der = signature_beside(path)
    except NotThere:
        return failed(path.name, "unsigned", f"no signature {signature_of(path).name} lies beside it{_elsewhere(path)}")
    try:
        signed = cms.verify(der, source.digest("sm3"), root)
    except cms.SignatureRefused as error:
        return failed(path.name, error.cause, error.message)
    return valid(path.name, signed, source.size)


def _elsewhere(path: Path) -> str:
    """Where to look for a night's file that has no signature of its own, such as its log; empty where nothing lies there."""
    if path.name == MANIFEST or not os.path.lexists(path.with_name(MANIFEST)):
        return ""
    return f"; the {MANIFEST} beside it may vouch for it: check that, or the folder"
