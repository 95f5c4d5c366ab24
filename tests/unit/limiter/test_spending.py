"""Spending over buckets: all or none, priced by the terms, at the millisecond."""

import pytest

from app.limiter.charge import Bucket, Level, Refusal, Spent, Usage
from app.limiter.errors import Draining
from tests.unit.limiter.conftest import SCOPE, Desk, bucket


async def test_five_at_one_instant_pass_a_limit_once(desk: Desk) -> None:
    """Five requests of 60 tokens at one instant meet a budget of 100: one is admitted, and settling it at 30 leaves 70."""
    tpm = bucket("tpm", 100)
    charges = [desk.charge(tpm) for _ in range(5)]
    answers = [await desk.limiter.spend(charge) for charge in charges]
    assert [answer.admitted for answer in answers] == [True, False, False, False, False]

    await desk.limiter.settle(charges[0].lease_id, SCOPE, Usage(10, 20))
    assert (Level(tpm, 70.0, 18_000),) == await desk.limiter.usage("a")


async def test_answer_of_an_admitted_request(desk: Desk) -> None:
    """An admitted request is told what was reserved, how long the lease lives, and what is left per dimension."""
    qps, tpm, slots = bucket("qps", 5), bucket("tpm", 600), bucket("concurrency", 2)
    held, size = bucket("tokens_in_flight", 1000), bucket("request_tokens", 80)
    expected = Spent(
        admitted=True,
        levels=(Level(qps, 4, 200), Level(tpm, 540, 6000), Level(slots, 1, 0), Level(held, 940, 0), Level(size, 80, 0)),
        tokens_reserved=60,
        expires_in_ms=30_000,
    )
    assert expected == await desk.spend(qps, tpm, slots, held, size)


async def test_every_refusing_bucket_is_named_and_none_is_charged(desk: Desk) -> None:
    """A request that two of three buckets refuse names both with their own waits, and leaves all three as they were."""
    site, mine, tpm = bucket("qps", 10, "site", ()), bucket("qps", 1), bucket("tpm", 100)
    assert (await desk.spend(site, mine, tpm)).admitted
    desk.clock.advance(400)

    refused = await desk.spend(site, mine, tpm)
    assert (Refusal(mine, 1.6, 600), Refusal(tpm, 119.333, 11_600)) == refused.refusals
    assert refused.levels == ()
    desk.clock.advance(600)
    assert (await desk.spend(site, mine)).levels == (Level(mine, 0, 1000),)


async def test_refused_traffic_burns_nothing_of_the_others(desk: Desk) -> None:
    """Of ten calls that pass a wide shared limit, a narrow one stops eight; the shared limit then has eight left for others."""
    site = bucket("qps", 10, "site", ())
    greedy = [await desk.spend(site, bucket("qps", 2, owner=("x",))) for _ in range(10)]
    polite = [await desk.spend(site, bucket("qps", 50, owner=("y",))) for _ in range(9)]
    assert (sum(answer.admitted for answer in greedy), sum(answer.admitted for answer in polite)) == (2, 8)


async def test_larger_than_the_bucket_never_passes(desk: Desk) -> None:
    """2001 tokens against a bucket of 2000 are refused without a wait, and the bucket still holds 2000."""
    tpm = bucket("tpm", 2000)
    refused = await desk.spend(tpm, prompt_tokens=2001, max_tokens=0)
    assert (Refusal(tpm, 2001, None, over_capacity=True),) == refused.refusals

    assert (await desk.spend(tpm, prompt_tokens=2000, max_tokens=0)).admitted


async def test_wait_counts_what_has_been_earned(desk: Desk) -> None:
    """A bucket of one a second, emptied at 0 and asked at 200 ms, is told 800 ms; it passes then and not before."""
    qps = bucket("qps", 1)
    await desk.spend(qps)
    desk.clock.advance(200)
    assert (await desk.spend(qps)).refusals[0].frees_in_ms == 800

    desk.clock.advance(799)
    assert not (await desk.spend(qps)).admitted
    desk.clock.advance(1)
    assert (await desk.spend(qps)).admitted


