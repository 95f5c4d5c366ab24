"""The tree, against a naive one written from RFC 6962's definitions."""

import hashlib
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.audit.format import merkle
from app.audit.format.merkle import Frontier, Subtree


def _sm3(data: bytes) -> bytes:
    return hashlib.new("sm3", data).digest()


def _split(size: int) -> int:
    """The largest power of two that is smaller than `size`."""
    power = 1
    while power * 2 < size:
        power *= 2
    return power


def naive_root(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962 section 2.1, over leaf hashes."""
    if not leaves:
        return _sm3(b"")
    if len(leaves) == 1:
        return leaves[0]
    middle = _split(len(leaves))
    return _sm3(b"\x01" + naive_root(leaves[:middle]) + naive_root(leaves[middle:]))


def naive_inclusion(seq: int, leaves: list[bytes]) -> list[bytes]:
    """PATH of RFC 6962 section 2.1.1."""
    if len(leaves) == 1:
        return []
    middle = _split(len(leaves))
    if seq < middle:
        return [*naive_inclusion(seq, leaves[:middle]), naive_root(leaves[middle:])]
    return [*naive_inclusion(seq - middle, leaves[middle:]), naive_root(leaves[:middle])]


def naive_consistency(old: int, leaves: list[bytes], whole: bool = True) -> list[bytes]:
    """SUBPROOF of RFC 6962 section 2.1.2."""
    if old == len(leaves):
        return [] if whole else [naive_root(leaves)]
    middle = _split(len(leaves))
    if old <= middle:
        return [*naive_consistency(old, leaves[:middle], whole), naive_root(leaves[middle:])]
    return [*naive_consistency(old - middle, leaves[middle:], False), naive_root(leaves[:middle])]


LEAVES = [_sm3(b"leaf %d" % seq) for seq in range(130)]
ROOTS = [naive_root(LEAVES[:size]) for size in range(len(LEAVES) + 1)]


def frontier_of(leaves: list[bytes]) -> Frontier:
    frontier = Frontier()
    for leaf in leaves:
        frontier.append(leaf)
    return frontier


SMALL_ROOTS = [
    "00" * 32,
    "60e7607b4dc75e0b51b01bab8512844119cdb4690d3de31f10bc91829dd147d2",
    "d44e9d9703ee185546a9980e00dfd0b5e47f8cb2a15109922e5672e22552ffb9",
    "6b5227dad7c02a0e03a83b77ea601522d6541bf2ceb07e6dc865f381f61494d4",
]
"""Of 1, 2, 3 and 7 leaves, where leaf n is 32 bytes n: printf | xxd -r -p | openssl dgst -sm3, node by node."""


@st.composite
def indexes(draw: Callable) -> tuple[int, int]:
    """A leaf and the size of a tree that has it."""
    size = draw(st.integers(1, len(LEAVES)))
    return draw(st.integers(0, size - 1)), size


@st.composite
def pairs(draw: Callable) -> tuple[int, int]:
    """An older and a newer size."""
    new = draw(st.integers(1, len(LEAVES)))
    return draw(st.integers(1, new)), new


def mutations(path: list[bytes]) -> Iterator[list[bytes]]:
    """The path with one bit changed, one step missing, added, doubled, cut short, or two swapped."""
    for at, step in enumerate(path):
        for bit in (0, 255):
            changed = (int.from_bytes(step, "big") ^ (1 << bit)).to_bytes(32, "big")
            yield [*path[:at], changed, *path[at + 1 :]]
        yield [*path[:at], step[:-1], *path[at + 1 :]]
        yield [*path[:at], step + b"\0", *path[at + 1 :]]
        yield path[:at] + path[at + 1 :]
        yield [*path[:at], step, *path[at:]]
        if at:
            yield [*path[: at - 1], step, path[at - 1], *path[at + 1 :]]
    yield [*path, LEAVES[0]]
    yield [LEAVES[0], *path]
    yield [*path, b""]


def test_an_empty_tree_has_the_hash_of_nothing():
    """The root of no leaves is SM3 of no bytes, written out."""
    assert _sm3(b"") == merkle.EMPTY_ROOT
    assert Frontier().root() == merkle.EMPTY_ROOT
    assert Frontier().packed == b""


def test_small_trees_are_those_of_openssl():
    """Roots of small trees are what openssl computes from their parts."""
    leaves = [bytes.fromhex(f"{number:02x}" * 32) for number in range(7)]

    assert [frontier_of(leaves[:size]).root().hex() for size in (1, 2, 3, 7)] == SMALL_ROOTS


def test_roots_are_the_naive_ones():
    """At each size the frontier has the root that the definition gives."""
    frontier = Frontier()
    for size, root in enumerate(ROOTS):
        assert frontier.size == size
        assert frontier.root() == root
        if size < len(LEAVES):
            frontier.append(LEAVES[size])


def test_an_append_tells_what_it_completes():
    """Appending tells each subtree above the leaf that becomes complete, lowest first, with its hash."""
    frontier = Frontier()
    for seq, leaf in enumerate(LEAVES):
        completed = frontier.append(leaf)

        expected = []
        level = 1
        while (seq + 1) % (1 << level) == 0:
            expected.append(Subtree(level, seq >> level))
            level += 1
        assert [subtree for subtree, _ in completed] == expected
        assert [one for _, one in completed] == [naive_root(LEAVES[subtree.begin : subtree.end]) for subtree in expected]


@given(st.lists(st.integers(0, len(LEAVES)), max_size=6))
def test_growing_in_pieces_is_growing_at_once(cuts: list[int]):
    """A frontier that is packed and parsed between appends grows as one that is not."""
    frontier = Frontier()
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(LEAVES)], strict=True):
        frontier = Frontier.parse(frontier.size, frontier.packed)
        for leaf in LEAVES[begin:end]:
            frontier.append(leaf)

    assert frontier.root() == ROOTS[-1]
    assert frontier.packed == frontier_of(LEAVES).packed


@given(indexes())
def test_pushing_subtrees_is_appending_their_leaves(index: tuple[int, int]):
    """A tree made of the fewest complete subtrees has the root of the tree of their leaves."""
    begin, end = index
    frontier = Frontier()
    for subtree in [*merkle.covering(0, begin), *merkle.covering(begin, end)]:
        frontier.push(subtree.level, naive_root(LEAVES[subtree.begin : subtree.end]))

    assert (frontier.size, frontier.root()) == (end, ROOTS[end])


def test_a_subtree_fits_only_where_it_may_begin():
    """A complete subtree begins at a multiple of its own size."""
    with pytest.raises(ValueError, match="level 2 cannot begin at leaf 3"):
        frontier_of(LEAVES[:3]).push(2, LEAVES[0])


@pytest.mark.parametrize(("size", "packed"), [(0, b"x" * 32), (1, b""), (1, b"x" * 31), (1, b"x" * 33), (3, b"x" * 63), (3, b"x" * 96)])
def test_a_frontier_that_does_not_fit_its_size_is_refused(size: int, packed: bytes):
    """A frontier has one hash of 32 bytes for each bit of its size."""
    with pytest.raises(ValueError, match="a frontier"):
        Frontier.parse(size, packed)


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_covering_is_gapless_complete_and_short(begin: int, end: int):
    """The covering subtrees adjoin from begin to end, each aligned, and are at most two a level."""
    subtrees = list(merkle.covering(begin, end))

    at = begin
    for subtree in subtrees:
        assert subtree.begin == at
        at = subtree.end
    assert at == max(begin, end)
    levels = [subtree.level for subtree in subtrees]
    assert max(map(levels.count, levels), default=0) <= 2
    if begin == 0:
        assert levels == sorted(set(levels), reverse=True)


@given(indexes())
def test_inclusion_spans_fold_to_the_naive_path(index: tuple[int, int]):
    """The spans of a proof cover the leaves of the naive path's hashes, and these folds are made of complete subtrees."""
    seq, size = index
    spans = merkle.inclusion_spans(seq, size)

    assert [naive_root(LEAVES[begin:end]) for begin, end in spans] == naive_inclusion(seq, LEAVES[:size])
    for span in spans:
        pieces = [naive_root(LEAVES[one.begin : one.end]) for one in merkle.covering(*span)]
        assert merkle.fold(pieces) == naive_root(LEAVES[slice(*span)])


@given(pairs())
def test_consistency_spans_fold_to_the_naive_path(pair: tuple[int, int]):
    """The same of consistency proofs."""
    old, new = pair
    spans = merkle.consistency_spans(old, new)

    assert [naive_root(LEAVES[begin:end]) for begin, end in spans] == naive_consistency(old, LEAVES[:new])
    for span in spans:
        pieces = [naive_root(LEAVES[one.begin : one.end]) for one in merkle.covering(*span)]
        assert merkle.fold(pieces) == naive_root(LEAVES[slice(*span)])


@given(indexes())
def test_an_inclusion_proof_leads_to_the_root(index: tuple[int, int]):
    """Each leaf's proof leads to the root of its tree."""
    seq, size = index

    assert merkle.root_by_inclusion(LEAVES[seq], seq, size, naive_inclusion(seq, LEAVES[:size])) == ROOTS[size]


@given(indexes())
def test_a_mutated_inclusion_proof_does_not(index: tuple[int, int]):
    """With a bit, a step, the leaf, the index or the size changed, the proof leads elsewhere or nowhere."""
    seq, size = index
    path = naive_inclusion(seq, LEAVES[:size])

    assert not [
        mutant for mutant in mutations(path) if mutant != path and merkle.root_by_inclusion(LEAVES[seq], seq, size, mutant) == ROOTS[size]
    ]
    assert merkle.root_by_inclusion(_sm3(LEAVES[seq]), seq, size, path) != ROOTS[size]
    for other in range(-1, size + 2):
        if other != seq:
            assert merkle.root_by_inclusion(LEAVES[seq], other, size, path) != ROOTS[size]


@given(indexes(), st.integers(0, len(LEAVES)))
def test_an_inclusion_proof_is_of_one_size(index: tuple[int, int], other: int):
    """A proof for one size does not lead to the root of another."""
    seq, size = index
    path = naive_inclusion(seq, LEAVES[:size])
    if other != size:
        assert merkle.root_by_inclusion(LEAVES[seq], seq, other, path) != ROOTS[other]
        assert merkle.root_by_inclusion(LEAVES[seq], seq, size, path) != ROOTS[other]


@given(pairs())
def test_a_consistency_proof_holds(pair: tuple[int, int]):
    """The proof between two sizes of one tree holds for their roots."""
    old, new = pair

    assert merkle.is_consistent(old, new, ROOTS[old], ROOTS[new], naive_consistency(old, LEAVES[:new]))


@given(pairs())
def test_a_mutated_consistency_proof_does_not(pair: tuple[int, int]):
    """With a bit, a step or a root changed, it does not hold."""
    old, new = pair
    path = naive_consistency(old, LEAVES[:new])

    assert not [mutant for mutant in mutations(path) if mutant != path and merkle.is_consistent(old, new, ROOTS[old], ROOTS[new], mutant)]
    assert not merkle.is_consistent(old, new, _sm3(ROOTS[old]), ROOTS[new], path)
    assert not merkle.is_consistent(old, new, ROOTS[old], _sm3(ROOTS[new]), path)
    assert not merkle.is_consistent(old, new, ROOTS[old][:-1], ROOTS[new], path)
    if old != new:
        assert not merkle.is_consistent(old, new, ROOTS[new], ROOTS[old], path)
        assert not merkle.is_consistent(new, old, ROOTS[new], ROOTS[old], path)


@given(pairs(), st.integers(0, len(LEAVES)))
def test_a_consistency_proof_is_of_two_sizes(pair: tuple[int, int], other: int):
    """A proof between two sizes proves nothing of the roots of a third."""
    old, new = pair
    path = naive_consistency(old, LEAVES[:new])
    if other != old:
        assert not merkle.is_consistent(other, new, ROOTS[other], ROOTS[new], path)
    if other != new:
        assert not merkle.is_consistent(old, other, ROOTS[old], ROOTS[other], path)


@given(pairs(), st.integers(0, len(LEAVES) - 1))
def test_no_proof_leads_from_a_forked_tree(pair: tuple[int, int], changed: int):
    """Of a tree in which an old leaf is another, no proof that either tree can make holds."""
    old, new = pair
    changed %= old
    forked = [*LEAVES[:changed], _sm3(LEAVES[changed]), *LEAVES[changed + 1 : new]]
    for path in (naive_consistency(old, LEAVES[:new]), naive_consistency(old, forked)):
        assert not merkle.is_consistent(old, new, ROOTS[old], naive_root(forked), path)
        assert not merkle.is_consistent(old, new, naive_root(forked[:old]), ROOTS[new], path)


@pytest.mark.parametrize(("seq", "size"), [(0, 0), (1, 1), (-1, 3), (5, 4)])
def test_a_leaf_outside_has_no_proof(seq: int, size: int):
    """There is no proof of a leaf that a tree does not have."""
    with pytest.raises(ValueError, match=f"leaf {seq} is not in a tree of {size}"):
        merkle.inclusion_spans(seq, size)
    assert merkle.root_by_inclusion(LEAVES[0], seq, size, []) is None


@pytest.mark.parametrize(("old", "new"), [(0, 0), (0, 1), (2, 1), (-1, 1)])
def test_no_proof_leads_from_nothing_or_backwards(old: int, new: int):
    """The empty tree and larger trees have no proof."""
    with pytest.raises(ValueError, match="no proof leads"):
        merkle.consistency_spans(old, new)
    assert not merkle.is_consistent(old, new, ROOTS[abs(old)], ROOTS[new], [])


def test_a_tree_of_one_is_its_leaf():
    """A single leaf is the root, proven by no steps."""
    assert frontier_of(LEAVES[:1]).root() == LEAVES[0]
    assert merkle.inclusion_spans(0, 1) == []
    assert merkle.root_by_inclusion(LEAVES[0], 0, 1, []) == LEAVES[0]
    assert merkle.consistency_spans(1, 1) == []
    assert merkle.is_consistent(1, 1, LEAVES[0], LEAVES[0], [])
