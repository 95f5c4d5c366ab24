"""Whether an export of the log is whole: entries, order, tree, chain, signatures, anchors, gaps. Pure, but for the threads it uses.

Nothing in the file is trusted; the root certificate and the anchors are, since they came another way. An entry whose leaf
does not have the hash that is listed beside it, or whose body not the one in its leaf, was altered, and is named. Where hashes were altered too, the tree no longer
leads to what a checkpoint signs, and the checkpoints before and after are named. Memory holds the ids of all entries (some
100 bytes each), the tree's frontier and what was found.
"""

from collections.abc import Iterable, Sequence

from app.audit.format.checkpoint import Checkpoint, NoteRefused
from app.audit.format.export_file import (
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
from app.audit.format.leaf import GENESIS, Leaf, leaf_hash, parse_body, parse_leaf, sm3
from app.audit.format.merkle import EMPTY_ROOT, covering, is_consistent
from app.audit.verification.checkpoints import Place, Signed
from app.audit.verification.report import Finding, Report, Verdict, What, finding, verdict_of
from app.audit.verification.retention import Purged
from app.audit.verification.signers import OpenedNote, Signers
from app.audit.verification.tree import Rebuilt
from app.clock import Clock, SystemClock
from app.signing.certificates import Certificate, CertificateRefused, verify_root

MAX_LINES_NAMED = 1000
"""Malformed lines that are findings; of more only the count is kept, or a file of empty lines would fill memory with what is said of it."""
_MACHINE = SystemClock()


def verify(lines: Iterable[bytes], root: Certificate, anchors: Sequence[str] = (), clock: Clock = _MACHINE) -> Report:
    """The report on the file with these `lines`, each with its end, that `root` vouches for; `anchors` are notes kept elsewhere.

    By `clock`, that of whoever verifies, the time of bodies that are gone must be over.
    """
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
    reading = _Reading(header, root, anchors, clock)
    for number, line in enumerate(rest, 2):
        reading.line(line, number)
    return reading.report()


def _nothing(finding: Finding) -> Report:
    return Report(finding.verdict, (finding,))


class _Reading:
    """One pass over a file, line by line."""

    def __init__(self, header: Header, root: Certificate, anchors: Sequence[str], clock: Clock) -> None:
        self._header = header
        self._findings: list[Finding] = []
        self._remarks: list[str] = []
        signers = Signers(header.certificates, root, header.log)
        for why in signers.wrong:
            self._found("tampered", "certificate", why)
        self._signed = Signed(signers, self._findings)
        self._anchors = self._opened(signers.open(anchors) if signers.known else [])
        self._rebuilt = Rebuilt(header.chain, {anchor.size for anchor in self._anchors})
        self._next = self._last_checkpoint = header.first
        self._ended = self._followed = False
        self._ids: set[str] = set()
        self._recorded, self._recorded_by = "", -1
        self._earliest: str | None = None
        self._purged = Purged(clock.utcnow())
        self._entries = self._bodies_gone = self._malformed = 0
        self._begin()

    def line(self, line: bytes, number: int) -> None:
        """Take the next line."""
        if self._ended:
            if not self._followed:
                self._found("tampered", "end", f"line {number}: something follows the end")
            self._followed = True
            return
        try:
            read = read_line(line, number)
        except LineRefused as error:
            self._malformed += 1
            if self._malformed <= MAX_LINES_NAMED:
                self._found("tampered", "line", error.message)
            return
        match read:
            case EntryLine():
                self._entry(read, number)
            case CheckpointLine():
                self._checkpoint(read, number)
            case PurgedLine():
                self._gone(read, number)
            case EndLine():
                self._end(read)

    def report(self) -> Report:
        """What all the lines together say."""
        header, signed = self._header, self._signed
        self._close()
        good_anchors = sum([self._agrees(anchor) for anchor in self._anchors])
        for proof in header.consistency:
            if all(anchor.size != proof.size for anchor in self._anchors):
                self._remarks.append(f"the file has a proof for an anchor of size {proof.size}, and none was given")
        for first, last, why in self._purged.faults():
            self._found("gap", "purge", why, first, last)
        if self._malformed > MAX_LINES_NAMED:
            self._remarks.append(f"{self._malformed - MAX_LINES_NAMED} more lines are malformed")
        if signed.breaks > 1:
            self._remarks.append(f"{signed.breaks - 1} later checkpoints do not fit the entries either, as has to be")
        return Report(
            verdict=verdict_of(self._findings),
            findings=tuple(self._findings),
            remarks=tuple(self._remarks),
            log=header.log,
            first=header.first,
            end=header.end,
            entries=self._entries,
            purged=self._bodies_gone,
            recorded_first=self._earliest,
            recorded_last=self._recorded or None,
            checkpoints=signed.good,
            anchors=good_anchors,
            size=signed.newest.size if signed.newest else None,
            root=signed.newest.root.hex() if signed.newest else None,
        )

    def _found(self, verdict: Verdict, what: What, why: str, seq: int | None = None, last: int | None = None) -> None:
        self._findings.append(finding(verdict, what, why, seq, last))

    def _opened(self, anchors: Sequence[OpenedNote]) -> list[Checkpoint]:
        for anchor in anchors:
            if isinstance(anchor, NoteRefused):
                self._found("tampered", "anchor", f"an anchor is not of this log: {anchor.message}")
        return [anchor[0] for anchor in anchors if not isinstance(anchor, NoteRefused)]

    def _begin(self) -> None:
        """What the header says of the entries before the first."""
        header = self._header
        fits = self._rebuilt.extend(list(covering(0, header.first)), header.left)
        if not fits or not header.first <= header.end <= header.size:
            self._found("tampered", "line", "line 1: first, end, size and the hashes on the left do not fit each other")
            self._rebuilt.lost = True
        if header.first == 0 and header.chain != GENESIS:
            self._found("tampered", "chain", "line 1: the chain before entry 0 is not all zeros")

    def _entry(self, line: EntryLine, number: int) -> None:
        leaf = self._leaf(line, number)
        if leaf is None:
            return
        if sm3(line.body) != leaf.body_hash:
            self._found("tampered", "entry", "its body was altered: it does not have the hash that its leaf has", leaf.seq)
            return
        try:
            body = parse_body(line.body, leaf)
        except ValueError as error:
            self._found("tampered", "entry", f"it has its hash but is no entry: {error}", leaf.seq)
            return
        self._entries += 1
        match body["kind"]:
            case "audit.purge":
                self._purged.purge(leaf, body)
                self._remarks.append(f"entry {leaf.seq}: bodies of shelf {body.get('shelf')!r} went")
            case "audit.gap":
                self._gap(leaf.seq, body.get("lost"))

    def _gone(self, line: PurgedLine, number: int) -> None:
        leaf = self._leaf(line, number)
        if leaf is not None:
            self._purged.body(leaf)
            self._bodies_gone += 1

    def _leaf(self, line: EntryLine | PurgedLine, number: int) -> Leaf | None:
        """The leaf of a line that stands in its place, with its hash; None, and told, where it does not."""
        leaf, why = None, "its leaf was altered: it does not have the hash that the log stored"
        if leaf_hash(line.leaf) == line.leaf_hash:
            try:
                leaf = parse_leaf(line.leaf)
            except ValueError as error:
                why = f"its leaf has its hash but is none: {error}"
        # What an altered leaf says cannot be believed, its number included: it counts as the entry that belongs here.
        if not self._in_place(self._next if leaf is None else leaf.seq, number):
            return None
        if leaf is None:
            self._found("tampered", "entry", why, self._next)
        else:
            self._genuine(leaf)
        self._rebuilt.grow(line.leaf_hash)
        self._next += 1
        return leaf

    def _genuine(self, leaf: Leaf) -> None:
        """A leaf that stands in its place with its hash, whatever became of its body."""
        if leaf.identity in self._ids:
            self._found("tampered", "entry", f"its id {leaf.identity!r} is that of another entry", leaf.seq)
        self._ids.add(leaf.identity)
        self._earliest = min(self._earliest or leaf.recorded, leaf.recorded)
        if leaf.recorded > self._recorded:
            self._recorded, self._recorded_by = leaf.recorded, leaf.seq

    def _gap(self, seq: int, lost: object) -> None:
        if type(lost) is int and lost == 0:
            self._remarks.append(f"entry {seq}: for a time entries could not be written, and none was lost")
        else:
            self._found("gap", "gap", f"{lost if type(lost) is int else 'an unknown number of'} records were lost", seq)

    def _in_place(self, seq: int, number: int) -> bool:
        """Whether entry `seq` may stand in line `number`; entries that it leaves out are missing."""
        if seq >= self._header.end:
            self._found("tampered", "order", f"line {number}: it lies beyond the end of the file", seq)
        elif seq < self._next:
            self._found("tampered", "order", f"line {number}: it stands there again, or too late", seq)
        else:
            if seq > self._next:
                self._missing(seq)
            return True
        return False

    def _missing(self, end: int) -> None:
        self._found("tampered", "order", "missing", self._next, end - 1)
        self._next, self._rebuilt.lost = end, True

    def _checkpoint(self, line: CheckpointLine, number: int) -> None:
        if self._next <= self._last_checkpoint:
            self._found("tampered", "order", f"line {number}: a checkpoint without a new entry before it")
        self._last_checkpoint = self._next
        self._signed.take(line.note, self._place(f"line {number}", self._next))

    def _place(self, name: str, size: int) -> Place:
        return Place(name, size, self._rebuilt.root, self._recorded, self._recorded_by)

    def _end(self, line: EndLine) -> None:
        self._ended = True
        if line.entries != self._header.end - self._header.first:
            self._found("tampered", "end", f"the last line counts {line.entries} entries, not {self._header.end - self._header.first}")
        if self._next == self._header.end and not self._rebuilt.lost and line.chain != self._rebuilt.chain:
            self._found("tampered", "chain", "the chain over all entries does not end where the last line says")

    def _close(self) -> None:
        """What is missing at the end, and what the header says of the entries after it and of all."""
        header = self._header
        if self._next < header.end:
            self._missing(header.end)
        if not self._ended:
            self._found("tampered", "end", "the file has no last line: it was cut off")
        if not self._rebuilt.extend(list(covering(header.end, header.size)), header.right):
            self._found("tampered", "line", "line 1: size, end and the hashes on the right do not fit each other")
        self._signed.take(header.note, self._place("line 1", header.size))
        self._signed.settle()

    def _agrees(self, anchor: Checkpoint) -> bool:
        """Whether the file's tree begins with that of `anchor`, or is it: by its root where that was rebuilt, and by a proof in the file."""
        header, size, newest = self._header, anchor.size, self._signed.newest
        if size > header.size:
            why = f"the log had {size} entries when it was anchored, the file closes at {header.size}"
            self._found("tampered", "anchor", f"{why}: entries were taken off its end, or an older state is shown")
            return False
        if newest is None or newest.size != header.size:
            return False  # what closes the file is not proven, which was told, so that there is nothing to compare with
        proofs = [proof.path for proof in header.consistency if proof.size == size]
        answers = [is_consistent(size, header.size, anchor.root, newest.root, path) for path in proofs]
        if size in self._rebuilt.roots or size == 0:
            answers.append(anchor.root == self._rebuilt.roots.get(size, EMPTY_ROOT))
        if not answers:
            self._found("unchecked", "anchor", f"the file has no proof for the anchor of size {size}; export it with this anchor")
        elif not all(answers):
            self._found("tampered", "anchor", f"the tree of size {size} is not the one that was anchored")
        return bool(answers) and all(answers)
