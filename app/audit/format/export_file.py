r"""The lines of an export: one file of JSON Lines from which a range of the log can be checked without the log. Pure.

    {"sluice_audit_export":1,"certificates":[…],"chain":…,"consistency":[…],"end":b,"first":a,"left":[…],"log":…,"note":…,"right":[…],"size":N}
    {"body":<the body's bytes>,"leaf":"<hex>","skeleton":<the leaf's bytes>}        one for each entry of [a, b)
    {"leaf":"<hex>","purged":<the leaf's bytes>}                                    in its place, where retention took the body
    {"checkpoint":"<note>"}                                                         right after entry size - 1
    {"end":{"chain":"<hex>","entries":b - a}}

Each line has one spelling only: what is read must be what would be written, byte for byte, so that nothing can be changed
in a file without changing what it says.
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import orjson

from app.audit.format.leaf import HASH_BYTES
from app.errors import SluiceError

VERSION = 1
MAX_LINE_BYTES = 4 * 1024 * 1024
"""An entry's body is at most 1 MiB; the rest is for a first line with thousands of certificates or proofs."""
_MARK = b'{"sluice_audit_export":'
_BODY, _LEAF, _SKELETON, _PURGED, _END = b'{"body":', b',"leaf":"', b'","skeleton":', b'","purged":', b"}\n"
_GONE = b'{"leaf":"'
_SHOWN = 40  # bytes of a bad line that its error shows


class NotAnExport(SluiceError):
    """A file is not an export that this version reads, so nothing was checked."""

    code = "not_an_export"
    status = 422
    exit_code = 6
    hint = "Make one with `sluice audit export` or GET /audit/export; a newer format needs a newer sluice."


class LineRefused(SluiceError):
    """A line of an export is not one that an export has; `line` counts from 1."""

    code = "export_line_refused"
    status = 422
    exit_code = 4
    hint = "The file was cut or changed on its way; fetch it again and compare."

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line = line


@dataclass(frozen=True, slots=True)
class Consistency:
    """RFC 9162 proof that the tree of `size` begins the tree that closes the file."""

    size: int
    path: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Header:
    """The first line: which entries of which log, and what links them to the tree of `size` that `note` signs."""

    log: str
    """Origin: sluice/<uuid>."""
    first: int
    end: int
    """One past the last entry of the file."""
    size: int
    chain: bytes
    """The chain before `first`."""
    left: tuple[bytes, ...]
    """Hashes of tree.covering(0, first), from left to right."""
    right: tuple[bytes, ...]
    """Hashes of tree.covering(end, size), from left to right."""
    note: str
    certificates: tuple[bytes, ...]
    """DER: the root and every signer."""
    consistency: tuple[Consistency, ...] = ()

    def line(self) -> bytes:
        """The header as the file has it."""
        # The mark comes first, against the order of keys, so that a reader knows after a few bytes what it reads.
        rest = orjson.dumps(
            {
                "certificates": [base64.b64encode(der).decode() for der in self.certificates],
                "chain": self.chain.hex(),
                "consistency": [{"path": _hexes(proof.path), "size": proof.size} for proof in self.consistency],
                "end": self.end,
                "first": self.first,
                "left": _hexes(self.left),
                "log": self.log,
                "note": self.note,
                "right": _hexes(self.right),
                "size": self.size,
            }
        )
        return b"%b%d,%b\n" % (_MARK, VERSION, rest[1:])


@dataclass(frozen=True, slots=True)
class EntryLine:
    """An entry: the bytes of its body and of its leaf, both unparsed, and the leaf hash that the log has stored."""

    body: bytes
    leaf: bytes
    leaf_hash: bytes

    def line(self) -> bytes:
        """The entry as the file has it."""
        return b'{"body":%b,"leaf":"%b","skeleton":%b}\n' % (self.body, self.leaf_hash.hex().encode(), self.leaf)


@dataclass(frozen=True, slots=True)
class PurgedLine:
    """An entry whose body is gone with its shelf; its leaf stays, so that until when the body was to be kept is proven."""

    leaf: bytes
    leaf_hash: bytes

    def line(self) -> bytes:
        """The purged entry as the file has it."""
        return b'{"leaf":"%b","purged":%b}\n' % (self.leaf_hash.hex().encode(), self.leaf)


