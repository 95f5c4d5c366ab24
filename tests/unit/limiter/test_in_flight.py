"""What is in flight by node and model: every lease counted once from its beginning to its end, however it ends."""

import itertools
from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.errors import NotFound
from app.limiter.charge import Usage
from app.limiter.errors import LeaseEnded, LeaseRecordsFull
from app.limiter.in_flight import MOST_REPORTS, Held, Report
from tests.unit.limiter.conftest import SCOPE, Desk, bucket
from tests.unit.limiter.test_machine import run

NODES = ("vllm-0", "vllm-1", None)
MODELS = ("m", "n")
KEEP_MS = 60_000


async def settled(desk: Desk, outcome: str, *, lasts_ms: int = 0, **rest: Any) -> None:
    """One call on vllm-0 from its beginning to its report."""
    charge = desk.charge(**{"node": "vllm-0"} | rest)
    await desk.limiter.spend(charge)
    desk.clock.advance(lasts_ms)
    await desk.limiter.settle(charge.lease_id, SCOPE, Usage(1, 1, outcome=outcome))


async def test_a_lease_holds_what_it_reserved_on_its_node(desk: Desk) -> None:
    """Prompt and most output count at the node of the lease alone, and for its model wherever it runs."""
    await desk.spend(node="vllm-0", prompt_tokens=10, max_tokens=50)
    await desk.spend(node="vllm-0", prompt_tokens=0, max_tokens=0)
    await desk.spend(node=None, prompt_tokens=5, max_tokens=5)

    assert desk.limiter.in_flight("vllm-0", "m") == Held(requests=2, tokens=61)
    assert desk.limiter.in_flight("vllm-1", "m") == Held()
    assert desk.limiter.in_flight(None, "m") == Held(requests=1, tokens=10)
    assert desk.limiter.by_model() == {"m": Held(3, 71)}


async def test_a_refused_request_is_not_in_flight(desk: Desk) -> None:
    """Only what was admitted counts."""
    assert not (await desk.spend(bucket("concurrency", 0), node="vllm-0")).admitted
    assert desk.limiter.in_flight("vllm-0", "m") == Held()


async def test_a_lease_past_its_time_is_out_of_flight_at_once(desk: Desk) -> None:
    """Whoever asks is told what is true now, also where nothing has been decided since."""
    await desk.spend(node="vllm-0", ttl_ms=1000)
    desk.clock.advance(1000)

    assert desk.limiter.in_flight("vllm-0", "m") == Held()
    assert desk.limiter.by_model() == {}


async def test_how_calls_ended_is_told_once_in_order(desk: Desk) -> None:
    """Whoever judges nodes gets each end with its node, model and time, and nothing of calls that no node was named for."""
    await settled(desk, "failed")
    await settled(desk, "completed", node=None)
    await settled(desk, "aborted", node="vllm-1", model="n", lasts_ms=250)

    assert desk.limiter.take_reports() == [Report("vllm-0", "m", "failed", 0.0), Report("vllm-1", "n", "aborted", 250.0)]
    assert desk.limiter.take_reports() == []


async def test_a_report_repeated_or_corrected_is_told_once(desk: Desk) -> None:
    """The first report says how the call went, also one that comes after the lease expired; later ones correct tokens."""
    charge = desk.charge(node="vllm-0")
    await desk.limiter.spend(charge)
    desk.clock.advance(30_000)
    for tokens in (5, 5, 6):
        await desk.limiter.settle(charge.lease_id, SCOPE, Usage(1, tokens, outcome="timeout"))
    assert desk.limiter.take_reports() == [Report("vllm-0", "m", "timeout", 30_000.0)]


async def test_nobody_who_takes_reports_makes_them_pile_up(desk: Desk) -> None:
    """The newest are kept, so many and no more; nodes that hold nothing leave nothing behind."""
    for number in range(MOST_REPORTS + 10):
        await settled(desk, "completed", node=f"node-{number}")

    assert desk.limiter._in_flight._places == {}
    assert [report.node for report in desk.limiter.take_reports()] == [f"node-{number}" for number in range(10, MOST_REPORTS + 10)]


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
        self.reports: list[tuple[str, str, str]] = []

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
            self.reports.append((lease.node, lease.model, outcome))
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
        for node, model in itertools.product(NODES, MODELS):
            tokens = [lease.tokens for lease in live if (lease.node, lease.model) == (node, model)]
            assert self.desk.limiter.in_flight(node, model) == Held(len(tokens), sum(tokens))
        assert [(one.node, one.model, one.outcome) for one in self.desk.limiter.take_reports()] == self.reports
        self.reports.clear()
        for model in MODELS:
            tokens = [lease.tokens for lease in live if lease.model == model]
            assert self.desk.limiter.by_model().get(model, Held()) == Held(len(tokens), sum(tokens))
        for node in filter(None, NODES):
            tokens = [lease.tokens for lease in live if lease.node == node]
            assert self.desk.limiter.on_node(node) == Held(len(tokens), sum(tokens))
        assert set(self.desk.limiter.busy()) == {(lease.node, lease.model) for lease in live}

    def teardown(self) -> None:
        """When all is over nothing is in flight."""
        self.advance(60_000)
        self.desk.clock.advance(60_000)
        assert self.desk.limiter.by_model() == {}
        assert list(self.desk.limiter.busy()) == []


TestInFlightMachine = InFlightMachine.TestCase
TestInFlightMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
