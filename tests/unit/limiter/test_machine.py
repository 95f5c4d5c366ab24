"""Random histories of a limiter against a slow, exact one that keeps every number as a fraction and every lease in a list."""

from collections.abc import Coroutine
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.errors import NotFound
from app.limiter.charge import Bucket, Charge, Usage
from app.limiter.errors import LeaseEnded
from tests.unit.limiter.conftest import SCOPE, Desk, bucket

KEEP_MS = 60_000
TTL_MS = 30_000
PERIOD_MS = {"qps": 1000, "tpm": 60_000}
LIMITED = (
    bucket("qps", 3, "site", ()),
    bucket("qps", 0.5, burst=2.0),
    bucket("tpm", 7001, burst=6007.0),
    bucket("tpm", 977, "tenant_model", ("a", "m"), burst=911.0, factor=0.7),
    bucket("concurrency", 3, factor=1.5),
    bucket("tokens_in_flight", 3000, factor=0.9),
    bucket("request_tokens", 900),
)
NEAR = Fraction(1, 100)
"""Milliseconds within which float and fraction may decide either way; histories that come so near are not judged there."""


def run(step: Coroutine[Any, Any, Any]) -> Any:
    """Run a step of the limiter, which must end without waiting for anything."""
    try:
        step.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a step of the limiter waited")


@dataclass
class ExactLease:
    charge: Charge
    admitted_ms: Fraction
    expires_ms: Fraction
    paid_ms: dict[Bucket, Fraction] = field(default_factory=dict)
    least_paid_ms: dict[Bucket, Fraction] = field(default_factory=dict)
    live: bool = True
    ended_ms: Fraction = Fraction(0)
    how: str = "live"
    report: Usage | None = None


@dataclass
class Slot:
    """Charges admitted near to each other."""

    first_ms: Fraction
    last_ms: Fraction
    charged_ms: Fraction


