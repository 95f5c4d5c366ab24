"""Spending over buckets: all or none, at the millisecond."""

from tests.unit.limiter.conftest import SCOPE, Desk, bucket

from app.limiter.charge import Usage


async def test_five_at_one_instant_pass_a_limit_once(desk: Desk) -> None:
    """Five requests of 60 tokens at one instant meet a budget of 100: one is admitted, and settling it at 30 leaves 70."""
    tpm = bucket("tpm", 100)
    charges = [desk.charge(tpm) for _ in range(5)]
    answers = [await desk.limiter.spend(charge) for charge in charges]
    assert [True, False, False, False, False] == [answer.admitted for answer in answers]

    settlement = await desk.limiter.settle(charges[0].lease_id, SCOPE, Usage(10, 20))
    assert (30, 30) == (settlement.tokens_charged, settlement.refunded)
    assert [70] == [level.remaining for level in await desk.limiter.usage("a")]