@dataclass(frozen=True, slots=True)
class CheckpointLine:
    """A checkpoint that the log has stored, as its note."""

    note: str

    def line(self) -> bytes:
        """The checkpoint as the file has it."""
        return orjson.dumps({"checkpoint": self.note}) + b"\n"


@dataclass(frozen=True, slots=True)
class EndLine:
    """The last line: the chain after the last entry, and how many entries there were."""

    entries: int
    chain: bytes

    def line(self) -> bytes:
        """The end as the file has it."""
        return orjson.dumps({"end": {"chain": self.chain.hex(), "entries": self.entries}}) + b"\n"


Line = EntryLine | PurgedLine | CheckpointLine | EndLine


def lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of `stream` with their ends; one over MAX_LINE_BYTES comes in pieces of that size, so that memory is bounded."""
    return iter(lambda: stream.readline(MAX_LINE_BYTES), b"")


def read_header(line: bytes) -> Header:
    """The header that the first line of a file is. Raises NotAnExport for another format, LineRefused where it is malformed."""
    version = line.removeprefix(_MARK).partition(b",")[0]
    if not line:
        raise NotAnExport("the file is empty")
    if not line.startswith(_MARK) or not version.isdigit():
        raise NotAnExport("the file does not begin like an export of the log")
    if version != b"%d" % VERSION:
        raise NotAnExport(f"the file is an export of format {version[:20].decode()}, this program reads {VERSION}")
    if line.endswith(b"\r\n"):
        raise NotAnExport("line ends were changed on the way (CRLF): fetch it again as a file")
    try:
        header = _header(orjson.loads(line))
    except (KeyError, TypeError, ValueError, AttributeError):
        header = None
    if header is None or header.line() != line:
        raise LineRefused(1, "not a header as an export has it")
    return header


def read_line(line: bytes, number: int) -> Line:
    """The line `number` of a file, after its first. Raises LineRefused unless it is spelled as it would be written."""
    try:
        read = _line(line)
    except (KeyError, TypeError, ValueError, AttributeError):
        read = None
    if read is None or read.line() != line:
        raise LineRefused(number, f"{line[:_SHOWN]!r}… is no line of an export, or is cut off")
    return read


def _header(fields: dict[str, Any]) -> Header:
    return Header(
        log=_text(fields["log"]),
        first=_count(fields["first"]),
        end=_count(fields["end"]),
        size=_count(fields["size"]),
        chain=_hash(fields["chain"]),
        left=_hashes(fields["left"]),
        right=_hashes(fields["right"]),
        note=_text(fields["note"]),
        certificates=tuple(base64.b64decode(der, validate=True) for der in fields["certificates"]),
        consistency=tuple(Consistency(_count(proof["size"]), _hashes(proof["path"])) for proof in fields["consistency"]),
    )


def _line(line: bytes) -> Line:
    if line.startswith(_BODY):
        return _entry(line)
    if line.startswith(_GONE):
        return _purged(line)
    return _other(orjson.loads(line))


def _entry(line: bytes) -> EntryLine:
    # A body may have members of these names, too, a leaf has none: the last ones count.
    rest, _, leaf = line.rpartition(_SKELETON)
    body, _, hashed = rest.rpartition(_LEAF)
    return EntryLine(body.removeprefix(_BODY), leaf.removesuffix(_END), _hash(hashed.decode("ascii")))


def _purged(line: bytes) -> PurgedLine:
    hashed, _, leaf = line.partition(_PURGED)
    return PurgedLine(leaf.removesuffix(_END), _hash(hashed.removeprefix(_GONE).decode("ascii")))


def _other(fields: dict[str, Any]) -> Line:
    match fields:
        case {"checkpoint": note}:
            return CheckpointLine(_text(note))
        case {"end": {"chain": chain, "entries": entries}}:
            return EndLine(_count(entries), _hash(chain))
    raise ValueError("another shape")


def _text(value: Any) -> str:
    # Writers of JSON disagree how to spell these two; nothing that an export says has them.
    if not isinstance(value, str) or "\u2028" in value or "\u2029" in value:
        raise TypeError("not text")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise TypeError("not a count")
    return value


def _hash(value: Any) -> bytes:
    found = bytes.fromhex(value)
    if len(found) != HASH_BYTES:
        raise ValueError("not a hash")
    return found


def _hashes(values: Any) -> tuple[bytes, ...]:
    return tuple(_hash(value) for value in values)


def _hexes(hashes: Sequence[bytes]) -> list[str]:
    return [one.hex() for one in hashes]
