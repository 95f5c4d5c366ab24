"""The controller by hand: its error, its slopes, when it moves and when it rests, and what never comes out."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimators.controller import Controller, Levels, Load, Output, error, iteration_aim

SET_POINTS = Levels(kv_ratio=0.8, waiting=8, iteration_ms=30)
RELAXED = Levels(kv_ratio=0.1, waiting=0, iteration_ms=10)
OVER = Levels(kv_ratio=1.0, waiting=0, iteration_ms=10)
AT_POINT = Levels(kv_ratio=0.8, waiting=0, iteration_ms=10)


class Loop:
    """A controller that is updated every 100 ms."""

    def __init__(self, ceiling: int = 64, floor: int = 1) -> None:
        self.controller, self.floor, self.ceiling, self.now_ms = Controller(), floor, ceiling, 0.0

    def run(self, seconds: float, measured: Levels, load: Load) -> list[Output]:
        """What came out of each update."""
        outputs = []
        for _ in range(round(seconds * 10)):
            outputs.append(self.controller.update(measured, SET_POINTS, load, floor=self.floor, ceiling=self.ceiling, now_ms=self.now_ms))
            self.now_ms += 100.0
        return outputs


def low(to: int, ceiling: int = 64) -> Loop:
    """A loop whose maximum own requests have pressed down to `to`."""
    loop = Loop(ceiling=ceiling)
    while loop.run(0.1, OVER, Load(ceiling if loop.now_ms < 500 else 0))[-1].max_in_flight > to:
        pass
    loop.run(3, AT_POINT, Load(1))
    return loop


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (Levels(kv_ratio=0.4, waiting=0, iteration_ms=15), 0.5),  # half of KV and of the iteration is free, all of waiting
        (Levels(kv_ratio=0.4, waiting=0, iteration_ms=24), 0.2),
        (Levels(kv_ratio=0.88, waiting=0, iteration_ms=24), -0.1),
        (Levels(kv_ratio=0.4, waiting=12, iteration_ms=15), -0.5),
        (Levels(kv_ratio=0.4, waiting=0, iteration_ms=120), -1.0),  # -3, held
        (Levels(waiting=4), 0.5),
        (Levels(kv_ratio=math.nan, waiting=4, iteration_ms=math.inf), 0.5),
        (Levels(kv_ratio=-0.1, waiting=4), 0.5),
    ],
)
def test_the_tightest_signal_counts(measured: Levels, expected: float):
    """The error is that of the signal with the least room, as a share of its set point; what is unknown doesn't count."""
    assert error(measured, SET_POINTS) == pytest.approx(expected)


def test_nothing_known_is_no_error():
    """Without a signal, or without a set point for it, there is no error."""
    assert error(Levels(), SET_POINTS) is None
    assert error(AT_POINT, Levels()) is None
    assert error(Levels(kv_ratio=0.5), Levels(waiting=8)) is None


def test_waiting_requests_are_a_share_of_those_in_flight():
    """Sixteen waiting where eight may are 100 % too many of an idle node, and 12.5 % of 64 in flight."""
    assert error(Levels(waiting=16), SET_POINTS) == -1.0
    assert error(Levels(waiting=16), SET_POINTS, proven=64) == -0.125


def test_room_for_waiting_requests_does_not_shrink_with_the_load():
    """None waiting where eight may is all of the room, with a thousand in flight too."""
    assert error(Levels(waiting=0), SET_POINTS, proven=1000) == 1.0


def test_a_set_point_of_0_allows_none():
    """Where nothing may wait, one waiting request of four in flight is a quarter too many, and none waiting is as wanted."""
    assert error(Levels(waiting=1), Levels(waiting=0), proven=4) == -0.25
    assert error(Levels(waiting=0), Levels(waiting=0), proven=4) == 0.0


@pytest.mark.parametrize(
    ("best_ms", "expected_ms"),
    [
        (0.0, 30.0),
        (10.0, 30.0),
        (20.0, 30.0),  # 2 x 20 - (30 - 20)
        (25.0, 45.0),  # 2 x 25 - (30 - 25)
        (30.0, 60.0),
        (250.0, 500.0),
    ],
)
def test_the_aim_of_an_iteration_is_within_reach(best_ms: float, expected_ms: float):
    """A set point of 30 ms holds for an engine whose best is 20 ms or less; twice the best is the aim where that is 30 or more."""
    assert iteration_aim(30.0, best_ms) == expected_ms


def test_an_engine_slow_by_nature_is_not_shut():
    """A step of 250 ms with one request at a time, where 30 are wanted, keeps the whole maximum, and all are let in."""
    assert set(Loop(ceiling=16).run(60, Levels(kv_ratio=0.1, waiting=0, iteration_ms=250), Load(1, 1))) == {Output(16, 1.0)}


def test_what_was_measured_under_load_is_not_its_best():
    """A controller that begins in the middle of an overload holds the set point, until fewer requests show what they change."""
    loop = Loop()
    assert loop.run(3, Levels(iteration_ms=80), Load(60, 60))[-1].admission == 0.05
    assert loop.run(5, Levels(iteration_ms=80), Load(4, 4))[-1].admission == 1.0


