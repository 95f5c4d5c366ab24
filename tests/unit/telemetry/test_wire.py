"""A snapshot survives its way over the wire; what is no snapshot is refused."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import DependencyDown
from app.telemetry.snapshot import Gpu, Loads, Node, Reading, Snapshot
from app.telemetry.wire import decode, encode

READINGS = st.builds(
    Reading,
    kv_ratio=st.none() | st.floats(0, 1),
    waiting=st.none() | st.integers(0, 2**53),
    running=st.none() | st.integers(0, 2**53),
    free_tokens=st.none() | st.integers(0, 2**53),
    iteration_ms=st.none() | st.floats(0, 1e6),
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
NODES = st.builds(
    Node,
    name=NAMES,
    models=st.lists(NAMES, max_size=2).map(tuple),
    readings=st.dictionaries(NAMES, READINGS, max_size=2),
    age_ms=st.none() | st.integers(0, 10_000).map(float),
    problem=st.none() | st.just("timeout"),
)


GPUS = st.builds(
    Gpu, id=NAMES, total_bytes=st.none() | st.integers(0, 2**53), memory_ratio=st.none() | st.floats(0, 1), age_ms=st.none() | st.just(7.5)
)
LOADS = st.builds(Loads, ok=st.integers(0, 2**53), refused=st.integers(0, 2**53), problem=st.none() | NAMES)


@given(
    st.builds(
        Snapshot,
        generation=st.integers(0, 2**53),
        nodes=st.lists(NODES, max_size=3).map(tuple),
        gpus=st.lists(GPUS, max_size=2).map(tuple),
        loads=LOADS,
    )
)
def test_round_trip(snapshot):
    """Every snapshot comes back equal, unknown values as unknown."""
    assert decode(encode(snapshot)) == snapshot


def test_unknown_is_null():
    """What is unknown is null on the wire, so that nobody can read it as a number."""
    body = encode(Snapshot(7, (Node("a", ("m",), readings={"m": Reading(waiting=0)}),)))
    assert orjson.loads(body)["nodes"][0] == {
        "name": "a",
        "models": ["m"],
        "gpus": [],
        "max_num_seqs": 0,
        "control_url": "",
        "kind": "",
        "steps": False,
        "readings": {
            "m": {
                "kv_ratio": None,
                "kv_floor": None,
                "waiting": 0,
                "running": None,
                "capacity_tokens": None,
                "rank_tokens": None,
                "free_tokens": None,
                "iteration_ms": None,
                "ttft_ms": None,
                "still_ms": None,
            }
        },
        "age_ms": None,
        "problem": None,
    }


NO_SNAPSHOTS = [
    b"",
    b"<html>",
    b"[]",
    b"{}",
    b'{"generation":"x"}',
    b'{"generation":1,"nodes":[{}]}',
    b'{"generation":1,"nodes":[{"name":"a","age_ms":"5"}]}',
    b'{"generation":1,"nodes":[{"name":"a","age_ms":NaN}]}',
    b'{"generation":1,"nodes":[{"name":"a","age_ms":1e999}]}',
    b'{"generation":1,"nodes":[{"name":"a","readings":{"m":{"kv_ratio":NaN}}}]}',
]


@pytest.mark.parametrize("body", NO_SNAPSHOTS)
def test_what_is_no_snapshot_is_refused(body):
    """Anything else counts as an answer that did not come: texts for numbers, too, and numbers that nothing is above or below."""
    with pytest.raises(DependencyDown, match="answered no snapshot"):
        decode(body)
