"""The lines of the exported log as entries. Pure.

An entry that is not what was hashed is none: the verifier has named it, and no figure is made of it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.audit.format.export_file import EntryLine, LineRefused, PurgedLine, read_line
from app.audit.format.leaf import Leaf, leaf_hash, parse_body, parse_leaf, sm3
from app.reports.evidence.facts import Logged


@dataclass(frozen=True, slots=True)
class Gone:
    """An entry whose body went by retention."""

    leaf: Leaf


def entries_of(lines: Iterable[bytes]) -> Iterator[Logged | Gone]:
    """The entries in the file with these `lines`, its first line included, in the order of the log."""
    for number, line in enumerate(lines, 1):
        if number == 1:
            continue  # the header
        try:
            read = read_line(line, number)
        except LineRefused:
            continue
        if isinstance(read, EntryLine | PurgedLine) and (entry := _genuine(read)) is not None:
            yield entry


def _genuine(line: EntryLine | PurgedLine) -> Logged | Gone | None:
    try:
        leaf = parse_leaf(line.leaf)
        if leaf_hash(line.leaf) != line.leaf_hash:
            return None
        if isinstance(line, PurgedLine):
            return Gone(leaf)
        return logged(line.body, leaf)
    except ValueError:
        return None


def logged(body: bytes, leaf: Leaf) -> Logged:
    """The entry with this leaf and `body`. Raises ValueError where that is not the body which the leaf has, or no entry."""
    if sm3(body) != leaf.body_hash:
        raise ValueError("its body does not have the hash that its leaf has")
    return Logged(leaf.seq, parse_body(body, leaf), leaf.retention)
