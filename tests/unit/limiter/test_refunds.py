"""Refunds: a bucket gets back what it has not earned since, so that no refund lets more pass than the limit."""

import pytest

from app.limiter.charge import Bucket, Charge, Usage
from app.limiter.meters import KEPT_IDLE
from tests.unit.limiter.conftest import SCOPE, Desk, bucket

SECONDS = bucket("qps", 1, burst=20)
"""One request a second, twenty at most: figures of the tests are seconds and requests alike."""


async def taken(desk: Desk, *buckets: Bucket, **rest: object) -> Charge:
    """An admitted charge of an hour."""
    charge = desk.charge(*buckets, ttl_ms=3_600_000, **rest)
    assert (await desk.limiter.spend(charge)).admitted
    return charge


async def remaining(desk: Desk) -> list[float]:
    return [level.remaining for level in await desk.limiter.usage("a")]


async def test_late_cancels_of_requests_let_nothing_more_pass(desk: Desk) -> None:
    """Twenty calls cancelled after their second has refilled give nothing to the twenty that have just passed a limit of twenty."""
    qps = bucket("qps", 20)
    first = [await taken(desk, qps) for _ in range(20)]
    desk.clock.advance(1300)
    assert sum([(await desk.spend(qps)).admitted for _ in range(20)]) == 20
    for charge in first:
        await desk.limiter.cancel(charge.lease_id, SCOPE)
    assert sum([(await desk.spend(qps)).admitted for _ in range(20)]) == 0


@pytest.mark.parametrize("ending", ["cancel", "settle"])
async def test_late_ends_of_long_calls_let_no_more_tokens_pass(desk: Desk, ending: str) -> None:
    """Four calls of 300 whose tokens have refilled long ago end while a budget of 600 is spent: not one token more passes."""
    tpm = bucket("tpm", 600)
    first = []
    for _ in range(4):
        first.append(await taken(desk, tpm, prompt_tokens=300, max_tokens=0))
        desk.clock.advance(60_000)
    await taken(desk, tpm, prompt_tokens=600, max_tokens=0)
    for charge in first:
        if ending == "cancel":
            await desk.limiter.cancel(charge.lease_id, SCOPE)
        else:
            assert (await desk.limiter.settle(charge.lease_id, SCOPE, Usage(0, 0))).refunded == 300
        assert not (await desk.spend(tpm, prompt_tokens=1, max_tokens=0)).admitted


async def test_a_refund_is_the_part_that_is_not_earned_yet(desk: Desk) -> None:
    """Of ten seconds' worth, cancelled after four seconds, six come back and fill the bucket; four had refilled."""
    charge = await taken(desk, SECONDS, requests_cost=10)
    desk.clock.advance(4000)
    assert await remaining(desk) == [14]
    await taken(desk, SECONDS, requests_cost=3)
    await desk.limiter.cancel(charge.lease_id, SCOPE)
    assert await remaining(desk) == [20 - 3]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
async def test_refunds_come_whole_in_any_order(desk: Desk, order: tuple[int, ...]) -> None:
    """Four reserve a full budget of a minute at once and use a tenth each: whoever ends first, after 6 s nothing is owed."""
    tpm = bucket("tpm", 6000)
    charges = [await taken(desk, tpm, prompt_tokens=150, max_tokens=1350) for _ in range(4)]
    desk.clock.advance(3000)
    for index in order:
        await desk.limiter.settle(charges[index].lease_id, SCOPE, Usage(150, 0))
    assert await remaining(desk) == [6000 - 600 + 300]


async def test_a_second_refund_counts_with_the_first(desk: Desk) -> None:
    """Two of 10 at 0 s, the first cancelled at 5 s, 5 taken at 11 s: the second has earned its 10 by then and gets nothing back."""
    first, second = [await taken(desk, SECONDS, requests_cost=10) for _ in range(2)]
    desk.clock.advance(5000)
    await desk.limiter.cancel(first.lease_id, SCOPE)
    assert await remaining(desk) == [20 - 5]
    desk.clock.advance(6000)
    await taken(desk, SECONDS, requests_cost=5)
    await desk.limiter.cancel(second.lease_id, SCOPE)
    assert await remaining(desk) == [20 - 5]


async def test_correcting_a_report_gives_back_only_what_it_charged(desk: Desk) -> None:
    """10 earned long ago, reported as 15 and then as 0, give back the 5 that the report added: another's 10 stay charged."""
    tpm = bucket("tpm", 60)
    charge = await taken(desk, tpm, prompt_tokens=10, max_tokens=0)
    desk.clock.advance(10_000)
    await taken(desk, tpm, prompt_tokens=10, max_tokens=0)
    await desk.limiter.settle(charge.lease_id, SCOPE, Usage(15, 0))
    assert await remaining(desk) == [60 - 15]
    await desk.limiter.settle(charge.lease_id, SCOPE, Usage(0, 0))
    assert await remaining(desk) == [60 - 10]


async def test_a_lowered_limit_forgives_no_charge_twice(desk: Desk) -> None:
    """What a shorter window forgave of a charge is not given back once more when the charge is cancelled."""
    charge = await taken(desk, bucket("qps", 1, burst=60), requests_cost=60)
    short = bucket("qps", 1, burst=10)
    assert (await desk.spend(short)).refusals[0].frees_in_ms == 11_000
    desk.clock.advance(10_000)
    await taken(desk, short, requests_cost=0.0)
    desk.clock.advance(10_000)
    await taken(desk, short, requests_cost=10)
    await desk.limiter.cancel(charge.lease_id, SCOPE)
    assert await remaining(desk) == [0]


async def test_a_bucket_that_was_forgotten_gives_back_nothing_old(desk: Desk) -> None:
    """A bucket at rest is dropped with what it knew of refunds; a charge of before, refilled by then, still gives nothing back."""
    first, second = [await taken(desk, SECONDS, requests_cost=10) for _ in range(2)]
    await desk.limiter.cancel(first.lease_id, SCOPE)
    desk.clock.advance(10_000)
    for visitor in range(3 * KEPT_IDLE):
        await desk.spend(bucket("qps", 50, "subject", ("b", str(visitor))))
        desk.clock.advance(0.1)
    assert await remaining(desk) == []

    await taken(desk, SECONDS, requests_cost=20)
    await desk.limiter.cancel(second.lease_id, SCOPE)
    assert await remaining(desk) == [0]