async def test_minute_edge_gives_no_second_budget(desk: Desk) -> None:
    """60 calls just before a minute's edge and 60 just after pass 60 in all, and the wait is the caller's own second."""
    tpm = bucket("tpm", 60)
    desk.clock.advance(59_900)
    before = [await desk.spend(tpm, prompt_tokens=1, max_tokens=0) for _ in range(60)]
    desk.clock.advance(200)
    after = [await desk.spend(tpm, prompt_tokens=1, max_tokens=0) for _ in range(60)]
    assert (sum(a.admitted for a in before), sum(a.admitted for a in after)) == (60, 0)
    assert {800} == {answer.refusals[0].frees_in_ms for answer in after}


async def test_steady_load_gets_burst_and_rate(desk: Desk) -> None:
    """600 calls evenly over 2 s pass 150 at once and 150 a second, also while the wall clock is stepped to and fro."""
    qps = bucket("qps", 150)
    admitted = 0
    for call in range(600):
        desk.clock.advance(2000 / 600)
        desk.clock.step_utc((-1) ** call * desk.clock.utcnow().resolution * 10**6)
        admitted += (await desk.spend(qps)).admitted
    assert 445 <= admitted <= 450


@pytest.mark.parametrize(
    ("limited", "idle_ms"),
    [(bucket("tpm", 30_000), 10 * 365 * 86_400_000.0), (bucket("qps", 98_000_000, burst=980_000_000), 12 * 3_600_000.0)],
)
async def test_long_idleness_fills_a_bucket_once(desk: Desk, limited: Bucket, idle_ms: float) -> None:
    """After years at rest a bucket holds its capacity, not more and not less, and one unit leaves capacity less one."""
    await desk.spend(limited, prompt_tokens=1, max_tokens=0)
    desk.clock.advance(idle_ms)
    answer = await desk.spend(limited, prompt_tokens=1, max_tokens=0)
    assert (limited.burst or limited.limit) - 1 == answer.levels[0].remaining


async def test_burst_is_the_capacity(desk: Desk) -> None:
    """Two a second with a burst of five pass five at once and then one each half second."""
    qps = bucket("qps", 2, burst=5)
    assert sum([(await desk.spend(qps)).admitted for _ in range(8)]) == 5
    assert (await desk.spend(qps)).refusals[0].frees_in_ms == 500


async def test_costs_multiply_what_is_spent(desk: Desk) -> None:
    """A model of cost 5 spends five requests; input and output tokens are weighted each by their own."""
    qps, tpm = bucket("qps", 50), bucket("tpm", 30_000)
    answer = await desk.spend(qps, tpm, prompt_tokens=100, max_tokens=200, requests_cost=5, input_cost=2, output_cost=3)
    assert [level.remaining for level in answer.levels] == [45, 29_200]
    assert answer.tokens_reserved == 300


async def test_no_tokens_named_still_reserves_one(desk: Desk) -> None:
    """A request of no tokens, or of tokens that weigh nothing, reserves one token of each token bucket."""
    dimensions = ("tpm", "tokens_in_flight")
    answer = await desk.spend(*[bucket(name, 60) for name in dimensions], prompt_tokens=0, max_tokens=0, input_cost=0, output_cost=0)
    assert [level.remaining for level in answer.levels] == [59, 59]
    assert answer.tokens_reserved == 1


async def test_without_buckets_all_is_admitted(desk: Desk) -> None:
    """A caller without limits is admitted and still gets a lease."""
    assert (await desk.spend()).admitted
    assert len(await desk.limiter.leases()) == 1


