"""Whether an export of the log is whole: entries, order, tree, chain, signatures, anchors, gaps. Pure, but for the threads it uses.

Nothing in the file is trusted; the root certificate and the anchors are, since they came another way. An entry whose bytes
do not have the hash that is listed beside it was altered, and is named. Where hashes were altered too, the tree no longer
leads to what a checkpoint signs, and the checkpoints before and after are named. Memory holds the ids of all entries (some
100 bytes each), the tree's frontier and what was found.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import orjson

from app.audit.checkpoint import Checkpoint, NoteRefused, opened
from app.audit.export_file import (
    CheckpointLine,
    EndLine,
    EntryLine,
    Header,
    LineRefused,
    NotAnExport,
    PurgedLine,
    read_header,
    read_line,
)
from app.audit.leaf import GENESIS, chain_hash, leaf_hash
from app.audit.purged import Purged
from app.audit.signers import Signer, signers_of
from app.audit.tree import EMPTY_ROOT, Frontier, covering, is_consistent
from app.errors import SluiceError
from app.signing.certificates import Certificate, CertificateRefused, verify_root

Verdict = Literal["whole", "tampered", "unchecked", "gap"]
What = Literal["file", "line", "entry", "order", "tree", "chain", "checkpoint", "certificate", "anchor", "end", "purge", "gap"]

WORST_FIRST: tuple[Verdict, ...] = ("tampered", "unchecked", "gap")
THREADS = 2  # a signature takes 0.7 ms outside of the interpreter's lock, as long as a hundred entries take inside
WAITING = 256
"""Checkpoints whose signatures are being checked while reading goes on."""


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
    """The last of several."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in a file. `root` is in hex, and is what the newest checkpoint signs; unsigned or wrong ones are not told."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    remarks: tuple[str, ...] = ()
    """What an auditor should know although it is in order."""
    log: str | None = None
    first: int = 0
    end: int = 0
    entries: int = 0
    """Entries that stand in the file with their bodies."""
    purged: int = 0
    checkpoints: int = 0
    """Good ones, the one that closes the file among them."""
    anchors: int = 0
    """Good ones."""
    size: int | None = None
    root: str | None = None


def verify(lines: Iterable[bytes], root: Certificate, anchors: Sequence[str] = ()) -> Report:
    """The report on the file with these `lines`, each with its end, that `root` vouches for; `anchors` are notes kept elsewhere."""
    rest = iter(lines)
    try:
        verify_root(root)
        header = read_header(next(rest, b""))
    except CertificateRefused as error:
        return _nothing(Finding("unchecked", "certificate", f"the given root: {error.message}"))
    except NotAnExport as error:
        return _nothing(Finding("unchecked", "file", error.message))
    except LineRefused as error:
        return _nothing(Finding("tampered", "line", error.message))
    with ThreadPoolExecutor(THREADS) as pool:
        reading = _Reading(header, root, anchors, pool)
        for number, line in enumerate(rest, 2):
            reading.line(line, number)
        return reading.report()


