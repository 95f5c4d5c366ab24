"""The best time of an engine: down within a second, up in minutes, and never by what was measured under load."""

import math

import pytest

from app.estimators.best import Best


def measured(best: Best, seconds: float, value_ms: float, *, unloaded: bool) -> float | None:
    """What the best is after pages every 100 ms told the same."""
    for _ in range(round(seconds * 10)):
        best.push(value_ms, 100.0, unloaded=unloaded)
    return best.value_ms


def test_begins_with_what_was_measured_without_load():
    """The first time is taken as it is, and none of those before that were measured under load."""
    best = Best()
    assert measured(best, 60, 80.0, unloaded=False) is None
    assert measured(best, 0.1, 20.0, unloaded=True) == 20.0


def test_a_lower_time_is_believed_within_a_second():
    """Half of the way is gone after 500 ms, under load too: what an engine did, it can do."""
    best = Best()
    measured(best, 0.1, 20.0, unloaded=True)
    assert measured(best, 0.5, 10.0, unloaded=False) == pytest.approx(15.0)


def test_one_odd_page_moves_little():
    """A single page that tells a tenth takes away an eighth."""
    best = Best()
    measured(best, 0.1, 20.0, unloaded=True)
    assert measured(best, 0.1, 2.0, unloaded=True) == pytest.approx(20 - 18 * (1 - 0.5**0.2))


def test_a_higher_time_is_believed_in_minutes():
    """Half of the way is gone after 60 s without load, and none of it under load."""
    best = Best()
    measured(best, 0.1, 20.0, unloaded=True)
    assert measured(best, 3600, 80.0, unloaded=False) == 20.0
    assert measured(best, 60, 80.0, unloaded=True) == pytest.approx(50.0)


@pytest.mark.parametrize("impossible", [math.nan, math.inf, -1.0])
def test_what_is_no_time_is_not_taken(impossible: float):
    """Neither begins nor moves it."""
    best = Best()
    assert measured(best, 1, impossible, unloaded=True) is None
    measured(best, 0.1, 20.0, unloaded=True)
    assert measured(best, 1, impossible, unloaded=True) == 20.0