async def test_factor_is_a_price(desk: Desk) -> None:
    """At factor 0.5 a request of 60 costs 120 of tpm and holds 120 tokens; a request of the whole bucket still passes."""
    tpm, held = bucket("tpm", 600, factor=0.5), bucket("tokens_in_flight", 600, factor=0.5)
    answer = await desk.spend(tpm, held)
    assert [level.remaining for level in answer.levels] == [480, 480]

    desk.clock.advance(30_000)
    assert (await desk.spend(tpm, held, prompt_tokens=600, max_tokens=0)).admitted


async def test_factor_moves_the_slots(desk: Desk) -> None:
    """Eight slots at factor 0.7 are five, at 0.01 still one, at 1.5 twelve."""
    for factor, slots in ((0.7, 5), (0.01, 1), (1.5, 12)):
        limited = bucket("concurrency", 8, owner=(f"tenant-{factor}",), factor=factor)
        assert slots == sum([(await desk.spend(limited)).admitted for _ in range(20)])


@pytest.mark.parametrize("dimension", ["qps", "tpm", "concurrency", "tokens_in_flight", "request_tokens"])
async def test_factor_zero_sheds(desk: Desk, dimension: str) -> None:
    """A factor of 0 closes a bucket of any dimension for now, and charges nothing; a limit of 0 closes it for good."""
    shed = (await desk.spend(bucket(dimension, 100, factor=0.0))).refusals[0]
    assert (shed.shed, shed.over_capacity, shed.frees_in_ms) == (True, False, None)

    closed = (await desk.spend(bucket(dimension, 0))).refusals[0]
    assert (closed.shed, closed.over_capacity, closed.frees_in_ms) == (False, True, None)
    assert (await desk.spend(bucket(dimension, 100))).admitted


@pytest.mark.parametrize(
    ("limited", "observed", "bound"),
    [
        (bucket("concurrency", 2, factor=0.5), 2, 1),
        (bucket("concurrency", 2, factor=0.01), 2, 1),
        (bucket("concurrency", 0.5), 1, 0.5),
        (bucket("qps", 50, burst=0.5), 1, 0.5),
        (bucket("qps", 2, burst=1), 2, 1),
        (bucket("qps", 0.1), 2, 1),
        (bucket("tpm", 60), 120, 60),
        (bucket("tpm", 60, factor=0.5), 120, 60),
        (bucket("tpm", 50), 60, 50),
        (bucket("tokens_in_flight", 60.7), 120, 60),
        (bucket("request_tokens", 59), 60, 59),
        (bucket("concurrency", 8, factor=0.0), 1, 0),
    ],
)
async def test_a_refusal_names_what_bound(desk: Desk, limited: Bucket, observed: float, bound: float) -> None:
    """A request is refused for bringing its bucket over the number named: the slots that a factor left, or what the bucket holds."""
    await desk.spend(limited)
    refusal = (await desk.spend(limited)).refusals[0]
    assert (observed, bound) == (refusal.observed, refusal.bound)
    assert refusal.bucket is limited


async def test_a_level_names_what_it_is_out_of(desk: Desk) -> None:
    """What remains is out of the slots that a factor left, the burst, the budget or the tokens: each bucket's own full level."""
    limited = [bucket("concurrency", 8, factor=0.7), bucket("qps", 2, burst=5), bucket("tpm", 600), bucket("tokens_in_flight", 100.5)]
    levels = (await desk.spend(*limited)).levels
    assert [(level.remaining, level.bound) for level in levels] == [(4, 5), (4, 5), (540, 600), (40, 100)]


@pytest.mark.parametrize("limit", [1e-300, 5e-324])
async def test_no_absurd_wait_is_told(desk: Desk, limit: float) -> None:
    """A limit so small that its unit takes ages is told as a wait of 30 days."""
    limited = [bucket("qps", limit), bucket("tpm", limit)]
    answer = await desk.spend(*limited, prompt_tokens=1, max_tokens=0)
    assert [level.reset_ms for level in answer.levels] == [30 * 86_400_000] * 2
    refused = await desk.spend(*limited, prompt_tokens=1, max_tokens=0)
    assert [refusal.frees_in_ms for refusal in refused.refusals] == [30 * 86_400_000] * 2


