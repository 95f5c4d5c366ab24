"""What a replica knows of nodes: frozen ones get one probe, stale ones none, controllers follow the aims that rules name."""

from dataclasses import replace

import pytest

from app.clock import ManualClock
from app.limiter.charge import Charge, Usage
from app.limiter.memory import MemoryLimiter
from app.nodes.watch import NodeWatch
from app.observability.metrics import Metrics
from app.policy.node_answer import Avoid, NodeAnswer
from app.telemetry.snapshot import Node, Reading, Snapshot
from app.telemetry.view import Holding, Standing

A = ("a", "m")
FULL = {"kv_ratio": 0.99, "waiting": 15, "running": 106}
IDLE = {"kv_ratio": 0.0, "waiting": 0, "running": 0}


class Setting:
    """A watch over node `a` with model `m`, its limiter and the clock of both."""

    def __init__(self) -> None:
        self.clock, self.metrics = ManualClock(), Metrics()
        self.clock.advance(100_000)
        self.limiter = MemoryLimiter(self.clock, keep_ms=60_000, records_bytes=1 << 20, metrics=self.metrics)
        self.watch = NodeWatch(self.limiter, self.clock, self.metrics, stale_ms=1000)
        self.leases = 0
        self.steps = True

    def judge(self, *, age_ms: float | None = 50.0, still_ms: float | None = 0.0, max_num_seqs: int = 64, **reading: float) -> Standing:
        """One snapshot of the node as it is now, and what the watch makes of it."""
        told = {"m": Reading(still_ms=still_ms, **(reading or IDLE))}
        snapshot = Snapshot(1, (Node("a", ("m",), max_num_seqs=max_num_seqs, readings=told, age_ms=age_ms, steps=self.steps),))
        return self.watch.judge(snapshot, self.clock.monotonic_ms()).standings[A]

    async def lease(self) -> str:
        """A lease on the node."""
        self.leases += 1
        charge = Charge(lease_id=f"l{self.leases}", buckets=(), prompt_tokens=10, max_tokens=50, tenant="t", model="m", node="a")
        assert (await self.limiter.spend(charge)).admitted
        return charge.lease_id

    async def call(self, outcome: str) -> None:
        """One call on the node that ends so."""
        await self.limiter.settle(await self.lease(), "", Usage(10, 1, 0, outcome))

    def probes(self) -> float | None:
        return self.metrics.registry.get_sample_value("sluice_probes_total", {"node": "a"})


@pytest.fixture
def one() -> Setting:
    return Setting()


def test_a_frozen_page_gets_one_probe(one: Setting) -> None:
    """Gauges of a busy engine that stood still for 5 s, nothing of ours there: not live, and one caller may try."""
    assert one.judge(still_ms=4999.0, **FULL).why == ""
    assert one.watch.due("m") is None

    assert one.judge(still_ms=5000.0, **FULL).why == "frozen"
    assert one.watch.due("m") == "a"
    assert [one.watch.take("a", "m") for _ in range(3)] == [True, False, False]
    assert (one.watch.due("m"), one.probes()) == (None, 1)


def test_a_probe_that_was_not_sent_is_there_for_the_next(one: Setting) -> None:
    """Whoever gives it back leaves it to the next caller, at once and also after the next snapshot."""
    one.judge(still_ms=5000.0, **FULL)
    one.watch.take("a", "m")
    one.watch.give_back("a", "m")

    assert one.watch.due("m") == "a"
    one.judge(still_ms=5100.0, **FULL)
    assert one.watch.due("m") == "a"


def test_a_page_that_moves_ends_it(one: Setting) -> None:
    """The step that the probe brings moves the page: the node is live and due for nothing."""
    one.judge(still_ms=5000.0, **FULL)
    one.watch.take("a", "m")
    one.clock.advance(300)

    assert one.judge(still_ms=20.0, **IDLE).why == ""
    assert one.watch.due("m") is None


def test_the_next_probe_comes_after_10_s(one: Setting) -> None:
    """A node that stays frozen is tried again every 10 s, so that none is shut out for ever."""
    one.judge(still_ms=5000.0, **FULL)
    one.watch.take("a", "m")

    one.clock.advance(9999)
    one.judge(still_ms=14_999.0, **FULL)
    assert one.watch.due("m") is None
    one.clock.advance(1)
    one.judge(still_ms=15_000.0, **FULL)
    assert one.watch.due("m") == "a"


def test_nobody_is_sent_to_a_node_that_answers_nothing(one: Setting) -> None:
    """A page older than a second says that the engine is gone: its last gauges, frozen or idle, ask for no probe."""
    one.judge(still_ms=5000.0, **FULL)
    one.clock.advance(1000)

    assert one.judge(age_ms=1050.0, still_ms=6000.0, **FULL).why == ""
    assert one.watch.due("m") is None


async def test_work_of_ours_there_is_no_freeze(one: Setting) -> None:
    """While a lease of ours is in flight there, a still page may be a long prompt."""
    await one.lease()
    assert one.judge(still_ms=5000.0, **FULL).why == ""


async def test_the_idle_page_of_a_dead_engine_attracts_nothing(one: Setting) -> None:
    """Five calls in a row that failed under a page that does not move: not live, whatever its gauges say; one success ends it."""
    one.judge(still_ms=60_000.0)
    for _ in range(5):
        await one.call("timeout")
    one.judge(still_ms=60_000.0)
    one.clock.advance(1000)

    assert one.judge(still_ms=61_000.0).why == "failing"
    assert one.watch.due("m") == "a"
    await one.call("completed")
    assert one.judge(still_ms=61_100.0).why == ""


