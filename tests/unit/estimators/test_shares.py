"""Whole shares by largest remainder: tables worked out by hand, and sums that always fit."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimators.shares import arbitrated, shared


@pytest.mark.parametrize(
    ("total", "weights", "most", "expected"),
    [
        (81, [1] * 7, None, (12, 12, 12, 12, 11, 11, 11)),  # 11.57 each: 77, and one more for the first four
        (120, [3, 1, 2], None, (60, 20, 40)),
        (100, [1, 1, 1], None, (34, 33, 33)),
        (2, [1] * 5, None, (1, 1, 0, 0, 0)),
        (10, [0, 1], None, (0, 10)),
        (10, [0, 0], None, (0, 0)),
        (0, [1, 2], None, (0, 0)),
        (7, [], None, ()),
        (10, [1, 2, 2], None, (2, 4, 4)),
        (10, [0.5, 0.3, 0.2], None, (5, 3, 2)),
        (11, [0.5, 0.3, 0.2], None, (6, 3, 2)),  # 5.5, 3.3, 2.2
        (10, [8, 1, 1], [4, 9, 9], (4, 3, 3)),  # the first would have 8: what it may not have goes to the others
        (10, [8, 1, 1], [4, 2, 9], (4, 2, 4)),
        (10, [8, 1, 1], [2, 2, 2], (2, 2, 2)),  # all at their most
        (10, [1, 0], [3, 9], (3, 0)),
    ],
)
def test_shares_by_hand(total: int, weights: list[float], most: list[int] | None, expected: tuple[int, ...]):
    """Shares are what a calculation by hand gives."""
    assert expected == shared(total, weights, most)


def test_a_weight_is_a_number_of_0_or_more():
    """Weights that no share can be made of are refused."""
    for weight in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="weight: must be a number of 0 or more"):
            shared(10, [1.0, weight])


weights = st.one_of(st.integers(0, 5).map(float), st.floats(0, 1e6))


@given(st.integers(0, 10_000), st.lists(st.tuples(weights, st.integers(0, 3000)), max_size=12))
def test_shares_sum_to_the_total(total: int, parties: list[tuple[float, int]]):
    """The sum is the total, or all that the bounds let in; nobody is above its most; weight 0 gets 0."""
    most = [limit for _, limit in parties]
    shares = shared(total, [weight for weight, _ in parties], most)

    assert sum(shares) == min(total, sum(limit for weight, limit in parties if weight))
    assert all(0 <= share <= limit for share, limit in zip(shares, most, strict=True))
    assert all(not share for share, (weight, _) in zip(shares, parties, strict=True) if not weight)


@given(st.integers(0, 10_000), st.lists(st.integers(1, 1000), min_size=1, max_size=12))
def test_shares_are_within_one_of_their_ideal(total: int, parties: list[int]):
    """Without bounds each gets its exact share rounded down or up."""
    for share, weight in zip(shared(total, parties), parties, strict=True):
        assert abs(share - Fraction(total * weight, sum(parties))) < 1


@pytest.mark.parametrize(
    ("bases", "factors", "expected"),
    [
        ({"a": 64}, {"a": 1.0}, {"a": 64}),
        ({"a": 64}, {"a": 0.3}, {"a": 19}),  # 19.2
        ({"a": 40, "b": 40}, {"a": 0.7, "b": 0.3}, {"a": 28, "b": 12}),
        ({"a": 5, "b": 5}, {"a": 0.7, "b": 0.7}, {"a": 4, "b": 3}),  # 3.5 each: 7 in all, where rounding each gives 6 or 8
        ({"a": 1, "b": 100}, {"a": 0.1, "b": 0.333}, {"a": 1, "b": 32}),  # 0.1 + 33.3: 33 in all, one of them for a
        ({"a": 2, "b": 2, "c": 2}, {"a": 0.3, "b": 0.3, "c": 0.3}, {"a": 1, "b": 1, "c": 1}),  # 1.8 in all, held to one each
        ({"a": 8, "b": 8}, {"a": 0.0, "b": 1.0}, {"a": 1, "b": 7}),
        ({"a": 8, "b": 8}, {"a": 0.0, "b": 0.0}, {"a": 1, "b": 1}),
        ({"a": 8}, {"a": 1.5}, {"a": 8}),
        ({"a": 8, "b": 0}, {"a": 0.5, "b": 1.0}, {"a": 4}),
        ({}, {}, {}),
    ],
)
def test_instances_of_a_model_by_hand(bases: dict[str, int], factors: dict[str, float], expected: dict[str, int]):
    """max_num_seqs of several instances are rounded together, none of them below 1."""
    assert expected == arbitrated(bases, factors)


@given(st.lists(st.tuples(st.integers(1, 512), st.one_of(st.floats(0, 1.5), st.sampled_from([0.3, 0.7, 1.0]))), max_size=10))
def test_instances_sum_to_what_the_model_may_have(instances: list[tuple[int, float]]):
    """The sum is that of base times factor rounded down, or one each; each is between 1 and its base."""
    bases = {str(place): base for place, (base, _) in enumerate(instances)}
    factors = {str(place): factor for place, (_, factor) in enumerate(instances)}

    told = arbitrated(bases, factors)

    exact = sum(base * min(Fraction(1), Fraction(repr(factor))) for base, factor in instances)
    assert sum(told.values()) == max(len(instances), math.floor(exact))
    assert all(1 <= told[node] <= base for node, base in bases.items())