async def test_size_of_one_request(desk: Desk) -> None:
    """request_tokens bounds each request alone, however many there are."""
    size = bucket("request_tokens", 60)
    assert all([(await desk.spend(size)).admitted for _ in range(100)])
    assert (Refusal(size, 61, None, over_capacity=True),) == (await desk.spend(size, max_tokens=51)).refusals


async def test_tightest_level_per_dimension(desk: Desk) -> None:
    """Of several buckets of a dimension, the one with the least left is shown."""
    wide, narrow, mid = bucket("qps", 100, "site", ()), bucket("qps", 3), bucket("qps", 9, "model", ("m",))
    assert (Level(narrow, 2, 334),) == (await desk.spend(wide, narrow, mid)).levels


async def test_lowered_limit_is_in_force_at_once(desk: Desk) -> None:
    """Half of 600 used, then lowered to 60: half of 60 is left, and no more than that can be spent."""
    await desk.spend(bucket("tpm", 600), prompt_tokens=300, max_tokens=0)
    lowered = bucket("tpm", 60)
    assert not (await desk.spend(lowered, prompt_tokens=31, max_tokens=0)).admitted
    assert (await desk.spend(lowered, prompt_tokens=30, max_tokens=0)).levels[0].remaining == 0


async def test_raised_limit_does_not_wait_for_the_old_window(desk: Desk) -> None:
    """One request each 100 s, used up, then raised to 50 a second: the next passes after a little over a second, not after 100."""
    await desk.spend(bucket("qps", 0.01))
    assert (await desk.spend(bucket("qps", 0.01))).refusals[0].frees_in_ms == 100_000
    raised = bucket("qps", 50)

    assert (await desk.spend(raised)).refusals[0].frees_in_ms == 1020
    desk.clock.advance(1020)
    assert (await desk.spend(raised)).admitted


async def test_a_narrow_caller_forgives_a_shared_bucket_nothing(desk: Desk) -> None:
    """On a bucket that callers share under different bursts, one with a small burst does not wipe what the others spent."""
    wide, narrow = bucket("qps", 10, "site", (), burst=100), bucket("qps", 10, "site", (), burst=1)
    assert sum([(await desk.spend(wide)).admitted for _ in range(110)]) == 100
    assert (await desk.spend(narrow)).refusals[0].frees_in_ms == 10_000

    assert not (await desk.spend(wide)).admitted


async def test_lowered_concurrency_lets_the_running_finish(desk: Desk) -> None:
    """Four running under a limit lowered to two keep their slots; a new one passes when fewer than two are left."""
    charges = [desk.charge(bucket("concurrency", 4)) for _ in range(4)]
    for charge in charges:
        assert (await desk.limiter.spend(charge)).admitted
    lowered = bucket("concurrency", 2)
    for charge in charges[:3]:
        assert not (await desk.spend(lowered)).admitted
        await desk.limiter.settle(charge.lease_id, SCOPE, Usage(1, 1))
    assert (await desk.spend(lowered)).admitted


@pytest.mark.parametrize("factor", [1.0, 0.5])
async def test_who_is_larger_than_the_limit_of_the_moment_waits(desk: Desk, factor: float) -> None:
    """Of a limit of 40 tokens in flight that may become 100, 60 tokens wait and pass once it is 60, 141 are refused for good."""
    waits = (await desk.spend(bucket("tokens_in_flight", 40, burst=100, factor=factor))).refusals[0]
    assert (waits.over_capacity, waits.frees_in_ms, waits.bound) == (False, None, 40)

    for_good = (await desk.spend(bucket("tokens_in_flight", 40, burst=100, factor=factor), prompt_tokens=91)).refusals[0]
    assert (for_good.over_capacity, for_good.observed, for_good.bound) == (True, 141, 100)

    nothing = (await desk.spend(bucket("tokens_in_flight", 0, burst=100, factor=factor), prompt_tokens=1, max_tokens=0)).refusals[0]
    assert (nothing.over_capacity, nothing.bound) == (False, 0)
    assert (await desk.spend(bucket("tokens_in_flight", 60, burst=100, factor=factor))).admitted


