"""Where a request runs: what was admitted since the page counts, so that one snapshot does not send everybody to one node."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from app.catalog.models import ModelSpec
from app.decision.request import DecideRequest
from app.decision.route import node_for
from app.limiter.in_flight import Held
from app.telemetry.build_view import build_view
from app.telemetry.snapshot import Node, Reading, Snapshot
from app.telemetry.view import ModelView, Own, Standing

REQUEST = DecideRequest(tenant="t", model="m")


def node(name: str, kv: float | None = 0.0, waiting: int = 0, **more: int) -> Node:
    return Node(name, ("m",), max_num_seqs=10, readings={"m": Reading(kv_ratio=kv, waiting=waiting, **more)}, age_ms=1.0)


def view(*nodes: Node, own: Own | None = None) -> ModelView:
    spec = ModelSpec(id="m", signals=("waiting",))
    return build_view(Snapshot(1, nodes), {"m": spec}, stale_ms=1000, own=own).models["m"]


def spread(model: ModelView, calls: int, tokens: int = 100) -> Counter[str | None]:
    """How so many calls of one snapshot are spread, each of which holds so many tokens."""
    sent: Counter[str | None] = Counter()
    for _ in range(calls):
        sent[node_for(REQUEST, model, tokens, lambda name: Held(sent[name], sent[name] * tokens))] += 1
    return sent


def test_the_lowest_kv_is_the_best_ties_by_waiting_and_name() -> None:
    """With nothing admitted since the page, the page alone decides."""
    assert spread(view(node("b", 0.5), node("a", 0.4)), 1) == {"a": 1}
    assert spread(view(node("b", 0.4, 1), node("a", 0.4, 2)), 1) == {"b": 1}
    assert spread(view(node("b", 0.4), node("a", 0.4)), 1) == {"a": 1}


def test_a_burst_within_one_snapshot_is_spread_by_room() -> None:
    """Two empty caches, one three times as large as the other: of 80 calls 60 go to the larger."""
    assert spread(view(node("a", capacity_tokens=30_000), node("b", capacity_tokens=10_000)), 80) == {"a": 60, "b": 20}


def test_a_fuller_node_joins_when_the_others_have_caught_up() -> None:
    """At 0.5 and 0.0 of 10 000 tokens each, the first 50 calls of 100 tokens go to the empty one, and then both in turn."""
    assert spread(view(node("a", 0.5, capacity_tokens=10_000), node("b", capacity_tokens=10_000)), 60) == {"b": 55, "a": 5}


def test_without_the_size_of_the_cache_requests_count() -> None:
    """Where no page tells it, a request is taken for its share of the batch; without KV, too, the queue grows by it."""
    assert spread(view(node("a", 0.2), node("b", 0.0)), 6) == {"b": 4, "a": 2}
    assert spread(view(node("a", None, 2), node("b", None, 0)), 6) == {"b": 4, "a": 2}


def test_what_was_there_when_the_page_was_read_is_on_the_page() -> None:
    """Leases that the page has counted already are not counted twice."""
    own = Own({("a", "m"): Standing(shown_requests=50, shown_tokens=5000)})
    model = view(node("a", 0.4, capacity_tokens=10_000), node("b", 0.5, capacity_tokens=10_000), own=own)

    assert node_for(REQUEST, model, 1, lambda name: Held(50, 5000) if name == "a" else Held()) == "a"
    assert node_for(REQUEST, model, 1, lambda name: Held(65, 6500) if name == "a" else Held()) == "b"


def test_the_gateways_own_choice_stays() -> None:
    """A node that the gateway named is kept where it is live, however full; another name is as good as none."""
    model = view(node("a", 0.9), node("b", 0.1))
    assert node_for(REQUEST.model_copy(update={"node": "a"}), model, 1, lambda _: Held()) == "a"
    assert node_for(REQUEST.model_copy(update={"node": "x"}), model, 1, lambda _: Held()) == "b"


def test_nobody_is_live() -> None:
    """Without a live node there is no name."""
    assert node_for(REQUEST, view(), 1, lambda _: Held()) is None


def test_a_request_goes_where_it_fits() -> None:
    """5000 tokens don't go to an empty cache of 3200, nor where 1000 are left, but to a large and busier one with room."""
    model = view(
        node("small", 0.0, rank_tokens=3200, free_tokens=3200),
        node("full", 0.3, rank_tokens=64_000, free_tokens=1000),
        node("large", 0.5, rank_tokens=64_000, free_tokens=32_000),
    )
    assert node_for(REQUEST, model, 5000, lambda _: Held()) == "large"
    assert node_for(REQUEST, model, 40_000, lambda _: Held()) == "full"  # fits either cache once there is room; the emptier is the better
    assert node_for(REQUEST, model, 100, lambda _: Held()) == "small"


def test_what_was_admitted_since_takes_room() -> None:
    """1000 free tokens, 600 of them promised since the page: 500 more go elsewhere."""
    model = view(node("a", 0.0, free_tokens=1000), node("b", 0.5, free_tokens=1000))
    assert node_for(REQUEST, model, 500, lambda name: Held(1, 600) if name == "a" else Held()) == "b"


def room(capacity: int | None, kv: float | None) -> dict[str, int]:
    """The room of a cache of this size; its own rank is half of it."""
    if capacity is None:
        return {}
    return {"capacity_tokens": capacity, "rank_tokens": capacity // 2, "free_tokens": int(capacity * (1 - (kv or 0.0)))}


KV = st.none() | st.sampled_from([0.0, 0.1, 0.5])
PAGES = st.lists(
    st.tuples(KV, st.integers(0, 3), st.none() | st.sampled_from([1_000, 10_000]), st.integers(0, 20), st.integers(0, 3)), max_size=8
)


@given(PAGES, st.sampled_from([1, 800, 5_000, 20_000]))
def test_the_node_is_the_best_of_all(pages: list[tuple[float | None, int, int | None, int, int]], tokens: int) -> None:
    """However pages and leases stand, nobody that was not looked at would have been better."""
    nodes, held, before = [], {}, {}
    for number, (kv, waiting, capacity, requests, at_page) in enumerate(pages):
        name = f"n{number}"
        nodes.append(node(name, kv, waiting, **room(capacity, kv)))
        held[name] = Held(requests, requests * 100)
        before[name, "m"] = Standing(shown_requests=at_page, shown_tokens=at_page * 100)
    model = view(*nodes, own=Own(before))
    best = min(model.choices, key=lambda choice: choice.load(held[choice.node].requests, held[choice.node].tokens, tokens), default=None)

    assert node_for(REQUEST, model, tokens, lambda name: held[name]) == (best.node if best else None)


def test_of_many_nodes_a_few_are_looked_at() -> None:
    """A hundred nodes of different pages cost a decision no more than the one that is empty."""
    model, looked = view(*(node(f"n{number:02}", number / 100) for number in range(100))), []

    def held(name: str) -> Held:
        looked.append(name)
        return Held()

    assert node_for(REQUEST, model, 1, held) == "n00"
    assert looked == ["n00"]
