"""The arithmetic of rate buckets, by figures worked out by hand and by comparison with exact fractions."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.limiter import gcra

PER_SECOND = 1000.0
PER_MINUTE = 60_000.0


@pytest.mark.parametrize(
    ("limit", "burst", "period_ms", "rate"),
    [
        (50, None, PER_SECOND, gcra.Rate(50, 20, 1000)),
        (0.5, None, PER_SECOND, gcra.Rate(1, 2000, 2000)),
        (2, 5, PER_SECOND, gcra.Rate(5, 500, 2500)),
        (30_000, None, PER_MINUTE, gcra.Rate(30_000, 2, 60_000)),
        (0, 10, PER_SECOND, gcra.Rate(0, 1000, 0)),
    ],
)
def test_rate_from_limit(limit: float, burst: float | None, period_ms: float, rate: gcra.Rate) -> None:
    """A bucket holds its burst, else one period's limit and at least one unit; a limit of 0 holds nothing."""
    assert gcra.Rate.of(limit, burst, period_ms) == rate


def test_wait_is_the_missing_part_of_a_unit() -> None:
    """A bucket of one a second, emptied at 0 and asked at 200 ms, can pay after 800 ms, not after a whole second."""
    tat_ms = gcra.take(0.0, 0.0, 1000.0, 1000.0)
    assert gcra.wait_ms(gcra.used_ms(tat_ms, 200.0), 1000.0, 1000.0) == 800
    assert not gcra.fits(gcra.used_ms(tat_ms, 999.0), 1000.0, 1000.0)
    assert gcra.fits(gcra.used_ms(tat_ms, 1000.0), 1000.0, 1000.0)


def test_wait_rounds_up_but_not_past_a_whole_millisecond() -> None:
    """0.2 ms short is a wait of 1 ms; 800 ms with a rounding of a nanosecond is 800."""
    assert gcra.wait_ms(0.2, 10.0, 10.0) == 1
    assert gcra.wait_ms(800.000001, 10.0, 10.0) == 800


@pytest.mark.parametrize(("factor", "priced"), [(1.0, 30.0), (0.5, 60.0), (1.5, 20.0), (0.1, 100.0), (1e-300, 100.0)])
def test_factor_changes_the_price(factor: float, priced: float) -> None:
    """30 of a bucket of 100 cost 30 divided by the factor, and never more than the full bucket."""
    assert priced == gcra.price(30.0, factor, 100.0)


@pytest.mark.parametrize("limit", [1e-300, 5e-324])
def test_absurdly_slow_rate_stays_finite(limit: float) -> None:
    """However small a limit, a unit is earned in 30 days, and no longer wait is told, whatever the bucket holds."""
    month_ms = 30 * 24 * 3_600_000
    assert gcra.Rate.of(limit, None, PER_SECOND) == gcra.Rate(1, month_ms, month_ms)
    rate = gcra.Rate.of(limit, 2.0**53, PER_SECOND)
    tat_ms = gcra.take(0.0, 0.0, rate.window_ms, rate.window_ms)
    used_ms = gcra.used_ms(tat_ms, 0.0)
    assert month_ms == gcra.wait_ms(used_ms, rate.window_ms, rate.window_ms) == gcra.reset_ms(used_ms)
    assert gcra.remaining(used_ms, rate) == 0


def test_debt_has_an_end() -> None:
    """However much is charged after the fact, a bucket of one second is full again after two."""
    tat_ms = 0.0
    for _ in range(100):
        tat_ms = gcra.take(tat_ms, 0.0, 1000.0, 1000.0)
    rate = gcra.Rate(10.0, 100.0, 1000.0)

    assert tat_ms == 2000.0
    assert gcra.remaining(gcra.used_ms(tat_ms, 0.0), rate) == 0
    assert gcra.reset_ms(gcra.used_ms(tat_ms, 0.0)) == 2000


def test_a_charge_never_shortens_what_is_owed() -> None:
    """Charging under a short window leaves what a longer one let run up."""
    assert gcra.take(9000.0, 0.0, 10.0, 100.0) == 9000.0


def test_clamp_to_a_shorter_window() -> None:
    """A minute used up under one request a minute counts as two seconds at most under fifty a second; a closed bucket keeps all."""
    assert gcra.clamp(60_000.0, 0.0, 1000.0) == 2000.0
    assert gcra.clamp(500.0, 0.0, 1000.0) == 500.0
    assert gcra.clamp(60_000.0, 0.0, 0.0) == 60_000.0


@given(
    limit=st.integers(1, 1_000_000),
    steps=st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 1_000_000)), max_size=60),
)
def test_no_window_passes_more_than_capacity_and_refill(limit: int, steps: list[tuple[int, int]]) -> None:
    """Over any stretch, what passes is at most the capacity plus the refill of that stretch, to the tolerance."""
    rate = gcra.Rate.of(float(limit), None, PER_SECOND)
    tat_ms, now_ms = 0.0, 0
    passed: list[tuple[int, int]] = []
    for gap_ms, cost in steps:
        now_ms += gap_ms
        cost_ms = cost * rate.interval_ms
        if cost <= rate.capacity and gcra.fits(gcra.used_ms(tat_ms, now_ms), cost_ms, rate.window_ms):
            tat_ms = gcra.take(tat_ms, now_ms, cost_ms, rate.window_ms)
            passed.append((now_ms, cost))
    forgiven = limit * Fraction(gcra.TOLERANCE_MS) * 2 / 1000
    for first, (start_ms, _) in enumerate(passed):
        total = 0
        for at_ms, cost in passed[first:]:
            total += cost
            assert total <= limit + Fraction(limit * (at_ms - start_ms), 1000) + forgiven


@given(limit=st.integers(1, 10**9), used=st.integers(0, 10**9), start_ms=st.integers(0, 10**12))
def test_an_exact_fit_passes(limit: int, used: int, start_ms: int) -> None:
    """Whatever the rate and however old the process, what remains of a full bucket can be spent to the last unit."""
    rate = gcra.Rate.of(float(limit), None, PER_MINUTE)
    used = min(used, limit)
    tat_ms = gcra.take(0.0, float(start_ms), used * rate.interval_ms, rate.window_ms)

    assert gcra.fits(gcra.used_ms(tat_ms, float(start_ms)), (limit - used) * rate.interval_ms, rate.window_ms)


@given(st.lists(st.integers(1, 997), min_size=1, max_size=200))
def test_rounding_does_not_add_up(costs: list[int]) -> None:
    """Taking amounts and subtracting them in another order ends at a full bucket, to the tolerance."""
    rate = gcra.Rate.of(30_007.0, None, PER_MINUTE)
    now_ms = tat_ms = 123_456.789
    taken = [cost * rate.interval_ms for cost in costs if cost <= rate.capacity / len(costs)]
    for cost_ms in taken:
        tat_ms = gcra.take(tat_ms, now_ms, cost_ms, rate.window_ms)
    for cost_ms in sorted(taken):
        tat_ms -= cost_ms
    assert abs(tat_ms - now_ms) < gcra.TOLERANCE_MS