async def test_huge_counts_leave_the_state_whole(desk: Desk) -> None:
    """Counts past 2^53 are refused where they do not fit, and given back to the last unit where they do."""
    small = bucket("tokens_in_flight", 100)
    assert (await desk.spend(small, prompt_tokens=9_007_199_254_740_993)).refusals[0].over_capacity
    vast = [bucket("tokens_in_flight", 2.0**60, owner=("v",)), bucket("tpm", 2.0**60, owner=("v",))]
    for _ in range(3):
        charge = desk.charge(*vast, prompt_tokens=9_007_199_254_740_993)
        assert (await desk.limiter.spend(charge)).admitted
        await desk.limiter.cancel(charge.lease_id, SCOPE)
    assert [level.remaining for level in await desk.limiter.usage("v")] == [2.0**60, 2.0**60]
    assert (await desk.spend(small, prompt_tokens=1, max_tokens=0)).levels[0].remaining == 99


async def test_usage_shows_a_tenants_own_buckets(desk: Desk) -> None:
    """Usage lists the buckets of the tenant, of its models and subjects; not shared ones, and not those of a tenant of a model's name."""
    own = [bucket("qps", 9), bucket("qps", 9, "tenant_model", ("a", "b")), bucket("qps", 9, "subject", ("a", "s"))]
    await desk.spend(*own, bucket("qps", 9, "site", ()), bucket("qps", 9, "model", ("a",)), bucket("qps", 9, owner=("b",)))
    assert [Level(limited, 8, 112) for limited in own] == list(await desk.limiter.usage("a"))
    assert await desk.limiter.usage("nobody") == ()


async def test_a_passing_crowd_leaves_nothing_behind(desk: Desk) -> None:
    """The meters of 20 000 one-time owners are dropped while traffic goes on; those in use keep what they count."""
    busy = bucket("concurrency", 1)
    await desk.spend(busy, ttl_ms=3_600_000)
    for visitor in range(20_000):
        desk.clock.advance(1)
        await desk.spend(bucket("qps", 50, "subject", ("a", str(visitor))))
    assert len(desk.limiter._meters) < 2000
    assert not (await desk.spend(busy)).admitted


async def test_last_minute_follows_reservations_and_reports(desk: Desk) -> None:
    """What a tenant spent on a model in the last minute grows by reservations, follows reports, and fades in a minute or two."""
    charges = [desk.charge() for _ in range(3)]
    for charge in charges:
        await desk.limiter.spend(charge)
    await desk.limiter.settle(charges[0].lease_id, SCOPE, Usage(10, 20))
    await desk.limiter.cancel(charges[1].lease_id, SCOPE)
    assert desk.limiter.spent_last_minute() == {("a", "m"): 90}

    desk.clock.advance(75_000)
    assert desk.limiter.spent_last_minute() == {("a", "m"): 67.5}
    desk.clock.advance(60_000)
    assert desk.limiter.spent_last_minute() == {}


async def test_draining_admits_nothing_and_ends_what_runs(desk: Desk) -> None:
    """After drain no request is admitted, while leases in flight are still settled."""
    charge = desk.charge(bucket("concurrency", 1))
    await desk.limiter.spend(charge)
    await desk.limiter.drain()
    with pytest.raises(Draining):
        await desk.spend()
    assert (await desk.limiter.settle(charge.lease_id, SCOPE, Usage(1, 1))).freed
    assert await desk.limiter.leases() == ()
