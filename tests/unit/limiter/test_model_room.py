"""The room of a model's caches as a bucket: whatever comes between two readings is held together, and each reading moves the limit."""

from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.limiter.charge import Bucket, Usage
from app.limiter.in_flight import Held
from tests.unit.limiter.conftest import SCOPE, Desk, bucket
from tests.unit.limiter.test_machine import run


def room(tokens: float, most: float | None = None) -> Bucket:
    """The model's tokens in flight under one reading; `most` is what its caches would hold when empty."""
    return bucket("tokens_in_flight", tokens, "model", ("m",), burst=most)


def size(tokens: float) -> Bucket:
    """The largest request that any cache holds."""
    return bucket("request_tokens", tokens, "model", ("m",))


async def test_a_hundred_calls_under_one_reading_share_its_room(desk: Desk) -> None:
    """Of a hundred calls of 60 tokens under one limit of 1000, sixteen pass; each that settles lets exactly one more in."""
    reading = room(1000)
    charges = [desk.charge(reading, size(1000)) for _ in range(100)]
    admitted = [charge for charge in charges if (await desk.limiter.spend(charge)).admitted]
    assert len(admitted) == 16
    assert desk.limiter.by_model() == {"m": Held(16, 960)}

    for charge in admitted[:5]:
        await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10, 20))
    assert sum([(await desk.spend(reading, size(1000))).admitted for _ in range(100)]) == 5


async def test_what_was_admitted_is_held_until_its_end_however_little_it_used(desk: Desk) -> None:
    """A settled call gives back all that it held, also where it used more than it reserved, and once."""
    reading = room(100)
    charge = desk.charge(reading)
    await desk.limiter.spend(charge)
    for completion in (500, 20, 20):
        await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10, completion))
    assert (await desk.spend(reading, prompt_tokens=100, max_tokens=0)).admitted


async def test_a_lower_reading_takes_nothing_back_and_lets_nothing_in(desk: Desk) -> None:
    """With 600 tokens held and the limit fallen to 100, those run on; the next passes when less than 40 are held."""
    charges = [desk.charge(room(1000)) for _ in range(10)]
    for charge in charges:
        await desk.limiter.spend(charge)
    lower = room(100, most=1000)

    refused = (await desk.spend(lower)).refusals[0]
    assert (refused.observed, refused.bound, refused.over_capacity) == (660, 100, False)
    for charge in charges[:9]:
        assert not (await desk.spend(lower)).admitted
        await desk.limiter.settle(charge.lease_id, SCOPE, Usage(1, 1))
    assert not (await desk.spend(lower)).admitted
    await desk.limiter.settle(charges[9].lease_id, SCOPE, Usage(1, 1))
    assert (await desk.spend(lower)).admitted


async def test_a_refusal_waits_for_what_calls_take_and_not_for_what_leases_live(desk: Desk) -> None:
    """Ten calls hold all of 600 tokens and calls took 2 s until now: the next is told 200 ms, not the 30 s of a lease."""
    reading = room(600)
    first = desk.charge(reading)
    await desk.limiter.spend(first)
    desk.clock.advance(2000)
    await desk.limiter.settle(first.lease_id, SCOPE, Usage(10, 50))
    for _ in range(10):
        assert (await desk.spend(reading)).admitted

    assert (await desk.spend(reading)).refusals[0].frees_in_ms == 200


async def test_before_any_call_has_ended_no_wait_is_told(desk: Desk) -> None:
    """Where nothing can be computed, whoever answers the caller has a default for it."""
    await desk.spend(room(60))
    assert (await desk.spend(room(60))).refusals[0].frees_in_ms is None


async def test_gateways_that_never_settle_are_waited_for_as_long_as_their_leases_live(desk: Desk) -> None:
    """Where leases expire, their life is what calls take."""
    await desk.spend(room(60))
    desk.clock.advance(30_000)
    await desk.spend(room(60))
    assert (await desk.spend(room(60))).refusals[0].frees_in_ms == 30_000


async def test_larger_than_the_moment_waits_and_larger_than_any_cache_never_passes(desk: Desk) -> None:
    """150 tokens wait for a reading of 200 where caches hold that much; 250 are told that no waiting helps."""
    low, limit = room(100, most=200), size(200)
    waits = (await desk.spend(low, limit, prompt_tokens=100)).refusals
    assert [(refusal.bucket, refusal.over_capacity) for refusal in waits] == [(low, False)]
    never = (await desk.spend(low, limit, prompt_tokens=200)).refusals
    assert [(refusal.bucket, refusal.over_capacity, refusal.bound) for refusal in never] == [(low, True, 200), (limit, True, 200)]

    assert (await desk.spend(room(200, most=200), limit, prompt_tokens=100)).admitted


class RoomMachine(RuleBasedStateMachine):
    """A limit that moves with every reading never loses a hold, never counts one twice, and admits only what fits it then."""

    picks: ClassVar = st.integers(0, 10**6)

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk()
        self.reading = self.room(1000)
        self.held: dict[str, int] = {}

    def room(self, tokens: float) -> list[Bucket]:
        return [room(tokens, most=2000), bucket("concurrency", max(1, tokens // 100), "model", ("m",))]

    @rule(tokens=st.sampled_from([0, 1, 90, 300, 999.5, 1000, 2000]))
    def read(self, tokens: float) -> None:
        self.reading = self.room(tokens)

    @rule(tokens=st.integers(1, 2500))
    def spend(self, tokens: int) -> None:
        charge = self.desk.charge(*self.reading, prompt_tokens=tokens, max_tokens=0, ttl_ms=3_600_000)
        admitted = run(self.desk.limiter.spend(charge)).admitted
        fits = sum(self.held.values()) + tokens <= int(self.reading[0].limit) and len(self.held) < self.reading[1].limit
        assert admitted == fits
        if admitted:
            self.held[charge.lease_id] = tokens

    @precondition(lambda self: self.held)
    @rule(index=picks, how=st.sampled_from(["settle", "cancel", "release", "renew"]))
    def end(self, index: int, how: str) -> None:
        lease_id = list(self.held)[index % len(self.held)]
        calls: dict[str, Any] = {
            "settle": lambda: self.desk.limiter.settle(lease_id, SCOPE, Usage(1, 1)),
            "cancel": lambda: self.desk.limiter.cancel(lease_id, SCOPE),
            "release": lambda: self.desk.limiter.release(lease_id),
            "renew": lambda: self.desk.limiter.renew(lease_id, SCOPE, 3_600_000),
        }
        run(calls[how]())
        if how != "renew":
            del self.held[lease_id]

    @invariant()
    def what_is_held_is_what_leases_reserved(self) -> None:
        assert sum(held.tokens for held in self.desk.limiter.by_model().values()) == sum(self.held.values())

    def teardown(self) -> None:
        """After the last end all of the largest reading is there."""
        for lease_id in self.held:
            run(self.desk.limiter.cancel(lease_id, SCOPE))
        assert run(self.desk.limiter.spend(self.desk.charge(room(2000), prompt_tokens=2000, max_tokens=0))).admitted


TestRoomMachine = RoomMachine.TestCase
TestRoomMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
