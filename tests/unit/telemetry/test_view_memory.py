"""What a view adds to the pages: device memory of the cards under a node, room of the cache, and what this replica knows itself."""

import pytest

from app.catalog.models import ModelSpec
from app.telemetry.ages import aged, next_expiry_ms
from app.telemetry.build_view import build_view
from app.telemetry.room import memories, with_room
from app.telemetry.snapshot import Gpu, Node, Reading, Snapshot
from app.telemetry.view import Holding, Own, Standing

GIB = 2**30
SPEC = ModelSpec(id="m", preallocates=False)
SHAPED = ModelSpec(id="m", preallocates=False, layers=32, kv_heads=8, head_dim=128, kv_bytes=2)


def node(name="a", *gpus, kv=0.5, waiting=1, **more):
    return Node(name, ("m",), gpus=gpus, max_num_seqs=64, readings={"m": Reading(kv_ratio=kv, waiting=waiting, **more)}, age_ms=10.0)


def gpu(name, used_gib, *, total_gib=80, floor=None, age_ms=50.0, known=True):
    ratio = used_gib / total_gib if known else None
    return Gpu(name, total_gib * GIB, used_gib * GIB if known else None, ratio, floor, "nvml", age_ms)


def view(*nodes, gpus=(), own=None, spec=SPEC):
    snapshot, models = Snapshot(1, nodes, gpus=gpus), {"m": spec}
    memory = memories(snapshot, 1000)
    return build_view(with_room(snapshot, models, memory), models, memory, stale_ms=1000, own=own)


def readings(*nodes, **more):
    return view(*nodes, **more).models["m"].readings


def test_the_fullest_card_speaks_for_its_node():
    """Two cards at 40/80 and 60/80: the node's memory is 0.75, and its floor the larger of both."""
    told = readings(node("a", "G0", "G1"), gpus=(gpu("G0", 40, floor=0.5), gpu("G1", 60, floor=0.7)))
    assert (told["memory"], told["memory_floor"]) == (0.75, 0.7)


@pytest.mark.parametrize(
    "lacking",
    [
        (gpu("G0", 40),),
        (gpu("G0", 40), gpu("G1", 0, known=False)),
        (gpu("G0", 40), gpu("G1", 40, age_ms=1000.0)),
        (gpu("G0", 40), Gpu("G1")),
    ],
    ids=["unheard of", "not supported", "stale", "never read"],
)
def test_a_card_that_tells_nothing_makes_memory_unknown(lacking):
    """The silent card could be the full one, so there is no figure at all, least of all 0."""
    assert "memory" not in readings(node("a", "G0", "G1"), gpus=lacking)


def test_memory_of_a_model_is_the_mean_of_its_nodes():
    """Nodes at 0.5 and 0.75: 0.625; where one of them has no card in the settings there is none."""
    cards = (gpu("G0", 40), gpu("G1", 60))
    assert readings(node("a", "G0"), node("b", "G1"), gpus=cards)["memory"] == 0.625
    assert "memory" not in readings(node("a", "G0"), node("b"), gpus=cards)


def test_a_reading_of_a_card_grows_old_as_a_page_does():
    """A card is stale at its own time, and time passes for it, too."""
    snapshot = aged(Snapshot(1, (), gpus=(gpu("G0", 40, age_ms=100.0),)), 50.0)
    assert (snapshot.gpus[0].age_ms, next_expiry_ms(snapshot, 1000)) == (150.0, 850.0)


def test_standing_still_grows_as_an_age_does():
    """What did not move for 4 s when the page was taken did not move for 5 s a second later, and that is no new content."""
    first = Snapshot(1, (node(still_ms=4000.0),))
    later = aged(first, 1000.0)
    assert later.nodes[0].readings["m"].still_ms == 5000.0
    assert later.nodes[0].readings["m"] == first.nodes[0].readings["m"]


def test_no_more_fits_than_the_card_has_memory_for():
    """The page has a million free blocks' tokens, the card 40 GiB: 327 680 tokens of this shape fit."""
    assert readings(node("a", "G0", free_tokens=1_000_000), gpus=(gpu("G0", 40),), spec=SHAPED)["free_tokens"] == 327_000


def test_room_by_the_pages_blocks_comes_first():
    """Free tokens of the page stand where the card has room for them; over two nodes they are summed. A request must fit one engine rank."""
    told = readings(
        node("a", "G0", free_tokens=1000, capacity_tokens=4000, rank_tokens=2000),
        node("b", free_tokens=500, capacity_tokens=3000, rank_tokens=3000),
        gpus=(gpu("G0", 40),),
        spec=SHAPED,
    )
    assert (told["free_tokens"], told["capacity_tokens_max"]) == (1500, 3000)