@dataclass
class Exact:
    """What the limiter promises, written down without regard to speed."""

    now_ms: Fraction = Fraction(0)
    full_at_ms: dict[Bucket, Fraction] = field(default_factory=lambda: dict.fromkeys(LIMITED, Fraction(0)))
    slots: dict[Bucket, list[Slot]] = field(default_factory=lambda: {limited: [] for limited in LIMITED})
    leases: list[ExactLease] = field(default_factory=list)
    ended: dict[Bucket, list[tuple[int, Fraction]]] = field(default_factory=lambda: {limited: [] for limited in LIMITED})
    """Of each bucket that is held: units and how long they were, of every call that ran and ended."""
    moved_ms: dict[Bucket, Fraction] = field(default_factory=dict)

    def window_ms(self, limited: Bucket) -> Fraction:
        return self.capacity(limited) * self.interval_ms(limited)

    def interval_ms(self, limited: Bucket) -> Fraction:
        return PERIOD_MS[limited.dimension] / Fraction(limited.limit)

    def capacity(self, limited: Bucket) -> Fraction:
        return Fraction(limited.burst if limited.burst is not None else max(1, limited.limit))

    def price_ms(self, limited: Bucket, cost: int) -> Fraction:
        return min(self.capacity(limited), cost / Fraction(limited.factor)) * self.interval_ms(limited)

    def held(self, limited: Bucket, tokens: int) -> int:
        return 1 if limited.dimension == "concurrency" else min(int(limited.limit), -(-tokens // Fraction(limited.factor)))

    def ceiling(self, limited: Bucket) -> int:
        return int(limited.limit * Fraction(limited.factor)) if limited.dimension == "concurrency" else int(limited.limit)

    def holding(self, limited: Bucket, at_ms: Fraction | None = None) -> int:
        """What leases hold now, or of that at a later time if nothing but time passes."""
        return sum(
            self.held(limited, lease.charge.prompt_tokens + lease.charge.max_tokens)
            for lease in self.leases
            if lease.live and limited in lease.charge.buckets and (at_ms is None or lease.expires_ms > at_ms)
        )

    def lacking(self, limited: Bucket, tokens: int) -> Fraction | None:
        """Above 0 where the bucket refuses (in ms or units); None where it refuses for good."""
        if limited.dimension == "request_tokens":
            return None if tokens > limited.limit else Fraction(0)
        if limited.dimension in PERIOD_MS:
            cost = tokens if limited.dimension == "tpm" else 1
            if cost > self.capacity(limited):
                return None
            used_ms = max(Fraction(0), self.full_at_ms[limited] - self.now_ms)
            return used_ms + self.price_ms(limited, cost) - self.window_ms(limited)
        if limited.dimension == "tokens_in_flight" and tokens > limited.limit:
            return None
        return Fraction(self.holding(limited) + self.held(limited, tokens) - self.ceiling(limited))

    def spend(self, charge: Charge) -> None:
        lease = ExactLease(charge, self.now_ms, self.now_ms + TTL_MS)
        for limited in charge.buckets:
            if limited.dimension in PERIOD_MS:
                cost = charge.prompt_tokens + charge.max_tokens if limited.dimension == "tpm" else 1
                lease.paid_ms[limited] = lease.least_paid_ms[limited] = self.price_ms(limited, cost)
                self.full_at_ms[limited] = max(self.now_ms, self.full_at_ms[limited]) + lease.paid_ms[limited]
                self.admit(limited, lease.paid_ms[limited])
            self.moved_ms[limited] = self.now_ms
        self.leases.append(lease)

    def admit(self, limited: Bucket, cost_ms: Fraction) -> None:
        """Slots are a sixteenth of a window wide at most, and kept for two windows."""
        slots, window_ms = self.slots[limited], self.window_ms(limited)
        if slots and self.now_ms - slots[-1].first_ms < window_ms / 16:
            slots[-1].last_ms = self.now_ms
            slots[-1].charged_ms += cost_ms
        else:
            slots[:] = [slot for slot in slots if slot.last_ms >= self.now_ms - 2 * window_ms]
            slots.append(Slot(self.now_ms, self.now_ms, cost_ms))

    def slots_since(self, limited: Bucket, lease: ExactLease) -> list[Slot]:
        """The slot of a lease and all after it; none where it is not kept any more."""
        slots = [slot for slot in self.slots[limited] if slot.last_ms >= lease.admitted_ms]
        return slots if slots and slots[0].first_ms <= lease.admitted_ms else []

    def refund(self, limited: Bucket, lease: ExactLease, wanted_ms: Fraction) -> None:
        """Give back, but leave the bucket where a full one would be by what was admitted since, without this lease."""
        slots = self.slots_since(limited, lease)
        if not slots:
            return
        others_ms = [slot.charged_ms for slot in slots]
        others_ms[0] -= lease.paid_ms[limited]
        least_ms = max(self.now_ms, *(slot.last_ms + sum(others_ms[index:]) for index, slot in enumerate(slots)))
        given_ms = max(Fraction(0), min(wanted_ms, self.full_at_ms[limited] - least_ms))
        self.full_at_ms[limited] -= given_ms
        slots[0].charged_ms -= given_ms
        lease.paid_ms[limited] -= given_ms
        lease.least_paid_ms[limited] = min(lease.least_paid_ms[limited], lease.paid_ms[limited])

    def correct(self, lease: ExactLease, tokens: int) -> None:
        for limited, paid_ms in tuple(lease.paid_ms.items()):
            if limited.dimension == "tpm":
                delta_ms = self.price_ms(limited, tokens) - paid_ms
                if delta_ms > 0:
                    start_ms = max(self.now_ms, self.full_at_ms[limited])
                    delta_ms = max(Fraction(0), min(delta_ms, self.now_ms + 2 * self.window_ms(limited) - start_ms))
                    self.full_at_ms[limited] = start_ms + delta_ms
                    lease.paid_ms[limited] += delta_ms
                    for slot in self.slots_since(limited, lease)[:1]:
                        slot.charged_ms += delta_ms
                else:
                    self.refund(limited, lease, -delta_ms)

    def end(self, lease: ExactLease, how: str) -> None:
        if lease.live:
            self.free(lease, self.now_ms, ran=how != "cancelled")
        lease.how = how

    def free(self, lease: ExactLease, ended_ms: Fraction, *, ran: bool) -> None:
        lease.live, lease.ended_ms = False, ended_ms
        for limited in lease.charge.buckets:
            self.moved_ms[limited] = ended_ms
            if ran:
                units = self.held(limited, lease.charge.prompt_tokens + lease.charge.max_tokens)
                self.ended[limited].append((units, ended_ms - lease.admitted_ms))

    def room_in_ms(self, limited: Bucket, lacking: Fraction) -> Fraction | None:
        """The usual time or that of standing still, whichever is longer, up to the last end that is needed. Before any end, only that, when it is near."""
        weights = [units * Fraction(31, 32) ** age for age, (units, _) in enumerate(reversed(self.ended[limited]))]
        held_ms = [held_ms for _, held_ms in reversed(self.ended[limited])]
        mean_ms = sum(weight * ms for weight, ms in zip(weights, held_ms, strict=True)) / sum(weights) if weights else Fraction(0)
        usual_ms = lacking / self.holding(limited) * mean_ms
        ends_ms = sorted(-(-lease.expires_ms // 100) * 100 for lease in self.leases if lease.live and limited in lease.charge.buckets)
        room = self.holding(limited) - lacking
        end_ms = next(end_ms for end_ms in ends_ms if self.holding(limited, Fraction(end_ms)) <= room)
        likely_ms, latest_ms = max(usual_ms, self.now_ms - self.moved_ms[limited]), end_ms - self.now_ms
        return max(Fraction(1), min(likely_ms, latest_ms)) if weights or likely_ms >= latest_ms else None

    def advance(self, ms: Fraction) -> None:
        self.now_ms += ms
        for lease in sorted(self.leases, key=lambda lease: (lease.expires_ms, lease.charge.lease_id)):
            if lease.live and lease.expires_ms <= self.now_ms:
                self.free(lease, lease.expires_ms, ran=True)
                lease.how = "expired"
        self.leases = [lease for lease in self.leases if lease.live or lease.ended_ms + KEEP_MS > self.now_ms]


class LimiterMachine(RuleBasedStateMachine):
    """Every answer of the limiter is the exact one's."""

    picks: ClassVar = st.integers(0, 10**6)

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(keep_ms=KEEP_MS)
        self.exact = Exact()
        self.gone: list[str] = []
        self.windows_ms = {limited: self.exact.window_ms(limited) for limited in LIMITED if limited.dimension in PERIOD_MS}
        self.admitted: list[ExactLease] = []

    def pick(self, index: int) -> ExactLease:
        return self.exact.leases[index % len(self.exact.leases)]

    @rule(ms=st.sampled_from([0, 1, 7, 250, 1000, 4000, 10_000, 29_999, 30_000, 60_000]))
    def advance(self, ms: int) -> None:
        known = {lease.charge.lease_id for lease in self.exact.leases}
        self.desk.clock.advance(ms)
        self.exact.advance(Fraction(ms))
        self.gone += known - {lease.charge.lease_id for lease in self.exact.leases}

    @rule(
        prompt=st.integers(0, 500),
        completion=st.integers(1, 600),
        chosen=st.sets(st.sampled_from(range(len(LIMITED))), min_size=1),
    )
    def spend(self, prompt: int, completion: int, chosen: set[int]) -> None:
        charge = self.desk.charge(*[LIMITED[index] for index in sorted(chosen)], prompt_tokens=prompt, max_tokens=completion, ttl_ms=TTL_MS)
        lacking = {limited: self.exact.lacking(limited, prompt + completion) for limited in charge.buckets}
        before = run(self.desk.limiter.usage("a"))
        answer = run(self.desk.limiter.spend(charge))
        refused = {refusal.bucket: refusal for refusal in answer.refusals}
        for limited, lack in lacking.items():
            if lack is not None and limited.dimension in PERIOD_MS and abs(lack) < NEAR:
                continue
            assert (limited in refused) == (lack is None or lack > 0)
            if lack is not None and limited in refused:
                self.told_in_time(limited, lack, refused[limited].frees_in_ms)
        assert answer.admitted == (not refused)
        if answer.admitted:
            self.exact.spend(charge)
            self.admitted.append(self.exact.leases[-1])
        else:
            touched = {level.bucket for level in before}
            assert [level for level in run(self.desk.limiter.usage("a")) if level.bucket in touched] == list(before)

    def told_in_time(self, limited: Bucket, lack: Fraction, frees_in_ms: float | None) -> None:
        """A rate tells its exact wait, a hold the one that the ends of all before it make likely."""
        wait_ms = lack if limited.dimension in PERIOD_MS else self.exact.room_in_ms(limited, lack)
        assert (wait_ms is None) == (frees_in_ms is None)
        if wait_ms is not None and frees_in_ms is not None:
            assert abs(frees_in_ms - wait_ms) <= 1 + NEAR

    @precondition(lambda self: self.exact.leases)
    @rule(index=picks, prompt=st.integers(0, 600), completion=st.integers(0, 2000))
    def settle(self, index: int, prompt: int, completion: int) -> None:
        lease, usage = self.pick(index), Usage(prompt, completion)
        call = self.desk.limiter.settle(lease.charge.lease_id, SCOPE, usage)
        if lease.how == "cancelled":
            self.refuses(LeaseEnded, call)
            return
        settlement = run(call)
        assert settlement.repeated == (lease.report == usage)
        assert settlement.tokens_charged == prompt + completion
        if not settlement.repeated:
            assert settlement.freed == lease.live
            self.exact.correct(lease, prompt + completion)
            lease.report = usage
        self.exact.end(lease, "settled")

    @precondition(lambda self: self.exact.leases)
    @rule(index=picks)
    def settle_again(self, index: int) -> None:
        lease = self.pick(index)
        if lease.report is not None:
            assert run(self.desk.limiter.settle(lease.charge.lease_id, SCOPE, lease.report)).repeated

    @precondition(lambda self: self.exact.leases)
    @rule(index=picks)
    def cancel(self, index: int) -> None:
        lease = self.pick(index)
        call = self.desk.limiter.cancel(lease.charge.lease_id, SCOPE)
        if lease.how == "settled":
            self.refuses(LeaseEnded, call)
            return
        run(call)
        if lease.how != "cancelled":
            for limited, paid_ms in tuple(lease.paid_ms.items()):
                self.exact.refund(limited, lease, paid_ms)
            self.exact.end(lease, "cancelled")

    @precondition(lambda self: self.exact.leases)
    @rule(index=picks, ttl_ms=st.sampled_from([1, 15_000, 30_000, 90_000]))
    def renew(self, index: int, ttl_ms: int) -> None:
        lease = self.pick(index)
        call = self.desk.limiter.renew(lease.charge.lease_id, SCOPE, ttl_ms)
        if lease.live:
            assert run(call) == ttl_ms
            lease.expires_ms = self.exact.now_ms + ttl_ms
        else:
            self.refuses(LeaseEnded, call)

    @precondition(lambda self: self.exact.leases)
    @rule(index=picks)
    def release(self, index: int) -> None:
        lease = self.pick(index)
        call = self.desk.limiter.release(lease.charge.lease_id)
        if lease.live:
            run(call)
            self.exact.end(lease, "released")
        else:
            self.refuses(LeaseEnded, call)

    @precondition(lambda self: self.gone)
    @rule(index=picks)
    def forgotten(self, index: int) -> None:
        lease_id = self.gone[index % len(self.gone)]
        self.refuses(NotFound, self.desk.limiter.settle(lease_id, SCOPE, Usage(1, 1)))

    def refuses(self, error: type[Exception], call: Coroutine[Any, Any, Any]) -> None:
        try:
            run(call)
        except error:
            return
        raise AssertionError(f"expected {error.__name__}")

    @invariant()
    def holds_are_those_of_live_leases(self) -> None:
        live = {lease.charge.lease_id for lease in self.exact.leases if lease.live}
        assert {lease.lease_id for lease in run(self.desk.limiter.leases())} == live
        for level in run(self.desk.limiter.usage("a")):
            if level.bucket.dimension in ("concurrency", "tokens_in_flight"):
                assert level.remaining == self.exact.ceiling(level.bucket) - self.exact.holding(level.bucket)

    @invariant()
    def rates_are_the_exact_ones(self) -> None:
        for level in run(self.desk.limiter.usage("a")):
            if level.bucket.dimension in PERIOD_MS:
                used_ms = max(Fraction(0), self.exact.full_at_ms[level.bucket] - self.exact.now_ms)
                assert abs(level.reset_ms - used_ms) <= 1 + NEAR
                left = (self.exact.window_ms(level.bucket) - used_ms) / self.exact.interval_ms(level.bucket)
                assert -NEAR <= max(Fraction(0), left) - Fraction(level.remaining) + NEAR <= 1 + 2 * NEAR

    @invariant()
    def no_stretch_passes_more_than_capacity_and_refill(self) -> None:
        """What a stretch admitted, less what was ever given back of that; what a report adds later is no admission."""
        for limited, window_ms in self.windows_ms.items():
            excess_ms, last_ms = Fraction(0), Fraction(0)
            for lease in self.admitted:
                if limited in lease.least_paid_ms:
                    # The largest sum of any stretch that ends here, less the time it took (Kadane's scan).
                    excess_ms = max(Fraction(0), excess_ms - (lease.admitted_ms - last_ms))
                    excess_ms += lease.least_paid_ms[limited]
                    last_ms = lease.admitted_ms
                    assert excess_ms <= window_ms + NEAR

    def teardown(self) -> None:
        """When all is over, everything held is free and every bucket is full."""
        self.advance(120_000)
        self.advance(120_000)
        assert run(self.desk.limiter.leases()) == ()
        for level in run(self.desk.limiter.usage("a")):
            full = self.exact.ceiling(level.bucket) if level.bucket.dimension not in PERIOD_MS else self.exact.capacity(level.bucket)
            assert level.remaining == full


TestLimiterMachine = LimiterMachine.TestCase
TestLimiterMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
