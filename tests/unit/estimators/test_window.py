"""The least value of a window, by hand and against all readings kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimators.window import Floor


def pushed(readings: list[tuple[float, float | None]], window_ms: float = 3000.0) -> list[float | None]:
    floor = Floor(window_ms)
    return [floor.push(value, at_ms) for at_ms, value in readings]


def test_unknown_until_readings_span_the_window():
    """Readings of a second apart tell a floor of 3 s with the fourth, then always the least of the last 3 s."""
    values = [0.9, 0.86, 0.95, 0.99, 0.97, 0.96]

    told = pushed([(at * 1000.0, value) for at, value in enumerate(values)])

    assert told == [None, None, None, 0.86, 0.86, 0.95]


def test_a_missing_reading_begins_anew():
    """After one unknown reading nothing is told for a whole window, least of all a low value."""
    readings = [(at * 500.0, None if at == 8 else 0.9) for at in range(17)]

    told = pushed(readings)

    assert told == [None] * 6 + [0.9, 0.9] + [None] * 7 + [0.9, 0.9]


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_no_number_is_a_missing_reading(odd: float):
    """NaN and infinity begin the window anew, where a number would have told its floor."""
    readings = [(0, 0.5), (300, 0.5), (600, 0.5), (900, 0.5), (1000, 0.5)]

    assert pushed(readings, window_ms=1000.0)[-1] == 0.5
    assert pushed([(at_ms, odd if at_ms == 600 else value) for at_ms, value in readings], window_ms=1000.0)[-1] is None


def test_a_gap_begins_anew():
    """Readings may be up to a third of the window apart; what happened in a longer gap nobody saw."""
    assert pushed([(0, 0.9), (1000, 0.9), (2000, 0.9), (3000, 0.9)])[-1] == 0.9
    assert pushed([(0, 0.9), (1000, 0.9), (2001, 0.9), (3001, 0.9)])[-1] is None
    assert pushed([(0, 0.9), (1000, 0.9), (2001, 0.9), (3001, 0.9), (4001, 0.9), (5001, 0.9)])[-1] == 0.9


def by_all_readings(readings: list[tuple[float, float | None]], window_ms: float) -> float | None:
    """The floor from the whole history: the gapless run that ends with the newest reading, cut to the window."""
    run: list[tuple[float, float]] = []
    for at_ms, value in reversed(readings):
        if value is None or (run and run[-1][0] - at_ms > window_ms / 3):
            break
        run.append((at_ms, value))
    newest_ms = readings[-1][0]
    if not run or run[-1][0] > newest_ms - window_ms:
        return None
    return min(value for at_ms, value in run if at_ms >= newest_ms - window_ms)


@given(st.lists(st.tuples(st.integers(0, 1200), st.one_of(st.floats(0, 1), st.integers(1, 3).map(float), st.none())), max_size=60))
def test_equals_the_minimum_over_all_readings(steps: list[tuple[int, float | None]]):
    """Whatever comes, and when, the floor is what the whole history says."""
    floor, readings, now_ms = Floor(3000.0), [], 0.0
    for step_ms, value in steps:
        now_ms += step_ms
        readings.append((now_ms, value))
        assert by_all_readings(readings, 3000.0) == floor.push(value, now_ms)


@given(st.lists(st.floats(0, 1), min_size=100, max_size=200))
def test_holds_no_more_than_a_window(values: list[float]):
    """Readings every 100 ms for ever leave at most the 31 of a window of 3 s behind."""
    floor = Floor(3000.0)
    for place, value in enumerate(values):
        floor.push(value, place * 100.0)

    assert len(floor._rising) <= 31
