"""Whole shares by largest remainder: tables worked out by hand, and sums that always fit."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimators.shares import arbitrated


@pytest.mark.parametrize("factor", [-1.0, float("nan"), float("inf")])
def test_a_factor_is_a_number_of_0_or_more(factor: float):
    """Factors that no share can be made of are refused."""
    with pytest.raises(ValueError, match="weight: must be a number of 0 or more"):
        arbitrated({"a": 8}, {"a": factor})


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
