"""Means between pages, counters that begin anew, and pages that stand still."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimators.counters import Stillness, Total, mean_between

NAN, INF = float("nan"), float("inf")


def test_mean_of_what_happened_between_two_pages():
    """25 s in 100 measurements since the last page are 0.25 s each, whatever was counted before."""
    assert mean_between(Total(1000.0, 10.0), Total(1025.0, 110.0)) == 0.25


def test_nothing_measured_has_no_mean():
    """Two equal pages of an idle engine tell no mean, not 0."""
    assert mean_between(Total(25.0, 100.0), Total(25.0, 100.0)) is None
    assert mean_between(None, Total(25.0, 100.0)) is None
    assert mean_between(Total(25.0, 100.0), None) is None


def test_a_restarted_counter_is_unknown_once():
    """Counters that went down tell nothing on that page, and the mean since then on the next."""
    pages = [Total(40.0, 100.0), Total(50.0, 200.0), Total(1.0, 4.0), Total(2.0, 6.0)]

    means = [mean_between(before, now) for before, now in pairwise(pages)]

    assert means == [0.1, None, 0.5]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (Total(10.0, 100.0), Total(9.0, 200.0)),  # the sum alone went down
        (Total(10.0, 100.0), Total(11.0, 99.0)),  # the count alone went down
        (Total(NAN, 100.0), Total(11.0, 200.0)),
        (Total(10.0, 100.0), Total(NAN, 200.0)),
        (Total(10.0, 100.0), Total(11.0, NAN)),
        (Total(10.0, 100.0), Total(INF, 200.0)),
        (Total(10.0, 100.0), Total(11.0, INF)),
        (Total(-1.0, 100.0), Total(11.0, 200.0)),
        (Total(10.0, -1.0), Total(11.0, 200.0)),
        (Total(10.0, 100.0), Total(1e308, 100.0 + 1e-9)),  # a part of a measurement would make a huge mean
        (Total(10.0, 2.0**54), Total(11.0, 2.0**55)),  # counts that floats do not hold exactly
    ],
)
def test_impossible_totals_are_unknown(before: Total, now: Total):
    """What no counter can hold, or no counter can do, tells no mean."""
    assert mean_between(before, now) is None


anything = st.one_of(st.floats(), st.integers(-5, 2**60).map(float))


@given(anything, anything, anything, anything)
def test_a_mean_is_a_number_of_0_or_more(before_sum: float, before_count: float, now_sum: float, now_count: float):
    """Whatever pages say, a mean is unknown, or finite and not negative."""
    mean = mean_between(Total(before_sum, before_count), Total(now_sum, now_count))

    assert mean is None or 0 <= mean < math.inf


def test_still_since_the_last_movement():
    """A page is still for as long as it has said the same; its first sight and each change are a movement."""
    still = Stillness()

    told = [still.push(page, at_ms) for at_ms, page in ((50, "a"), (150, "a"), (5050, "a"), (5150, "b"), (5250, "b"), (5350, "a"))]

    assert told == [0, 100, 5000, 0, 100, 0]


def test_nothing_is_a_fingerprint_too():
    """An empty page, or None, moves and stands still as any other."""
    still = Stillness()

    assert [still.push(page, at_ms) for at_ms, page in ((0, None), (100, None), (200, ()), (300, ()))] == [0, 100, 0, 100]