def test_the_least_that_may_be_in_flight_shows_the_best():
    """Where others keep an engine busy, the best is measured once the maximum is at its floor: less of ours changes nothing."""
    loop = Loop()
    loop.run(30, Levels(iteration_ms=80), Load(1, 60))

    assert loop.run(5, Levels(iteration_ms=80), Load(1, 60))[-1].admission == 1.0


def test_starts_at_the_ceiling():
    """Until a signal speaks against it, what the engine is configured for is in force, whole."""
    assert Loop(ceiling=64).run(10, RELAXED, Load(1))[-1] == Output(64, 1.0)


def test_unknown_signals_hold_both_outputs():
    """While nothing is known, neither output moves, and a long silence is no leap when signals come back."""
    loop = Loop()
    before = loop.run(2, OVER, Load(64))[-1]

    assert set(loop.run(60, Levels(), Load(64))) == {before}
    after = loop.run(0.1, RELAXED, Load(64))[-1]
    assert before.max_in_flight <= after.max_in_flight <= before.max_in_flight * math.exp(0.025) + 1


def test_grows_no_steeper_than_stated():
    """With everything free and all of it in use, the maximum grows by e^0.25 a second, never faster."""
    told = [output.max_in_flight for output in low(to=10, ceiling=1000).run(20, RELAXED, Load(10_000))]

    assert all(later <= math.exp(0.25) * (now + 1) for now, later in zip(told, told[10:], strict=False))
    assert told[-1] > 10 * told[0]


