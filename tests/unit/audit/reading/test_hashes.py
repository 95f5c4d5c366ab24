"""Hashes of the tree from stored subtrees, against the tree itself; the database is a dictionary here."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.audit.format.leaf import sm3
from app.audit.format.merkle import STORED_LEVELS, Frontier, Subtree, consistency_spans, inclusion_spans, is_consistent, root_by_inclusion
from app.audit.reading import hashes
from app.audit.reading.hashes import LogDamaged

SIZE = 3000
LEAVES = [sm3(b"%d" % number) for number in range(SIZE)]


class Kept:
    """What the database keeps of a tree of SIZE leaves, and how many rows were read of it."""

    def __init__(self) -> None:
        self.rows: dict[Subtree, bytes] = {Subtree(0, number): leaf for number, leaf in enumerate(LEAVES)}
        self.read = self.statements = 0
        frontier = Frontier()
        for leaf in LEAVES:
            self.rows |= {tree: hashed for tree, hashed in frontier.append(leaf) if tree.level % STORED_LEVELS == 0}

    async def exec_driver_sql(self, _: Any, given: dict[str, list[int]]) -> list[tuple[int, int, bytes]]:
        """The rows of spans of leaves, or of levels."""
        levels = given.get("levels", [0] * len(given["begins"]))
        spans = zip(levels, given["begins"], given["ends"], strict=True)
        places = [Subtree(level, index) for level, begin, end in spans for index in range(begin, end)]
        found = [(place.level, place.index, self.rows[place]) for place in places if place in self.rows]
        self.read, self.statements = self.read + len(found), self.statements + 1
        return found


KEPT = Kept()


def root_of(size: int) -> bytes:
    frontier = Frontier()
    for leaf in LEAVES[:size]:
        frontier.append(leaf)
    return frontier.root()


@given(st.integers(1, SIZE).flatmap(lambda size: st.tuples(st.integers(0, size - 1), st.just(size))))
async def test_every_path_leads_to_the_root(place: tuple[int, int]):
    """The proof of any leaf in a tree of any size is right, from two statements and a few hundred rows."""
    seq, size = place
    KEPT.read = KEPT.statements = 0
    connection: Any = KEPT
    path = await hashes.spans(connection, inclusion_spans(seq, size))

    assert root_by_inclusion(LEAVES[seq], seq, size, path) == root_of(size)
    assert KEPT.statements <= 2
    assert KEPT.read <= 2 * 255 + 2 * 255


@given(st.integers(1, SIZE).flatmap(lambda new: st.tuples(st.integers(1, new), st.just(new))))
async def test_every_tree_begins_the_larger_ones(sizes: tuple[int, int]):
    """The proof between any two sizes is right."""
    old, new = sizes
    connection: Any = KEPT
    path = await hashes.spans(connection, consistency_spans(old, new))

    assert is_consistent(old, new, root_of(old), root_of(new), path)


async def test_what_is_missing_is_said():
    """A span whose leaf is not there is refused by its numbers; of subtrees that are asked for, the missing one is left out."""
    kept = Kept()
    del kept.rows[Subtree(0, 5)]
    connection: Any = kept
    with pytest.raises(LogDamaged, match="from 4 to 7"):
        await hashes.spans(connection, [(0, 4), (4, 8)])

    assert list(await hashes.subtrees(connection, [Subtree(2, 0), Subtree(2, 1), Subtree(9, 0)])) == [Subtree(2, 0), Subtree(9, 0)]
