"""What is in flight by node and model: every lease counted once from its beginning to its end, however it ends."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.errors import NotFound
from app.limiter.charge import Usage
from app.limiter.errors import LeaseEnded, LeaseRecordsFull
from app.limiter.in_flight import MOST_AT_REST, Held
from tests.unit.limiter.conftest import SCOPE, Desk, bucket
from tests.unit.limiter.test_machine import run

NODES = ("vllm-0", "vllm-1", None)
MODELS = ("m", "n")
KEEP_MS = 60_000


async def settled(desk: Desk, outcome: str, **rest: Any) -> None:
    """One call on vllm-0 from its beginning to its report."""
    charge = desk.charge(**{"node": "vllm-0"} | rest)
    await desk.limiter.spend(charge)
    await desk.limiter.settle(charge.lease_id, SCOPE, Usage(1, 1, outcome=outcome))


async def test_a_lease_holds_what_it_reserved_on_its_node(desk: Desk) -> None:
    """Prompt and most output count at the node of the lease alone, and for its model wherever it runs."""
    await desk.spend(node="vllm-0", prompt_tokens=10, max_tokens=50)
    await desk.spend(node="vllm-0", prompt_tokens=0, max_tokens=0)
    await desk.spend(node=None, prompt_tokens=5, max_tokens=5)

    assert desk.limiter.in_flight("vllm-0", "m") == Held(requests=2, tokens=61)
    assert desk.limiter.in_flight("vllm-1", "m") == Held()
    assert desk.limiter.in_flight(None, "m") == Held(requests=1, tokens=10)
    assert desk.limiter.held_tokens() == {"m": 71}


async def test_a_refused_request_is_not_in_flight(desk: Desk) -> None:
    """Only what was admitted counts."""
    assert not (await desk.spend(bucket("concurrency", 0), node="vllm-0")).admitted
    assert desk.limiter.in_flight("vllm-0", "m") == Held()


async def test_a_lease_past_its_time_is_out_of_flight_at_once(desk: Desk) -> None:
    """Whoever asks is told what is true now, also where nothing has been decided since."""
    await desk.spend(node="vllm-0", ttl_ms=1000)
    desk.clock.advance(1000)

    assert desk.limiter.in_flight("vllm-0", "m") == Held()
    assert desk.limiter.held_tokens() == {}


@pytest.mark.parametrize(
    ("outcomes", "failures"),
    [
        (["failed"], 1),
        (["failed", "timeout", "failed"], 3),
        (["failed", "aborted", "timeout"], 2),
        (["failed", "failed", "completed"], 0),
        (["completed", "failed"], 1),
        (["aborted"], 0),
    ],
)
async def test_failures_are_counted_in_a_row(desk: Desk, outcomes: list[str], failures: int) -> None:
    """Failed and timed out calls add up until one completes; what the client gave up says nothing of the node."""
    for outcome in outcomes:
        await settled(desk, outcome)
    assert desk.limiter.in_flight("vllm-0", "m") == Held(failures=failures)


async def test_a_failure_counts_for_its_node_and_model_alone(desk: Desk) -> None:
    """Neighbours, other models of the node, and calls that no node was named for have failures of their own or none."""
    await settled(desk, "failed")
    await settled(desk, "failed", node=None)
    await settled(desk, "failed", model="n")

    assert desk.limiter.in_flight("vllm-0", "m").failures == 1
    assert desk.limiter.in_flight("vllm-1", "m").failures == 0
    assert desk.limiter.in_flight(None, "m").failures == 0


async def test_a_report_repeated_or_corrected_counts_its_failure_once(desk: Desk) -> None:
    """The first report says how the call went, also one that comes after the lease expired; later ones correct tokens."""
    charge = desk.charge(node="vllm-0")
    await desk.limiter.spend(charge)
    desk.clock.advance(30_000)
    for tokens in (5, 5, 6):
        await desk.limiter.settle(charge.lease_id, SCOPE, Usage(1, tokens, outcome="timeout"))
    assert desk.limiter.in_flight("vllm-0", "m") == Held(failures=1)


async def test_nodes_that_are_gone_leave_nothing_behind(desk: Desk) -> None:
    """What holds nothing and has not failed is forgotten at once; of those that failed the newest are kept, and all that hold."""
    await settled(desk, "failed", node="busy")
    await desk.spend(node="busy", ttl_ms=3_600_000)
    for number in range(2 * MOST_AT_REST):
        await settled(desk, "completed", node=f"good-{number}")
        await settled(desk, "failed", node=f"bad-{number}")

    assert len(desk.limiter._in_flight._counts) == MOST_AT_REST + 1
    assert desk.limiter.in_flight("busy", "m") == Held(1, 60, 1)
    assert desk.limiter.in_flight("bad-0", "m").failures == 0
    assert desk.limiter.in_flight(f"bad-{2 * MOST_AT_REST - 1}", "m").failures == 1
    assert list(desk.limiter.busy()) == [("busy", "m")]


@dataclass
class Kept:
    """A lease as one who looks at all of them sees it."""

    lease_id: str
    node: str | None
    model: str
    tokens: int
    expires_ms: float
    live: bool = True
    cancelled: bool = False
    report: Usage | None = None


class InFlightMachine(RuleBasedStateMachine):
    """Counts are those of one who goes through all leases, whatever becomes of them; old records are dropped on the way."""

    picks = st.integers(0, 10**6)

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(keep_ms=KEEP_MS, records_bytes=12_000)
        self.leases: list[Kept] = []
        self.failures = {(node, model): 0 for node in NODES for model in MODELS}

    def known(self, index: int) -> Kept:
        return self.leases[index % len(self.leases)]

    @rule(ms=st.sampled_from([0, 1, 999, 1000, 30_000]))
    def advance(self, ms: int) -> None:
        self.desk.clock.advance(ms)
        for lease in self.leases:
            lease.live = lease.live and lease.expires_ms > self.desk.clock.monotonic_ms()

    @rule(
        place=st.tuples(st.sampled_from(NODES), st.sampled_from(MODELS)),
        tokens=st.tuples(st.integers(0, 500), st.integers(0, 500)),
        ttl_ms=st.sampled_from([1000, 30_000]),
        refused=st.booleans(),
    )
    def spend(self, place: tuple[str | None, str], tokens: tuple[int, int], ttl_ms: int, refused: bool) -> None:
        (node, model), (prompt, completion) = place, tokens
        limits = [bucket("tokens_in_flight", 1000, "model", (model,)), bucket("concurrency", 0 if refused else 5, "model", (model,))]
        charge = self.desk.charge(*limits, node=node, model=model, prompt_tokens=prompt, max_tokens=completion, ttl_ms=ttl_ms)
        try:
            admitted = run(self.desk.limiter.spend(charge)).admitted
        except LeaseRecordsFull:
            return
        if admitted:
            expires_ms = self.desk.clock.monotonic_ms() + ttl_ms
            self.leases.append(Kept(charge.lease_id, node, model, max(1, prompt + completion), expires_ms))

    @precondition(lambda self: self.leases)
    @rule(index=picks, outcome=st.sampled_from(["completed", "failed", "timeout", "aborted"]), tokens=st.integers(0, 2000))
    def settle(self, index: int, outcome: str, tokens: int) -> None:
        lease, usage = self.known(index), Usage(1, tokens, outcome=outcome)
        try:
            run(self.desk.limiter.settle(lease.lease_id, SCOPE, usage))
        except (NotFound, LeaseEnded):
            assert not lease.live
            return
        assert not lease.cancelled
        if lease.report is None and lease.node is not None:
            if outcome in ("failed", "timeout"):
                self.failures[lease.node, lease.model] += 1
            elif outcome == "completed":
                self.failures[lease.node, lease.model] = 0
        lease.live, lease.report = False, usage

    @precondition(lambda self: self.leases)
    @rule(index=picks)
    def cancel(self, index: int) -> None:
        lease = self.known(index)
        try:
            run(self.desk.limiter.cancel(lease.lease_id, SCOPE))
        except (NotFound, LeaseEnded):
            assert not lease.live
            return
        lease.live, lease.cancelled = False, True

    @precondition(lambda self: self.leases)
    @rule(index=picks)
    def release(self, index: int) -> None:
        lease = self.known(index)
        try:
            run(self.desk.limiter.release(lease.lease_id))
        except (NotFound, LeaseEnded):
            assert not lease.live
            return
        lease.live = False

    @precondition(lambda self: self.leases)
    @rule(index=picks, ttl_ms=st.sampled_from([1000, 60_000]))
    def renew(self, index: int, ttl_ms: int) -> None:
        lease = self.known(index)
        try:
            run(self.desk.limiter.renew(lease.lease_id, SCOPE, ttl_ms))
        except (NotFound, LeaseEnded):
            assert not lease.live
            return
        lease.expires_ms = self.desk.clock.monotonic_ms() + ttl_ms

    @invariant()
    def counts_are_those_of_all_leases(self) -> None:
        live = [lease for lease in self.leases if lease.live]
        for (node, model), failures in self.failures.items():
            tokens = [lease.tokens for lease in live if (lease.node, lease.model) == (node, model)]
            assert self.desk.limiter.in_flight(node, model) == Held(len(tokens), sum(tokens), failures)
        held = {model: sum(lease.tokens for lease in live if lease.model == model) for model in MODELS}
        assert self.desk.limiter.held_tokens() == {model: tokens for model, tokens in held.items() if tokens}
        assert set(self.desk.limiter.busy()) == {(lease.node, lease.model) for lease in live}

    def teardown(self) -> None:
        """When all is over nothing is in flight."""
        self.advance(60_000)
        self.desk.clock.advance(60_000)
        assert self.desk.limiter.held_tokens() == {}
        assert list(self.desk.limiter.busy()) == []


TestInFlightMachine = InFlightMachine.TestCase
TestInFlightMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