def test_grows_only_where_it_is_asked_for():
    """With less than 80 % of the maximum in flight it does not grow, however relaxed the engine is."""
    loop = low(to=10)
    start = loop.run(0.1, AT_POINT, Load(1))[-1].max_in_flight

    assert loop.run(60, RELAXED, Load(start * 8 // 10 - 1))[-1].max_in_flight == start
    assert loop.run(10, RELAXED, Load(start))[-1].max_in_flight > start


@pytest.mark.parametrize("load", [Load(0), Load(0, at_engine=20), Load(30, at_engine=0)])
def test_returns_to_the_ceiling_while_nothing_is_asked_for(load: Load):
    """With nothing of ours there and all signals well, the maximum is at its ceiling of 512 within 30 s, by e^0.25 a second at most."""
    told = [output.max_in_flight for output in low(to=2, ceiling=512).run(30, RELAXED, load)]

    assert all(later <= math.exp(0.25) * (now + 1) for now, later in zip(told, told[10:], strict=False))
    assert told[-1] == 512


def test_does_not_return_while_a_signal_is_not_well():
    """With nothing of ours there, but others filling the cache above the set point, the maximum stays where it is."""
    loop, full = low(to=10), Levels(kv_ratio=0.82)
    start = loop.run(2, full, Load(1))[-1].max_in_flight

    assert {output.max_in_flight for output in loop.run(60, full, Load(0, at_engine=60))} == {start}


def test_returns_where_nothing_may_wait():
    """A set point of 0 waiting requests, which nothing can be below, lets the maximum return too."""
    controller, told = Controller(), []
    for now_ms in range(0, 60_000, 100):
        waiting = 4 if now_ms < 10_000 else 0
        load = Load(waiting, waiting)
        told.append(controller.update(Levels(waiting=waiting), Levels(waiting=0), load, floor=1, ceiling=64, now_ms=now_ms).max_in_flight)

    assert told[99] < 10
    assert told[-1] == 64


def test_returns_after_the_ceiling_did():
    """A batch that was 1 for a while, and is what it was again, is in use again once nothing was asked for."""
    loop = Loop(ceiling=512)
    loop.run(1, RELAXED, Load(1))
    loop.ceiling = 2
    assert loop.run(1, RELAXED, Load(1))[-1].max_in_flight == 2
    loop.ceiling = 512

    assert loop.run(30, RELAXED, Load(0))[-1].max_in_flight == 512


def test_leases_that_nobody_settles_do_not_wind_it_up():
    """Leases that the engine knows nothing of are no demand: the maximum stays where it was."""
    loop = low(to=10)
    start = loop.run(0.1, AT_POINT, Load(1))[-1].max_in_flight

    assert loop.run(60, RELAXED, Load(start, at_engine=1))[-1].max_in_flight == start


def test_goes_down_faster_than_up():
    """The same error takes away twice what it gives in the same time."""
    above, below = Levels(iteration_ms=36), Levels(iteration_ms=24)
    cut = Loop(ceiling=1000).run(2, above, Load(1000, lasts_ms=4000))
    loop = low(to=300, ceiling=1000)
    start = loop.run(0.1, AT_POINT, Load(1))[-1].max_in_flight
    grown = loop.run(2, below, Load(1000, lasts_ms=4000))

    down, up = math.log(cut[0].max_in_flight / cut[-1].max_in_flight), math.log(grown[-1].max_in_flight / start)
    assert down == pytest.approx(2 * up, rel=0.4)


def test_a_cut_waits_for_what_is_in_flight():
    """The maximum goes 20 % below what is in flight and no further, until that has drained."""
    loop = Loop(ceiling=100)

    assert loop.run(60, OVER, Load(100))[-1].max_in_flight == 80
    assert loop.run(60, OVER, Load(50))[-1].max_in_flight == 40


def test_long_requests_make_it_slow():
    """Where requests last ten times as long, the maximum moves by a tenth of the rate: effects show that much later."""
    short = Loop(ceiling=1000).run(2, Levels(kv_ratio=0.88), Load(1000, lasts_ms=3_000))
    long = Loop(ceiling=1000).run(20, Levels(kv_ratio=0.88), Load(1000, lasts_ms=30_000))

    assert long[-1].max_in_flight == pytest.approx(short[-1].max_in_flight, rel=0.01)


def test_rests_near_the_set_point():
    """Errors of 4 % to either side start nothing."""
    loop = low(to=10)
    start = loop.run(0.1, AT_POINT, Load(1))[-1].max_in_flight

    for kv_ratio in (0.77, 0.83, 0.77, 0.83):
        assert {start} == {output.max_in_flight for output in loop.run(5, Levels(kv_ratio=kv_ratio), Load(start))}


def test_what_moves_goes_on_to_the_middle_of_the_band():
    """A room of 3 % starts no growth, but growth that a larger one started goes on through it, and stops at 0.5 %."""
    loop, nearly, there = low(to=10), Levels(kv_ratio=0.776), Levels(kv_ratio=0.796)
    loop.run(2, RELAXED, Load(64))
    loop.run(2, nearly, Load(64))
    started = loop.run(20, nearly, Load(64))
    assert started[-1].max_in_flight > started[0].max_in_flight

    loop.run(2, there, Load(64))
    assert len({output.max_in_flight for output in loop.run(20, there, Load(64))}) == 1
    assert len({output.max_in_flight for output in loop.run(20, nearly, Load(64))}) == 1


def test_admission_falls_with_the_error_and_returns_smoothly():
    """Below the set point all are let in; 25 % above it half are; then admission returns by 6 % in 100 ms."""
    loop = Loop()
    assert loop.run(5, AT_POINT, Load(10))[-1].admission == 1.0
    assert loop.run(10, OVER, Load(10))[-1].admission == pytest.approx(0.5, abs=0.001)

    told = [output.admission for output in loop.run(3, RELAXED, Load(10))]

    assert all(later - now <= 0.06 + 1e-9 for now, later in pairwise(told))
    assert told[-1] == 1.0


@pytest.mark.parametrize("idle", [RELAXED, Levels()])
def test_an_engine_that_has_nothing_to_do_is_open_within_2_s(idle: Levels):
    """From the least admission to all, once nothing runs or waits there, be it that the engine tells nothing else."""
    loop = Loop()
    assert loop.run(10, Levels(iteration_ms=10_000), Load(10))[-1].admission == 0.05

    assert loop.run(2, idle, Load(0, at_engine=0))[-1].admission == 1.0


def test_somebody_is_always_let_in():
    """At the worst error 5 % still get in, so that an engine that tells only latencies can tell again."""
    assert Loop().run(60, Levels(iteration_ms=10_000), Load(10))[-1].admission == 0.05


def test_a_cut_that_was_not_its_own_doing_is_taken_back():
    """Latency that rose with 10 of 64 in flight says nothing against 64: once it is over, the maximum returns unasked."""
    loop = Loop()
    loop.run(5, RELAXED, Load(10))
    assert loop.run(10, Levels(iteration_ms=120), Load(10))[-1].max_in_flight <= 10

    assert loop.run(30, RELAXED, Load(5))[-1].max_in_flight == 64


def test_a_lowered_ceiling_holds_at_once():
    """Whatever is in flight, the maximum is never above the ceiling of the moment."""
    loop = Loop(ceiling=64)
    loop.run(1, RELAXED, Load(64))
    loop.ceiling = 20

    assert loop.run(0.1, RELAXED, Load(64))[-1].max_in_flight == 20


numbers = st.one_of(st.none(), st.floats(), st.floats(0, 2), st.integers(0, 100).map(float))
levels = st.builds(Levels, numbers, numbers, numbers)
counts = st.integers(0, 10**6)
loads = st.builds(Load, counts, st.one_of(st.none(), counts), numbers)


@given(
    st.lists(
        st.tuples(levels, levels, loads, st.integers(1, 50), st.integers(0, 500), st.floats(0, 1e7)),
        min_size=1,
        max_size=30,
    )
)
def test_whatever_comes_in_the_outputs_are_in_their_bounds(steps: list[tuple[Levels, Levels, Load, int, int, float]]):
    """The maximum is between floor and ceiling, and 0 <= admission <= 1, as whole and finite numbers, for every input there is."""
    controller, now_ms = Controller(), 0.0
    for measured, set_points, load, floor, above, step_ms in steps:
        now_ms += step_ms
        told = controller.update(measured, set_points, load, floor=floor, ceiling=floor + above, now_ms=now_ms)

        assert isinstance(told.max_in_flight, int)
        assert floor <= told.max_in_flight <= floor + above
        assert 0 <= told.admission <= 1