def test_room_by_the_shape_where_no_page_tells():
    """40 GiB free at 131 072 bytes a token are 327 680 tokens, cut to three digits."""
    assert readings(node("a", "G0"), gpus=(gpu("G0", 40),), spec=SHAPED)["free_tokens"] == 327_000


@pytest.mark.parametrize("spec", [SPEC, SHAPED.model_copy(update={"preallocates": True})], ids=["no shape", "memory taken beforehand"])
def test_room_that_nobody_can_tell_is_unknown(spec):
    """Without a shape, or where the engine took all memory beforehand, free memory says nothing about tokens."""
    assert "free_tokens" not in readings(node("a", "G0"), gpus=(gpu("G0", 40),), spec=spec)


def test_room_as_declared_where_only_the_share_is_told():
    """A cache declared as 10 000 tokens, a quarter in use: 7500 are free, and 10 000 is the largest request."""
    told = readings(node("a", kv=0.25), spec=ModelSpec(id="m", kv_tokens=10_000))
    assert (told["free_tokens"], told["capacity_tokens_max"]) == (7500, 10_000)


def test_what_is_ours_of_the_used_room_is_held():
    """On two live nodes 3000 and 1000 of our tokens are in the caches: the limit allows these on top of the free room."""
    own = Own(
        {("a", "m"): Standing(holding=Holding(2, 5000, 3000.0)), ("b", "m"): Standing(holding=Holding(1, 1000, 1000.0))},
        {"m": Holding(3, 6000)},
    )
    assert readings(node("a", free_tokens=1000), node("b", free_tokens=500), own=own)["held_tokens"] == 4000


def test_what_is_held_on_a_node_that_is_gone_shuts_nobody_out():
    """8 requests with 80 000 tokens hang on a dead node: the limits count them, so they allow as much more."""
    dead = Node("b", ("m",), age_ms=5000.0)
    own = Own(
        {("a", "m"): Standing(max_in_flight=8), ("b", "m"): Standing(max_in_flight=8, holding=Holding(8, 80_000, 0.0))},
        {"m": Holding(8, 80_000)},
    )
    told = readings(node("a", free_tokens=90_000, capacity_tokens=100_000, rank_tokens=100_000), dead, own=own)

    assert (told["held_tokens"], told["max_in_flight"]) == (80_000, 16)


def test_models_of_one_engine_share_its_room():
    """Two names of one engine: what leases of the one hold is held of the other's room, too, and they are one pool."""
    models = {"m": SPEC, "n": ModelSpec(id="n"), "other": ModelSpec(id="other")}
    shared = Node("a", ("n", "m"), readings={model: Reading(kv_ratio=0.5, waiting=0, free_tokens=1000) for model in "mn"}, age_ms=1.0)
    own = Own({("a", "m"): Standing(holding=Holding(1, 500, 500.0))}, {"m": Holding(1, 500)})
    told = build_view(Snapshot(1, (shared,)), models, stale_ms=1000, own=own).models

    assert [told[model].readings["held_tokens"] for model in "mn"] == [500, 500]
    assert [told[model].pool for model in models] == ["m", "m", "other"]


def test_a_cache_keeps_its_size_while_its_node_is_silent():
    """Without a live node the size last told stands, so that a large request is not refused for good."""
    silent = Node("a", ("m",), readings={"m": Reading(kv_ratio=0.5, waiting=0, rank_tokens=1_000_000)}, age_ms=5000.0)
    assert readings(silent)["capacity_tokens_max"] == 1_000_000


def test_a_frozen_node_leaves_its_model():
    """It is counted, and its gauges enter no aggregate."""
    one = view(node("a", kv=0.99), node("b", kv=0.25), own=Own({("a", "m"): Standing("frozen")}))
    told = one.models["m"].readings

    assert (told["live"], told["known"], told["frozen"], told["kv_max"]) == (1, 2, 1, 0.25)
    assert one.models["m"].nodes == ("b",)


def test_an_avoided_node_is_live_and_gets_nothing():
    """What it tells counts, since work runs there; only the choice of a node leaves it out."""
    model = view(node("a", kv=0.9), node("b", kv=0.5), own=Own({("b", "m"): Standing(avoided_by=({"rule": "r"},))})).models["m"]

    assert (model.readings["live"], model.readings["avoided"], model.nodes, model.live) == (2, 1, ("a",), True)


def test_controllers_of_all_nodes_make_one_limit():
    """Maxima in flight are summed, shares of admission are averaged; without one of them nobody knows the whole."""
    own = {("a", "m"): Standing(max_in_flight=30, admission=1.0), ("b", "m"): Standing(max_in_flight=10, admission=0.5)}
    told = readings(node("a"), node("b"), own=Own(own))
    assert (told["max_in_flight"], told["admission"]) == (40, 0.75)

    assert "max_in_flight" not in readings(node("a"), node("b"), own=Own({("a", "m"): own["a", "m"]}))
