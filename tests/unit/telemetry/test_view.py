"""What a snapshot means for a model: who is live, the aggregates by hand, the order of nodes, and when a generation grows."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.telemetry.ages import aged, next_expiry_ms
from app.telemetry.build_view import build_view
from app.telemetry.describe import describe
from app.telemetry.snapshot import Node, Reading, Snapshot
from app.telemetry.view import View
from tests.unit.telemetry.pages import SPEC, WAITING_ONLY

MODELS = {"m": SPEC, "w": WAITING_ONLY}


def node(name, kv=0.5, waiting=1, *, age_ms=10.0, model="m", problem=None, **more):
    return Node(name, (model,), readings={model: Reading(kv_ratio=kv, waiting=waiting, **more)}, age_ms=age_ms, problem=problem)


def view(*nodes, before=None):
    return build_view(Snapshot(1, nodes), MODELS, stale_ms=1000, before=before)


def test_aggregates_by_hand():
    """Over two live nodes: largest and mean KV, sums of counts, the free room of both, the mean step."""
    model = view(
        node("a", 0.12345, 3, running=5, free_tokens=419_763, iteration_ms=10.0),
        node("b", 0.5, 4, running=6, free_tokens=99_999, iteration_ms=10.26),
    ).models["m"]

    # mean: (0.12345 + 0.5) / 2 = 0.311725; free: 419_763 + 99_999 = 519_762, cut to three digits; step: (10 + 10.26) / 2 = 10.13
    assert model.readings == {
        "live": 2,
        "known": 2,
        "frozen": 0,
        "avoided": 0,
        "kv_max": 0.5,
        "kv_mean": 0.312,
        "waiting": 7,
        "running": 11,
        "free_tokens": 519_000,
        "held_tokens": 0,
        "iteration_ms": 10.1,
    }


def test_small_free_room_is_not_cut_to_nothing():
    """512 free tokens stay 512."""
    assert view(node("a", free_tokens=512)).models["m"].readings["free_tokens"] == 512


def test_no_average_hides_an_outage():
    """With no live node there is no KV at all, not 0; known still counts the configured nodes."""
    assert view(node("a", age_ms=1100.0), node("b", age_ms=None)).models["m"].readings == {"live": 0, "known": 2, "frozen": 0, "avoided": 0}


def test_a_model_without_nodes():
    """A model that no engine is configured for has neither live nor known nodes."""
    assert view().models["m"].readings == {"live": 0, "known": 0, "frozen": 0, "avoided": 0}
    assert view().models["m"].nodes == ()


@pytest.mark.parametrize(("age_ms", "live"), [(0.0, 1), (999.9, 1), (1000.0, 0), (1200.0, 0), (None, 0)])
def test_fresh_means_younger_than_a_second(age_ms, live):
    """A page counts while it is younger than stale_ms."""
    assert view(node("a", age_ms=age_ms)).models["m"].readings["live"] == live


def test_a_declared_signal_that_is_missing_makes_a_node_not_live():
    """A node without a KV reading leaves the model whose spec declares KV, however fresh its page."""
    one = view(node("a", kv=None), node("b"))
    assert one.models["m"].nodes == ("b",)
    assert [state.why for state in one.nodes] == ["missing:kv", ""]


def test_a_signal_that_is_not_declared_may_be_missing():
    """A model that declares only waiting is live without KV, and then has no KV aggregate."""
    one = view(node("a", kv=None, waiting=2, model="w"))
    assert one.models["w"].readings == {"live": 1, "known": 1, "frozen": 0, "avoided": 0, "waiting": 2}
    assert one.models["w"].nodes == ("a",)


def test_an_aggregate_that_one_live_node_does_not_tell_is_absent():
    """The silent node could be the worst, so the aggregate is unknown."""
    assert "running" not in view(node("a", running=3), node("b")).models["m"].readings


def test_nodes_are_ordered_by_kv_then_waiting_then_name():
    """The lowest KV comes first, ties by waiting, then by name; the best node is the first."""
    model = view(node("d", 0.5, 0), node("c", 0.2, 1), node("b", 0.2, 1), node("a", 0.2, 9)).models["m"]

    assert model.nodes == ("b", "c", "a", "d")


def test_age_of_the_freshest_live_page():
    """A stale node does not lend its age, and without a live node there is none."""
    assert view(node("a", age_ms=80.0), node("b", age_ms=30.0)).models["m"].age_ms == 30.0
    assert view(node("a", age_ms=5000.0)).models["m"].age_ms is None


def test_equal_content_keeps_its_generation_and_its_section():
    """Only ages passed: the generation stays, and the section is the same object, so that memo keys still hit."""
    first = view(node("a"))
    later = view(node("a", age_ms=60.0), before=first)

    assert later.generation == first.generation == 1
    assert later.models["m"].readings is first.models["m"].readings
    assert later.models["m"].age_ms == 60.0


def test_noise_below_the_rounding_keeps_the_section():
    """KV that moves by less than 0.001 is another generation but the same question."""
    first = view(node("a", 0.50001))
    later = view(node("a", 0.50002), before=first)

    assert later.generation == 2
    assert later.models["m"].readings is first.models["m"].readings


def test_a_node_that_becomes_stale_is_new_content():
    """Time alone changes content once it takes a node away."""
    first = view(node("a"))
    assert view(node("a", age_ms=1000.0), before=first).generation == 2


@given(st.lists(st.tuples(st.floats(0, 2000), st.floats(0, 1), st.integers(0, 9)), max_size=6))
def test_generations_never_step_back(states):
    """Whatever comes next, the generation stays or grows by one, and grows exactly when the section changes or more."""
    before = View()
    for age_ms, kv, waiting in states:
        after = view(node("a", kv, waiting, age_ms=age_ms), before=before)
        assert after.generation - before.generation in (0, 1)
        if before.models and after.models["m"].readings != before.models["m"].readings:
            assert after.generation == before.generation + 1
        before = after


def test_time_passes_for_all_ages():
    """A snapshot 50 ms later has ages 50 ms higher; a node without a page has none."""
    later = aged(Snapshot(1, (node("a", age_ms=10.0), node("b", age_ms=None))), 50.0)
    assert [one.age_ms for one in later.nodes] == [60.0, None]


def test_next_expiry():
    """The next node to become stale is the oldest that is still fresh."""
    snapshot = Snapshot(1, (node("a", age_ms=300.0), node("b", age_ms=900.0), node("c", age_ms=1500.0), node("d", age_ms=None)))
    assert next_expiry_ms(snapshot, 1000) == 100.0
    assert next_expiry_ms(Snapshot(1), 1000) == math.inf


def test_description_says_why_a_node_is_not_fresh():
    """Each node and model shows what it tells, and a reason where it does not count."""
    one = view(
        node("a", 0.5, 1, running=2),
        node("b", age_ms=1500.0, problem="timeout"),
        Node("c", ("m",), problem="connect"),
        Node("d", ("m",)),
        node("e", age_ms=1200.0),
    )
    assert describe(one)["models"]["m"] == {
        "live": 1,
        "known": 5,
        "frozen": 0,
        "avoided": 0,
        "kv_max": 0.5,
        "kv_mean": 0.5,
        "waiting": 1,
        "running": 2,
        "nodes": ["a"],
    }
    assert describe(one)["nodes"] == [
        {"node": "a", "model": "m", "fresh": True, "kv_usage": 0.5, "waiting": 1, "running": 2, "age_ms": 10.0},
        {"node": "b", "model": "m", "fresh": False, "kv_usage": 0.5, "waiting": 1, "age_ms": 1500.0, "why": "timeout"},
        {"node": "c", "model": "m", "fresh": False, "why": "connect"},
        {"node": "d", "model": "m", "fresh": False, "why": "no_page"},
        {"node": "e", "model": "m", "fresh": False, "kv_usage": 0.5, "waiting": 1, "age_ms": 1200.0, "why": "stale"},
    ]
