"""A mean over time: halves by the half-life, irregular intervals, and what is forgotten."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimators.smoothing import Smoothed


def test_the_first_value_is_taken_as_it_is():
    """There is no start at 0 that a mean would have to leave."""
    assert Smoothed(1000, 10_000).push(250.0, 123.0) == 250.0


def test_a_value_counts_half_after_its_half_life():
    """100, then 200 one half-life later, is 150; 200 again after two more half-lives is three quarters nearer: 187.5."""
    mean = Smoothed(1000, 10_000)

    assert [mean.push(value, at_ms) for value, at_ms in ((100, 0), (200, 1000), (200, 3000))] == [100.0, 150.0, 187.5]


def test_many_samples_weigh_no_more_than_their_time():
    """A value held for a second weighs the same in one sample and in ten at odd moments."""
    once, often = Smoothed(1000, 10_000), Smoothed(1000, 10_000)
    once.push(100.0, 0.0)
    often.push(100.0, 0.0)

    for at_ms in (10, 20, 150, 151, 400, 700, 701, 702, 990):
        often.push(200.0, at_ms)

    assert once.push(200.0, 1000.0) == pytest.approx(often.push(200.0, 1000.0)) == pytest.approx(150.0)


def test_keeps_the_value_without_samples_until_it_is_forgotten():
    """Pushes without a sample tell the old mean for 5 s, then nothing, and the next sample begins anew."""
    mean = Smoothed(1000, 5000)
    mean.push(100.0, 0.0)

    assert [mean.push(None, at_ms) for at_ms in (100, 4999, 5000, 6000)] == [100.0, 100.0, None, None]
    assert mean.push(7.0, 6100.0) == 7.0


def test_a_sample_after_a_long_pause_owes_nothing_to_the_old_mean():
    """A sample that comes when the old mean would be forgotten is taken as it is, pushed in between or not."""
    mean = Smoothed(1_000_000, 5000)
    mean.push(100.0, 0.0)

    assert mean.push(200.0, 5000.0) == 200.0


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_no_numbers_are_no_samples(odd: float):
    """NaN and infinity neither enter the mean nor keep it from being forgotten."""
    mean = Smoothed(1000, 5000)

    assert mean.push(odd, 0.0) is None
    assert mean.push(100.0, 0.0) == 100.0
    assert mean.push(odd, 1000.0) == 100.0
    assert mean.push(odd, 5000.0) is None


@given(st.lists(st.tuples(st.floats(0, 5000), st.one_of(st.none(), st.floats(0, 1e308))), max_size=50))
def test_stays_between_the_values_seen(steps: list[tuple[float, float | None]]):
    """A mean is never below the least nor above the largest sample, however large."""
    mean, seen, now_ms = Smoothed(300, 1000), [], 0.0
    for step_ms, value in steps:
        now_ms += step_ms
        seen += [value] if value is not None else []
        told = mean.push(value, now_ms)
        assert told is None or min(seen) * (1 - 1e-9) <= told <= max(seen) * (1 + 1e-9)


def test_a_latency_falls_by_its_ratio():
    """From 20 s to 200 ms: after one half-life the mean is 2 s, the geometric one, where distances would leave 10.1 s; it rises by distance."""
    smoothed = Smoothed(1000.0, 10_000.0, falls_by_ratio=True)
    smoothed.push(20_000.0, 0.0)

    assert smoothed.push(200.0, 1000.0) == pytest.approx(2000.0)
    assert smoothed.push(4000.0, 2000.0) == pytest.approx(3000.0)


LARGE = st.floats(0, allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(st.floats(0, 1e5), LARGE), min_size=1, max_size=10), st.booleans())
def test_the_mean_is_never_infinite(pushes, falls_by_ratio):
    """However large the samples are, their mean is about the largest of them at most, and finite."""
    mean, now_ms = Smoothed(1000, 10_000, falls_by_ratio=falls_by_ratio), 0.0
    for elapsed_ms, value in pushes:
        now_ms += elapsed_ms
        told = mean.push(value, now_ms)
        assert math.isfinite(told)
        assert told <= max(value for _, value in pushes) * (1 + 1e-9) + 1e-300