def _nothing(finding: Finding) -> Report:
    return Report(finding.verdict, (finding,))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the file a checkpoint stands, and what it has to agree with."""

    name: str
    size: int
    root: bytes | None
    """None where it cannot be told, since entries are missing."""
    recorded: str
    """Of the entry before it that was recorded last."""
    seq: int


class _Reading:
    """One pass over a file, line by line."""

    def __init__(self, header: Header, root: Certificate, anchors: Sequence[str], pool: ThreadPoolExecutor) -> None:
        self._header = header
        self._pool = pool
        self._findings: list[Finding] = []
        self._remarks: list[str] = []
        self._next = header.first
        self._frontier = Frontier()
        self._chain = header.chain
        self._lost = False  # entries are missing, so that neither tree nor chain can be known
        self._ended = False
        self._ids: set[int] = set()
        self._recorded, self._recorded_by = "", -1
        self._late: set[int] = set()
        self._purged = Purged()
        self._entries = self._bodies_gone = self._checkpoints = 0
        self._pending: deque[tuple[_Place, Future[tuple[Checkpoint, bytes]]]] = deque()
        self._proven, self._breaks = 0, 0
        self._newest: Checkpoint | None = None
        self._keys, wrong = signers_of(header.certificates, root, header.log)
        for why in wrong:
            self._found("tampered", "certificate", why)
        if not self._keys:
            self._found("tampered", "certificate", "the given root issued none of the signers in the file")
        self._anchors = self._opened(anchors)
        self._wanted = {anchor.size for anchor in self._anchors}
        self._roots: dict[int, bytes] = {}
        self._begin()

    def line(self, line: bytes, number: int) -> None:
        """Take the next line."""
        if self._ended:
            self._found("tampered", "end", f"line {number}: something follows the end")
            return
        try:
            read = read_line(line, number)
        except LineRefused as error:
            self._found("tampered", "line", error.message)
            return
        match read:
            case EntryLine():
                self._entry(read, number)
            case CheckpointLine():
                self._check_later(read.note, f"line {number}", self._next)
            case PurgedLine():
                self._gone(read, number)
            case EndLine():
                self._end(read)

    def report(self) -> Report:
        """What all the lines together say."""
        header = self._header
        if self._next < header.end:
            self._missing(header.end)
        if not self._ended:
            self._found("tampered", "end", "the file has no last line: it was cut off")
        self._close()
        good_anchors = sum([self._agrees(anchor) for anchor in self._anchors])
        for first, last, why in self._purged.faults():
            self._found("gap", "purge", why, first, last)
        if self._breaks > 1:
            self._remarks.append(f"{self._breaks - 1} later checkpoints do not fit the entries either, as is to be expected")
        found = {finding.verdict for finding in self._findings}
        return Report(
            verdict=next((verdict for verdict in WORST_FIRST if verdict in found), "whole"),
            findings=tuple(self._findings),
            remarks=tuple(self._remarks),
            log=header.log,
            first=header.first,
            end=header.end,
            entries=self._entries,
            purged=self._bodies_gone,
            checkpoints=self._checkpoints,
            anchors=good_anchors,
            size=self._newest.size if self._newest else None,
            root=self._newest.root.hex() if self._newest else None,
        )

    def _found(self, verdict: Verdict, what: What, why: str, seq: int | None = None, last: int | None = None) -> None:
        self._findings.append(Finding(verdict, what, why, seq, last))

    def _opened(self, notes: Sequence[str]) -> list[Checkpoint]:
        good = []
        for note in notes:
            try:
                good.append(opened(note, self._header.log, self._keys)[0])
            except NoteRefused as error:
                self._found("tampered", "anchor", f"an anchor is not of this log: {error.message}")
        return good

    def _begin(self) -> None:
        """What the header says of the entries before the first."""
        header, left = self._header, list(covering(0, self._header.first))
        if not header.first <= header.end <= header.size or len(left) != len(header.left):
            self._found("tampered", "line", "line 1: first, end, size and the hashes on the left do not fit each other")
            self._lost = True
        if header.first == 0 and header.chain != GENESIS:
            self._found("tampered", "chain", "line 1: the chain before entry 0 is not all zeros")
        for subtree, one in zip(left, header.left, strict=False):
            self._push(subtree.level, one)
        self._note_root(self._frontier.size)

    def _entry(self, line: EntryLine, number: int) -> None:
        if leaf_hash(line.leaf) != line.leaf_hash:
            # What it says cannot be believed, its number included: it counts as the entry that belongs here.
            if self._in_place(self._next, number):
                self._found("tampered", "entry", "its bytes do not have the hash that the log stored: it was altered", self._next)
                self._grow(line.leaf_hash)
            return
        try:
            fields = orjson.loads(line.leaf)
            body, seq = fields["body"], fields["seq"]
            identity, kind, recorded = UUID(body["id"]).int, body["kind"], body["recorded"]
            well_formed = type(seq) is int and isinstance(recorded, str)
        except (ValueError, TypeError, KeyError, AttributeError):
            well_formed = False
        if not well_formed:
            self._found("tampered", "entry", f"line {number} has its hash but is no entry", self._next)
            return
        if not self._in_place(seq, number):
            return
        if identity in self._ids:
            self._found("tampered", "entry", f"its id {body['id']} is that of another entry", seq)
        self._ids.add(identity)
        if recorded > self._recorded:
            self._recorded, self._recorded_by = recorded, seq
        if kind in _SPECIAL:
            self._special(seq, body)
        self._grow(line.leaf_hash)
        self._entries += 1

    def _special(self, seq: int, body: Mapping[str, Any]) -> None:
        if body["kind"] == "audit.purge":
            self._purged.purge(seq, body)
            self._remarks.append(f"entry {seq}: bodies of shelf {body.get('shelf')} went")
            return
        lost = body.get("lost")
        if type(lost) is int and lost == 0:
            self._remarks.append(f"entry {seq}: for a time entries could not be written, and none was lost")
        else:
            self._found("gap", "gap", f"{lost if type(lost) is int else 'an unknown number of'} records were lost", seq)

    def _gone(self, line: PurgedLine, number: int) -> None:
        if self._in_place(line.seq, number):
            self._purged.body(line.seq, line.shelf)
            self._bodies_gone += 1
            self._grow(line.leaf_hash)

    def _in_place(self, seq: int, number: int) -> bool:
        """Whether entry `seq` may stand in line `number`; entries that it leaves out are missing."""
        if seq >= self._header.end:
            self._found("tampered", "order", f"line {number}: an entry beyond the end of the file", seq)
        elif seq < self._next:
            self._found("tampered", "order", f"line {number}: it stands there again, or too late", seq)
        else:
            if seq > self._next:
                self._missing(seq)
            return True
        return False

    def _missing(self, end: int) -> None:
        self._found("tampered", "order", "missing" if end - self._next == 1 else f"missing up to {end - 1}", self._next, end - 1)
        self._next, self._lost = end, True

    def _grow(self, leaf: bytes) -> None:
        self._next += 1
        if not self._lost:
            self._chain = chain_hash(self._chain, leaf)
            self._push(0, leaf)

    def _push(self, level: int, subtree: bytes) -> None:
        self._frontier.push(level, subtree)
        self._note_root(self._frontier.size)

    def _note_root(self, size: int) -> None:
        if size in self._wanted and not self._lost:
            self._roots[size] = self._frontier.root()

    def _end(self, line: EndLine) -> None:
        self._ended = True
        if line.entries != self._header.end - self._header.first:
            self._found(
                "tampered", "end", f"the last line counts {line.entries} entries, the first {self._header.end - self._header.first}"
            )
        if not self._lost and line.chain != self._chain:
            self._found("tampered", "chain", "the chain over all entries does not end where the last line says")

    def _close(self) -> None:
        """What the header says of the entries after the last, and of all: the note that closes the file."""
        header, right = self._header, list(covering(self._next, self._header.size))
        if len(right) != len(header.right):
            self._found("tampered", "line", "line 1: size, end and the hashes on the right do not fit each other")
            self._lost = True
        if not self._lost:
            for subtree, one in zip(right, header.right, strict=True):
                self._push(subtree.level, one)
        self._check_later(header.note, "line 1", header.size)
        while self._pending:
            self._check(*self._pending.popleft())

    def _check_later(self, note: str, name: str, size: int) -> None:
        place = _Place(name, size, None if self._lost else self._frontier.root(), self._recorded, self._recorded_by)
        self._pending.append((place, self._pool.submit(opened, note, self._header.log, self._keys)))
        if len(self._pending) > WAITING:
            self._check(*self._pending.popleft())

    def _check(self, place: _Place, opening: "Future[tuple[Checkpoint, bytes]]") -> None:
        try:
            checkpoint, key = opening.result()
        except NoteRefused as error:
            self._found("tampered", "checkpoint", f"{place.name}: {error.message}")
            return
        if checkpoint.size != place.size:
            self._found("tampered", "checkpoint", f"{place.name}: the checkpoint of size {checkpoint.size} stands where {place.size} ends")
            return
        self._check_time(checkpoint, place, self._keys[key])
        if place.root is not None and checkpoint.root != place.root:
            self._broken(checkpoint)
            return
        self._checkpoints += 1
        if place.root is not None:
            self._proven = checkpoint.size
        self._newest = checkpoint

    def _check_time(self, checkpoint: Checkpoint, place: _Place, signer: Signer) -> None:
        if place.recorded > signer.not_after and place.seq not in self._late:
            self._late.add(place.seq)
            why = f"recorded at {place.recorded}, after the certificate ended that signed it at size {checkpoint.size} ({signer.not_after})"
            self._found("tampered", "checkpoint", why, place.seq)

    def _broken(self, checkpoint: Checkpoint) -> None:
        """The first break is told; after it no checkpoint can fit."""
        self._breaks += 1
        if self._breaks == 1:
            since = f"the checkpoint of size {self._proven}" if self._proven else "the beginning"
            why = f"between {since} and that of size {checkpoint.size} entries are not those that were signed"
            self._found("tampered", "tree", why, self._proven, checkpoint.size - 1)

    def _agrees(self, anchor: Checkpoint) -> bool:
        """Whether the file's tree begins with that of `anchor`."""
        header, size = self._header, anchor.size
        proof = next((one for one in header.consistency if one.size == size), None)
        why: str | None
        if size > header.size:
            why = f"the log had {size} entries when it was anchored, the file closes at {header.size}: entries were taken off its end"
        elif size in self._roots or size == 0:
            why = None if anchor.root == self._roots.get(size, EMPTY_ROOT) else f"the tree of size {size} is not the one that was anchored"
        elif self._newest is None or self._newest.size != header.size:
            return False  # what closes the file is not signed, and that was told
        elif proof is not None:
            good = is_consistent(size, header.size, anchor.root, self._newest.root, proof.path)
            why = None if good else f"the tree of size {size} that was anchored does not begin this one"
        else:
            self._found("unchecked", "anchor", f"the file has no proof for the anchor of size {size}; export it with this anchor")
            return False
        if why:
            self._found("tampered", "anchor", why)
        return why is None


_SPECIAL = frozenset({"audit.purge", "audit.gap"})
