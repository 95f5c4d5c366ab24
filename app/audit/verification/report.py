"""What checking an export of the log finds. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.errors import SluiceError

Verdict = Literal["whole", "tampered", "unchecked", "gap"]
WORST_FIRST: tuple[Verdict, ...] = ("tampered", "unchecked", "gap")
EXIT_CODES: Mapping[Verdict, int] = {"whole": 0, "tampered": 4, "unchecked": 6, "gap": 7}
"""The exit status of every verifier."""
What = Literal["file", "line", "entry", "order", "tree", "chain", "checkpoint", "certificate", "anchor", "end", "purge", "gap"]


class NotChecked(SluiceError):
    """What is needed to check an export is missing or cannot be read: the file, the root certificate, anchors, or SM2 on this machine."""

    code = "not_checked"
    status = 422
    exit_code = 6
    hint = "Name the export, the root certificate that you were given, and checkpoints as GET /audit/checkpoint answers them."


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be."""

    verdict: Verdict
    what: What
    why: str
    seq: int | None = None
    """The entry, where one is meant, or the first of several."""
    last: int | None = None
    """The last of several; None where one is meant, or none."""


def finding(verdict: Verdict, what: What, why: str, seq: int | None = None, last: int | None = None) -> Finding:
    """The finding about the entries from `seq` to `last`, which may be one, or about none."""
    return Finding(verdict, what, why, seq, None if last == seq else last)


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in a file."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    remarks: tuple[str, ...] = ()
    """What an auditor should know although it is in order."""
    log: str | None = None
    first: int = 0
    end: int = 0
    entries: int = 0
    """Entries that stand in the file with their bodies, unaltered."""
    purged: int = 0
    recorded_first: str | None = None
    """The earliest that an entry says it was recorded, RFC 3339; None where none can be believed."""
    recorded_last: str | None = None
    """The latest."""
    checkpoints: int = 0
    """Good ones, the one that closes the file among them."""
    anchors: int = 0
    """Good ones."""
    size: int | None = None
    """Of the newest good checkpoint."""
    root: str | None = None
    """What it signs, in hex."""


def verdict_of(findings: list[Finding]) -> Verdict:
    """The worst of them; whole where there is none."""
    found = {finding.verdict for finding in findings}
    return next((verdict for verdict in WORST_FIRST if verdict in found), "whole")