def test_without_aims_nothing_is_limited(one: Setting) -> None:
    """Before the rules have spoken, or where none names a set point, no controller speaks."""
    assert one.judge(**FULL) == Standing()


async def test_a_controller_follows_its_aims(one: Setting) -> None:
    """Far above the aim for KV, with our requests there, the maximum falls below what it was and the share of admission below 1."""
    one.watch.answered({A: NodeAnswer(set_points={"kv": 0.8})})
    for _ in range(100):
        await one.lease()
    first = one.judge(kv_ratio=0.5, waiting=0, running=100)
    assert (first.max_in_flight, first.admission) == (128, 1.0)

    for _ in range(30):
        one.clock.advance(100)
        later = one.judge(kv_ratio=0.99, waiting=0, running=100)

    assert later.max_in_flight is not None
    assert 1 <= later.max_in_flight < 100
    assert later.admission is not None
    assert later.admission < 1.0


def test_what_rules_say_is_in_the_next_view(one: Setting) -> None:
    """Avoidance and the size of the batch stand with the node, and whoever follows learns that something changed."""
    before = one.watch.version
    answer = NodeAnswer(avoid=(Avoid("isolation", "memory_full", "full"),), max_num_seqs_factor=0.3)
    one.watch.answered({A: answer})

    assert one.watch.version == before + 1
    told = one.judge(max_num_seqs=64)
    assert (told.avoid, told.max_num_seqs) == (True, 19)  # 64 x 0.3 = 19.2
    assert told.avoided_by == ({"rule": "isolation", "code": "memory_full", "message": "full"},)

    one.watch.answered({A: replace(answer)})
    assert one.watch.version == before + 1


async def test_what_our_leases_hold_is_told_by_model(one: Setting) -> None:
    """Two leases of 60 tokens hold 120 of the model, wherever they run."""
    await one.lease()
    await one.lease()
    assert one.watch.judge(Snapshot(1), 0.0).held == {"m": Holding(2, 120)}


async def test_what_fills_up_after_a_lease_is_its(one: Setting) -> None:
    """Of 60 tokens that a lease holds 40 have come into the cache since: so many are counted as there."""
    one.judge(free_tokens=1000)
    await one.lease()
    assert one.judge(free_tokens=1000).holding == Holding(1, 60, 0.0)
    assert one.judge(free_tokens=960).holding == Holding(1, 60, 40.0)


async def test_a_page_that_stands_still_shows_nothing_of_what_came_since(one: Setting) -> None:
    """Two calls were there when the page last moved; a third that came since is not on it, until it moves."""
    await one.lease()
    await one.lease()
    one.judge(still_ms=0.0)
    one.clock.advance(100)
    await one.lease()
    still = one.judge(still_ms=100.0)
    one.clock.advance(100)
    moved = one.judge(still_ms=20.0)

    assert (still.shown_requests, still.shown_tokens) == (2, 120)
    assert (moved.shown_requests, moved.shown_tokens) == (3, 180)


def test_an_engine_that_moves_with_calls_alone_is_never_frozen(one: Setting) -> None:
    """Where nothing on the page moves with each step, standing still says nothing."""
    one.steps = False
    assert one.judge(still_ms=20_000.0, **FULL).why == ""


def test_a_cache_that_keeps_what_may_be_used_again_is_no_work(one: Setting) -> None:
    """Nothing runs or waits: whatever the cache holds, an idle page may stand still."""
    assert one.judge(still_ms=20_000.0, kv_ratio=0.3, waiting=0, running=0).why == ""
    assert one.judge(still_ms=20_000.0, kv_ratio=0.3).why == "frozen"


def test_a_node_that_is_gone_leaves_no_count_of_probes(one: Setting) -> None:
    """However often nodes are renamed, the metrics have those of now alone."""
    one.judge(still_ms=5000.0, **FULL)
    one.watch.take("a", "m")
    assert one.probes() == 1
    one.watch.judge(Snapshot(2), one.clock.monotonic_ms())
    assert one.probes() is None


async def test_clients_that_give_up_on_a_dead_engine_tell_of_it(one: Setting) -> None:
    """Five calls whose clients left after 3 s, during which nothing on the page moved, are failures; under a page that moves they are not."""
    for still_ms, why in ((2_000.0, ""), (60_000.0, "failing")):
        one.judge(still_ms=still_ms)
        for _ in range(5):
            lease = await one.lease()
            one.clock.advance(3000)
            await one.limiter.settle(lease, "", Usage(10, 0, 0, "aborted"))
        one.judge(still_ms=still_ms)
        one.clock.advance(1000)
        assert one.judge(still_ms=still_ms + 1000).why == why


async def test_no_more_is_counted_as_cached_than_is_in_use(one: Setting) -> None:
    """A lease whose call never came is taken for cached after some seconds, but not beyond what the page says is in use."""
    one.judge(free_tokens=1000, capacity_tokens=1000)
    await one.lease()
    for _ in range(600):
        one.clock.advance(40)
        told = one.judge(free_tokens=990, capacity_tokens=1000)
    assert told.holding == Holding(1, 60, 10.0)
