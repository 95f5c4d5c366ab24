"""The manifest of a night's reports: which files they are, of what period, made from which log. JSON, signed beside it. Pure.

2026-11-29-asia-shanghai-1/     the first that was made of that day; made again it is -2, and both stay
  mlps.pdf gdpr.pdf             signed within
  decisions.csv entries.csv     signed beside: decisions.csv.p7s, entries.csv.p7s
  log.jsonl                     the export of the log that all of it is made from: `sluice audit verify` checks it
  older.txt                     a proof of each older entry that the reports rest on, one after the other; where there are any
  manifest.json manifest.json.p7s
  root.pem verify.sh            to check with; a root that came with what it vouches for proves nothing, compare its fingerprint

A manifest covers what was signed of one night; the next night has its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import orjson
from pydantic import Field, TypeAdapter

from app.errors import SluiceError

FORM = "sluice-report-manifest 1"
MOST_BYTES = 4 * 1024 * 1024
"""Of a manifest; what is larger is none. Ours have some 4 KB."""
MANIFEST = "manifest.json"
SIGNATURE_SUFFIX = ".p7s"
TIME_STAMP_SUFFIX = ".tsr"
LOG = "log.jsonl"
MLPS, GDPR = "mlps.pdf", "gdpr.pdf"
OLDER = "older.txt"
DECISIONS, ENTRIES = "decisions.csv", "entries.csv"
ROOT, SCRIPT = "root.pem", "verify.sh"
TYPES = {
    ".pdf": "application/pdf",
    ".csv": "text/csv; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".jsonl": "application/x-ndjson",
    ".json": "application/json",
    ".p7s": "application/pkcs7-signature",
    ".tsr": "application/timestamp-reply",
    ".pem": "application/x-pem-file",
    ".sh": "text/x-shellscript; charset=utf-8",
}
"""Media types by the end of a name."""
PLAIN_NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
"""A pattern of names that lead out of no folder."""
Plain = Annotated[str, Field(pattern=f"^{PLAIN_NAME}$")]
Word = Annotated[str, Field(pattern="^[a-z0-9_]+$")]
Whole = Annotated[int, Field(ge=0, lt=10**15)]
"""Whole numbers that every reader of JSON holds."""


class NotAManifest(SluiceError):
    """The file is no manifest of reports, or of a form that this version does not read."""

    code = "not_a_manifest"
    status = 422
    exit_code = 6
    hint = "Name the manifest.json of a night's folder, as it was made."


@dataclass(frozen=True, slots=True)
class FileLine:
    """One file; the manifest, its signature and what is only for checking are not among them."""

    name: str
    bytes: Whole
    sm3: str
    sha256: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """The log that the reports are made from, by the checkpoint that closes its export."""

    origin: str
    first: Whole
    end: Whole
    size: Whole
    root: str
    """Of the tree, in hex."""
    note: str
    """The signed checkpoint, whole."""
    certificate: str
    """SM3 fingerprint of the log's root certificate, in hex."""
    verdict: str
    """What the verifier said of the export."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What stands in manifest.json: all of these and nothing else, or two readers could read it differently (rule 8 of verifier/README.md)."""

    report: Plain
    day: str
    zone: str
    begin: str
    """RFC 3339, UTC, included."""
    end: str
    """Not included."""
    made: str
    made_by: str
    files: Sequence[FileLine]
    log: LogLine
    counts: Mapping[Word, Whole]
    """entries, decisions, refused, sensitive_accesses, rows of each table, missing_characters (that print as [U+XXXX]) …"""
    verdicts: Mapping[Word, Mapping[Word, Whole]]
    """By report (`mlps`, `gdpr`): how many clauses were met, partly, not_met, not_applicable, manual."""
    versions: Mapping[Word, str | Sequence[str]]
    """sluice, the policy revisions in force in the period, SM3 of the clauses and of the register of processing, the font, SM3 of models.yaml."""

    def text(self) -> bytes:
        """The file: one spelling for equal content."""
        return orjson.dumps(self.document(), option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def document(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {"form": FORM} | asdict(self)

    @classmethod
    def parse(cls, text: bytes) -> "Manifest":
        """What `text` gave. Raises NotAManifest."""
        try:
            document = orjson.loads(text)
            if document.pop("form") != FORM:
                raise NotAManifest(f"it is not of the form {FORM!r}")
            manifest = _WRITTEN.validate_python(document)  # a number for a name would fail whoever reads it later
        except (ValueError, TypeError, KeyError, AttributeError):
            raise NotAManifest("it is not JSON of the form that manifests have") from None
        if manifest.text() != text:
            raise NotAManifest("it is not written as manifests are, so that two readers could read it differently")
        return manifest


_WRITTEN = TypeAdapter(Manifest)


def media_type(name: str) -> str:
    """The media type of a file of this name."""
    return next((kind for end, kind in TYPES.items() if name.endswith(end)), "application/octet-stream")
