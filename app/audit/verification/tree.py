"""Tree and chain of a range of the log, rebuilt from the hashes in its export. Pure."""

from collections.abc import Collection, Sequence

from app.audit.format.leaf import chain_hash
from app.audit.format.merkle import Frontier, Subtree


class Rebuilt:
    """Grows from the hashes left of the range, over its entries, to those right of it; keeps the roots at the `wanted` sizes.

    Where an entry is missing it is lost: neither root nor chain can be told any more.
    """

    def __init__(self, chain: bytes, wanted: Collection[int]) -> None:
        self.chain = chain
        """After the last entry, or before the first."""
        self.lost = False
        self.roots: dict[int, bytes] = {}
        """By size."""
        self._frontier = Frontier()
        self._wanted = wanted
        self._keep_root()

    @property
    def root(self) -> bytes | None:
        """Of the tree so far; None where it is lost."""
        return None if self.lost else self._frontier.root()

    def grow(self, leaf: bytes) -> None:
        """Add the hash of the next entry."""
        if not self.lost:
            self.chain = chain_hash(self.chain, leaf)
            self._frontier.append(leaf)
            if self._frontier.size in self._wanted:
                self._keep_root()

    def extend(self, subtrees: Sequence[Subtree], hashes: Sequence[bytes]) -> bool:
        """Add complete subtrees that lie outside of the range. False, and lost, unless each has its hash."""
        if len(subtrees) != len(hashes):
            self.lost = True
            return False
        if not self.lost:
            for subtree, one in zip(subtrees, hashes, strict=True):
                self._frontier.push(subtree.level, one)
                self._keep_root()
        return True

    def _keep_root(self) -> None:
        if self._frontier.size in self._wanted:
            self.roots[self._frontier.size] = self._frontier.root()
