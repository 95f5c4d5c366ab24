"""Engines are asked as often as the settings say, unless reading their pages costs too much."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from app.clock import ManualClock
from app.telemetry.pace import Pace


def scrape(pace, clock, *, waits_ms=0.0, reading_ms=0.0):
    """One scrape: waiting for the page, then reading it; answers the pause after it."""
    clock.advance(waits_ms)
    with pace.reading():
        clock.advance(reading_ms)
    return pace.pause_ms(waits_ms + reading_ms)


def test_a_page_that_costs_little_is_asked_for_at_its_interval():
    """The next scrape begins 100 ms after the last one, or at once where that took longer; waiting costs nothing."""
    clock = ManualClock()
    pace = Pace("a", 100, clock)
    assert [scrape(pace, clock, waits_ms=waits_ms, reading_ms=2.0) for waits_ms in (3.0, 98.0, 400.0)] == [95.0, 0.0, 0.0]


def test_a_page_that_costs_much_is_asked_for_less_often():
    """After a page that took 50 ms to read, the next scrape begins 500 ms after that one did; a cheap page ends that."""
    clock = ManualClock()
    pace = Pace("a", 100, clock)
    assert scrape(pace, clock, waits_ms=10.0, reading_ms=50.0) == 440.0
    assert scrape(pace, clock, waits_ms=10.0, reading_ms=1.0) == 89.0


def test_a_page_that_breaks_its_reader_has_its_cost():
    """What was spent on a page counts where it was refused in the end, too, and not again where no page came after it."""
    clock = ManualClock()
    pace = Pace("a", 100, clock)

    def read():
        with pace.reading():
            clock.advance(50.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read()
    assert pace.pause_ms(50.0) == 450.0
    assert pace.pause_ms(0.0) == 100.0


def test_the_first_pause_is_a_share():
    """The first pause is the share of the interval that keeps engines apart, and no shorter than its page allows."""
    clock = ManualClock()
    assert scrape(Pace("a", 100, clock, 0.25), clock) == 25.0
    assert scrape(Pace("a", 100, clock, 0.25), clock, reading_ms=20.0) == 180.0


def test_a_costly_engine_is_told_once():
    """One line names the engine, what its page costs, when it is asked again and what to do; less than 50 ms is none."""
    clock = ManualClock()
    pace = Pace("a", 100, clock)
    with capture_logs() as logged:
        for reading_ms in (49.0, 50.0, 70.0):
            scrape(pace, clock, reading_ms=reading_ms)
    (line,) = logged
    assert (line["event"], line["node"], line["reading_ms"], line["asked_again_ms"]) == ("scrape.costly", "a", 50, 500)
    assert "metrics or labels" in line["hint"]


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 1000)), min_size=1, max_size=20))
def test_reading_never_takes_more_than_a_tenth(scrapes):
    """Whatever pages cost, all reading together is at most a tenth of the time."""
    clock = ManualClock()
    pace = Pace("a", 100, clock)
    for waits_ms, reading_ms in scrapes:
        clock.advance(scrape(pace, clock, waits_ms=waits_ms, reading_ms=reading_ms))
    assert sum(reading_ms for _, reading_ms in scrapes) <= clock.monotonic_ms() * 0.1 + 1e-6
