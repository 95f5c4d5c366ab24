"""What the time stamp beside a signed file says: FILE.tsr, an answer of RFC 3161 over the SM2 signature of FILE.

Told, and not judged: who the authority is, its own certificate tells, which `openssl ts -verify` checks.
"""

import hashlib
from pathlib import Path

from asn1crypto import tsp

from app.instants import rfc3339
from app.reports.checking.source import NotThere, Unreadable, opened
from app.reports.manifest import TIME_STAMP_SUFFIX

MAX_BYTES = 64 * 1024


def time_stamp_of(path: Path) -> Path:
    """Where the time stamp of the file `path` is."""
    return path.with_name(path.name + TIME_STAMP_SUFFIX)


def remark_on(path: Path, signature: bytes) -> str | None:
    """What is to be said of the time stamp beside `path`, whose SM2 signature is `signature`; None where there is none."""
    beside = time_stamp_of(path)
    try:
        with opened(beside) as source:
            content = source.read(0, MAX_BYTES)
    except NotThere:
        return None
    except Unreadable as error:
        return f"the time stamp {beside.name}: {error.message}"
    digest = hashlib.sha256(signature).digest()
    try:
        stamped = tsp.TimeStampResp.load(content, strict=True)["time_stamp_token"]["content"]["encap_content_info"]["content"].parsed
        of_this = stamped["message_imprint"]["hashed_message"].native == digest
        at = rfc3339(stamped["gen_time"].native)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        return f"{beside.name} is no time stamp"
    if not of_this:
        return f"the time stamp {beside.name} is not of this signature"
    check = f"openssl ts -verify -digest {digest.hex()} -in {beside.name} -CAfile AUTHORITY.pem"
    return f"the time stamp {beside.name} says that this signature was there at {at}; check who says so with `{check}`"
