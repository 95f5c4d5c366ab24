"""What the controllers of nodes are fed with."""

import pytest

from app.estimators.controller import Output
from app.nodes.controllers import Controllers
from app.telemetry.snapshot import Reading

KEY = ("a", "m")
SLOW = Reading(running=60, waiting=0, iteration_ms=400.0)


def run(controllers: Controllers, reading: Reading, begin_ms: int, end_ms: int, in_flight: int = 0) -> Output:
    """What is in force after pages every 100 ms told this, with an aim of 100 ms."""
    for now_ms in range(begin_ms, end_ms, 100):
        told = controllers.update(
            KEY, reading, set_points={"iteration_ms": 100.0}, in_flight=in_flight, max_num_seqs=64, now_ms=float(now_ms)
        )
    assert told is not None
    return told


@pytest.fixture
def shut() -> Controllers:
    """The node is four times as slow as it may be, at 60 requests, for 5 s."""
    controllers = Controllers()
    assert run(controllers, SLOW, 0, 5000, in_flight=60).admission == 0.05
    return controllers


@pytest.mark.parametrize("kv_ratio", [None, 0.0])
def test_an_idle_engine_has_no_latency(shut: Controllers, kv_ratio: float | None) -> None:
    """Once nothing runs there, the latency that is still told is that of work that has ended: within 2 s all are let in."""
    assert run(shut, Reading(running=0, waiting=0, kv_ratio=kv_ratio, iteration_ms=400.0), 5000, 7000).admission == 1.0


def test_the_latency_of_an_engine_that_does_not_tell_what_runs_counts(shut: Controllers) -> None:
    """Where nobody knows whether it is idle, its latency holds."""
    assert run(shut, Reading(iteration_ms=400.0), 5000, 7000, in_flight=60).admission == 0.05


def test_no_controller_closes_a_node() -> None:
    """However long a cache stays full that others fill, one request may be in flight."""
    controllers = Controllers()

    told = [
        controllers.update(KEY, Reading(kv_ratio=1.0), set_points={"kv": 0.001}, in_flight=0, max_num_seqs=64, now_ms=page * 100.0)
        for page in range(600)
    ]

    assert min(output.max_in_flight for output in told if output) == 1


def test_without_aims_there_is_no_controller() -> None:
    """Where rules name no set point, nothing is limited."""
    assert Controllers().update(KEY, SLOW, set_points={}, in_flight=60, max_num_seqs=64, now_ms=0.0) is None
