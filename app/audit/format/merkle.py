"""The Merkle tree of RFC 6962 and RFC 9162 over SM3: growing it, proving from it, checking proofs. Pure.

A complete subtree has a level and an index: it covers the leaves [index * 2**level, (index + 1) * 2**level). Every other hash
of a tree is a fold of complete ones, so whoever stores complete subtrees can answer any proof.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.audit.format.leaf import HASH_BYTES, node_hash

EMPTY_ROOT = bytes.fromhex("1ab21d8355cfa17f8e61194831e81a8f22bec8c728fefb747ed035eb5082aa2b")
"""SM3 of nothing, written out: a program whose OpenSSL lacks SM3 must still start, to say so."""
STORED_LEVELS = 8
"""Subtrees of every eighth level are stored beside the leaves: 0.4 % more hashes, and any hash is at most 255 steps away."""


@dataclass(frozen=True, slots=True, order=True)
class Subtree:
    """A complete subtree: 2**level leaves from index * 2**level on."""

    level: int
    index: int

    @property
    def begin(self) -> int:
        """Its first leaf."""
        return self.index << self.level

    @property
    def end(self) -> int:
        """One past its last leaf."""
        return (self.index + 1) << self.level

    @property
    def stored(self) -> bool:
        """Whether the log keeps its hash, as it keeps those of leaves; others are folds of what it keeps."""
        return self.level % STORED_LEVELS == 0


class Frontier:
    """A growing tree as the hashes of its maximal complete subtrees, largest first: log2(size) hashes."""

    def __init__(self) -> None:
        self.size = 0
        self._stack: list[bytes] = []

    @classmethod
    def parse(cls, size: int, frontier: bytes) -> "Frontier":
        """The frontier whose `packed` bytes these are. Raises ValueError where they do not fit the size."""
        if len(frontier) != size.bit_count() * HASH_BYTES:
            raise ValueError(f"a frontier of {size} leaves has {size.bit_count() * HASH_BYTES} bytes, not {len(frontier)}")
        read = cls()
        read.size, read._stack = size, [frontier[at : at + HASH_BYTES] for at in range(0, len(frontier), HASH_BYTES)]
        return read

    @property
    def packed(self) -> bytes:
        """Its hashes, one after the other."""
        return b"".join(self._stack)

    def append(self, leaf: bytes) -> list[tuple[Subtree, bytes]]:
        """Add one leaf hash; the subtrees above the leaf that it completes, lowest first."""
        return self.push(0, leaf)

    def push(self, level: int, subtree: bytes) -> list[tuple[Subtree, bytes]]:
        """Add a complete subtree of 2**level leaves at the end; what it completes. Raises ValueError where none fits there."""
        if self.size % (1 << level):
            raise ValueError(f"a subtree of level {level} cannot begin at leaf {self.size}")
        index, completed = self.size >> level, []
        self.size += 1 << level
        while index & 1:
            subtree = node_hash(self._stack.pop(), subtree)
            level, index = level + 1, index >> 1
            completed.append((Subtree(level, index), subtree))
        self._stack.append(subtree)
        return completed

    def root(self) -> bytes:
        """The root of the tree so far."""
        return fold(self._stack) if self._stack else EMPTY_ROOT


def fold(hashes: Sequence[bytes]) -> bytes:
    """One hash of neighbouring subtrees that shrink from left to right, at least one."""
    folded = hashes[-1]
    for left in reversed(hashes[:-1]):
        folded = node_hash(left, folded)
    return folded


def covering(begin: int, end: int) -> Iterator[Subtree]:
    """The fewest complete subtrees that cover the leaves [begin, end), from left to right."""
    while begin < end:
        level = (end - begin).bit_length() - 1
        if begin:
            level = min(level, (begin & -begin).bit_length() - 1)
        yield Subtree(level, begin >> level)
        begin += 1 << level


Span = tuple[int, int]
"""Leaves [begin, end) whose fold is one hash of a proof."""


def inclusion_spans(seq: int, size: int) -> list[Span]:
    """The spans of the inclusion proof of leaf `seq` in the tree of `size`, leaf side first (RFC 9162 2.1.3.1).

    Raises ValueError unless 0 <= seq < size.
    """
    if not 0 <= seq < size:
        raise ValueError(f"leaf {seq} is not in a tree of {size}")
    begin, end, path = 0, size, []
    while end - begin > 1:
        middle = begin + _split(end - begin)
        if seq < middle:
            path.append((middle, end))
            end = middle
        else:
            path.append((begin, middle))
            begin = middle
    return path[::-1]


def consistency_spans(old: int, new: int) -> list[Span]:
    """The spans of the proof that the tree of `old` begins the tree of `new` (RFC 9162 2.1.4.1); none where they are equal.

    Raises ValueError unless 0 < old <= new.
    """
    if not 0 < old <= new:
        raise ValueError(f"no proof leads from size {old} to size {new}")
    begin, end, path = 0, new, []
    while old != end:
        middle = begin + _split(end - begin)
        if old <= middle:
            path.append((middle, end))
            end = middle
        else:
            path.append((begin, middle))
            begin = middle
    if begin:
        path.append((begin, end))
    return path[::-1]


def root_by_inclusion(leaf: bytes, seq: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root that an inclusion proof leads to; None where the proof has the wrong length (RFC 9162 2.1.3.2)."""
    if not 0 <= seq < size:
        return None
    at, last, root, steps = seq, size - 1, leaf, iter(path)
    for step in steps:
        if last == 0 or len(step) != HASH_BYTES:
            return None
        if at & 1 or at == last:
            root = node_hash(step, root)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            root = node_hash(root, step)
        at, last = at >> 1, last >> 1
    return root if last == 0 else None


def is_consistent(old: int, new: int, old_root: bytes, new_root: bytes, path: Sequence[bytes]) -> bool:
    """Whether `path` proves that the tree of `old` begins the tree of `new` (RFC 9162 2.1.4.2)."""
    if not 0 < old <= new or any(len(step) != HASH_BYTES for step in path):
        return False
    if old == new:
        return not path and old_root == new_root
    steps: Iterable[bytes] = [old_root, *path] if old.bit_count() == 1 else path
    return _both_roots(old, new, list(steps)) == (old_root, new_root)


def _both_roots(old: int, new: int, steps: list[bytes]) -> tuple[bytes, bytes] | None:
    """The roots that a consistency proof leads to, its first step already the node that both trees share."""
    if not steps:
        return None
    at, last = old - 1, new - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    old_root = new_root = steps[0]
    for step in steps[1:]:
        if last == 0:
            return None
        if at & 1 or at == last:
            old_root, new_root = node_hash(step, old_root), node_hash(step, new_root)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            new_root = node_hash(new_root, step)
        at, last = at >> 1, last >> 1
    return (old_root, new_root) if last == 0 else None


def _split(leaves: int) -> int:
    """The largest power of two below `leaves`, which are at least two."""
    return 1 << ((leaves - 1).bit_length() - 1)
