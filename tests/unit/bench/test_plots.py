"""Plots of arms over time."""

import math

from bench.arm import Arm, Sample
from bench.arrivals import Arrival
from bench.plots import Panel, draw, per_second, ttft_p95_s
from bench.traffic import Call, Report


def arm(*calls: Call) -> Arm:
    return Arm("an arm", Report(calls, 0.1, 1.0), (Sample(0.0, {"kv": 0.5}), Sample(0.5, {"kv": 0.6})))


def call(due_s: float, *tokens_s: float) -> Call:
    return Call(Arrival(due_s, 1, 1, 1), due_s, due_s, due_s + 1, "completed", tokens_s=tokens_s)


def test_response_is_that_of_each_seconds_arrivals() -> None:
    """Two came in the first second, none in the second, and one in the third that never got a token: neither of these has a point."""
    line = ttft_p95_s(3.0)(arm(call(0.1, 0.2), call(0.9, 1.4), call(2.5)))

    assert [(at_s, math.isclose(value, 0.5)) for at_s, value in line] == [(0.5, True)]


def test_moments_are_counted_by_seconds() -> None:
    """A second without any has a point at 0."""
    assert per_second(lambda _: [0.1, 0.9, 2.0], 3.0)(arm()) == [(0.5, 2), (1.5, 0), (2.5, 1)]


def test_figure_is_a_png(tmp_path) -> None:
    """Its folder is made where there is none."""
    path = tmp_path / "images" / "kv.png"
    draw(path, [Panel("cache", lambda each: each.series("kv"), [arm()], mark=1.0, log=True)], seconds=1.0, shaded=(0.2, 0.4))

    assert path.read_bytes().startswith(b"\x89PNG")
