"""How leases end: settled, expired, cancelled, released; each frees its slot once, and tokens follow the newest report."""

import pytest

from app.errors import Conflict, NotFound
from app.limiter.charge import Bucket, Charge, LiveLease, Settlement, Usage
from app.limiter.errors import LeaseEnded
from tests.unit.limiter.conftest import SCOPE, Desk, bucket

TPM = bucket("tpm", 10_000)
SLOT = bucket("concurrency", 1)


async def given(desk: Desk, *buckets: Bucket, **rest: object) -> Charge:
    """An admitted charge."""
    charge = desk.charge(*buckets, **rest)
    assert (await desk.limiter.spend(charge)).admitted
    return charge


def counted(desk: Desk) -> float | None:
    """Bytes that lease records take."""
    return desk.metrics.registry.get_sample_value("sluice_lease_records_bytes")


async def remaining(desk: Desk, tenant: str = "a") -> list[float]:
    return [level.remaining for level in await desk.limiter.usage(tenant)]


async def test_settle_refunds_the_difference_once(desk: Desk) -> None:
    """Settling charges what was used and frees the slot; the same again gets the same answer, marked, and changes nothing."""
    charge = await given(desk, TPM, SLOT)
    settled = await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10, 5))
    assert Settlement(charge.lease_id, "completed", 15, 45, freed=True, repeated=False) == settled

    again = await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10, 5))
    assert Settlement(charge.lease_id, "completed", 15, 45, freed=True, repeated=True) == again
    assert await remaining(desk) == [9985, 1]


async def test_newer_report_corrects_and_does_not_add(desk: Desk) -> None:
    """A second, different report replaces the first one's tokens, in either direction, and frees nothing twice."""
    charge = await given(desk, TPM, SLOT)
    await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10, 5))
    await given(desk, SLOT)
    more = await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10, 40))
    assert (more.tokens_charged, more.refunded, more.freed) == (50, -35, False)
    less = await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10, 20))
    assert (less.tokens_charged, less.refunded, less.freed) == (30, 20, False)
    assert await remaining(desk) == [9970, 0]


@pytest.mark.parametrize("outcome", ["completed", "aborted", "failed", "timeout"])
@pytest.mark.parametrize(
    ("usage", "charged", "flags"),
    [((100, 300), 400, ()), ((100, None), 1000, ("estimated",)), ((None, 300), 400, ("estimated",)), ((None, None), 1000, ("estimated",))],
)
async def test_charge_depends_on_tokens_not_on_the_ending(
    desk: Desk, outcome: str, usage: tuple[int | None, int | None], charged: int, flags: tuple[str, ...]
) -> None:
    """The same tokens cost the same however a reply ended; what a report lacks is charged as reserved and flagged, never 0."""
    charge = await given(desk, TPM, prompt_tokens=100, max_tokens=900)
    settled = await desk.limiter.settle(charge.lease_id, SCOPE, Usage(*usage, outcome=outcome))
    assert (outcome, charged, flags) == (settled.outcome, settled.tokens_charged, settled.flags)
    assert [10_000 - charged] == await remaining(desk)


@pytest.mark.parametrize(("cached_cost", "charged"), [(0.0, 2000), (0.1, 2800), (1.0, 10_000)])
async def test_cached_tokens_weigh_what_the_terms_say(desk: Desk, cached_cost: float, charged: float) -> None:
    """Of 10 000 prompt tokens 8000 cached, charged are 2000, 2800 or 10 000 as a cached one weighs 0, 0.1 or 1."""
    charge = await given(desk, TPM, prompt_tokens=10_000, max_tokens=0, cached_cost=cached_cost)
    settled = await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10_000, 0, 8000))
    assert (charged, ()) == (settled.tokens_charged, settled.flags)
    assert [10_000 - charged] == await remaining(desk)


@pytest.mark.parametrize("cached", [-1, 11])
async def test_implausible_cache_counts_as_none(desk: Desk, cached: int) -> None:
    """Cached tokens below 0 or above the prompt are taken for 0 and flagged, on the answer and in the metric."""
    charge = await given(desk, TPM, cached_cost=0.0)
    settled = await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10, 20, cached))
    assert (settled.tokens_charged, settled.flags) == (30, ("cached_implausible",))
    assert desk.metrics.registry.get_sample_value("sluice_settle_flags_total", {"flag": "cached_implausible"}) == 1


async def test_negative_report_is_taken_as_missing(desk: Desk) -> None:
    """Negative counts never refund more than was reserved: the reserved figures stay."""
    charge = await given(desk, TPM)
    settled = await desk.limiter.settle(charge.lease_id, SCOPE, Usage(-1_000_000, -1))
    assert (settled.tokens_charged, settled.refunded, settled.flags) == (60, 0, ("estimated",))


async def test_more_than_reserved_is_charged_into_debt(desk: Desk) -> None:
    """200 used where 60 were reserved of 100 charge the bucket to its whole price; what is left is 0 and the debt delays the next."""
    tpm = bucket("tpm", 100)
    first, second = await given(desk, tpm), await given(desk, tpm, max_tokens=30)
    settled = await desk.limiter.settle(first.lease_id, SCOPE, Usage(10, 190))
    assert (settled.tokens_charged, settled.refunded, settled.flags) == (200, -140, ("over_reserved",))
    assert await remaining(desk) == [0]

    refused = await desk.spend(tpm)
    assert refused.refusals[0].frees_in_ms == 60_000
    await desk.limiter.settle(second.lease_id, SCOPE, Usage(0, 0))
    assert (await desk.spend(tpm)).refusals[0].frees_in_ms == 36_000


async def test_absurd_report_closes_a_bucket_for_a_bounded_time(desk: Desk) -> None:
    """However many tokens reports claim, the bucket can pay again within two of its windows, and a correction takes back no more than was charged."""
    tpm = bucket("tpm", 100)
    leases = [await given(desk, tpm, max_tokens=0) for _ in range(10)]
    for charge in leases:
        await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10, 2**60))
    assert (await desk.limiter.usage("a"))[0].reset_ms == 120_000

    for charge in leases:
        await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10, 0))
    assert await remaining(desk) == [0]
    desk.clock.advance(60_000)
    assert await remaining(desk) == [100]


async def test_settle_prices_by_the_lease(desk: Desk) -> None:
    """The factor and the limit of the admission price the report, whatever they are by then."""
    charge = await given(desk, bucket("tpm", 600, factor=0.5))
    await desk.spend(bucket("tpm", 1200, factor=1.0), prompt_tokens=0, max_tokens=0)
    await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10, 5))
    assert await remaining(desk) == [1200 - 1 - 60]


async def test_slot_of_a_silent_holder_is_free_at_its_end_not_before(desk: Desk) -> None:
    """A lease of 30 s that nobody settles holds its slot until 30 s; its tokens stay charged."""
    await given(desk, SLOT, bucket("tpm", 60))
    desk.clock.advance(29_999)
    refused = await desk.spend(SLOT)
    assert (refused.admitted, refused.refusals[0].frees_in_ms) == (False, 1)

    desk.clock.advance(1)
    assert (await desk.spend(SLOT)).admitted
    assert await remaining(desk) == [0, 30]
    assert desk.metrics.registry.get_sample_value("sluice_lease_ends_total", {"how": "expired"}) == 1


async def test_renewed_lease_keeps_its_slot(desk: Desk) -> None:
    """Renewed every 10 s, a lease of 30 s holds its slot for two minutes, and loses it 30 s after the last renewal."""
    charge = await given(desk, SLOT)
    for _ in range(12):
        desk.clock.advance(10_000)
        assert await desk.limiter.renew(charge.lease_id, SCOPE, 30_000) == 30_000
        assert not (await desk.spend(SLOT)).admitted
    desk.clock.advance(29_999)
    await desk.limiter.expire_due()
    assert desk.metrics.registry.get_sample_value("sluice_leases") == 1
    desk.clock.advance(1)
    await desk.limiter.expire_due()
    assert desk.metrics.registry.get_sample_value("sluice_leases") == 0
    with pytest.raises(LeaseEnded):
        await desk.limiter.renew(charge.lease_id, SCOPE, 30_000)


async def test_late_settle_corrects_tokens_only(desk: Desk) -> None:
    """A report after expiry refunds what was not used, and frees no slot that another holds by then."""
    charge = await given(desk, SLOT, TPM)
    desk.clock.advance(30_000)
    await given(desk, SLOT)
    late = await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10, 0))
    assert (late.tokens_charged, late.refunded, late.freed) == (10, 50, False)
    assert not (await desk.spend(SLOT)).admitted


async def test_cancel_undoes_everything_once(desk: Desk) -> None:
    """A cancelled lease gives back requests, tokens and slot; cancelled again it gives nothing more."""
    qps = bucket("qps", 10)
    charge = await given(desk, qps, TPM, SLOT)
    await given(desk, qps, TPM)
    for _ in range(3):
        await desk.limiter.cancel(charge.lease_id, SCOPE)
    assert await remaining(desk) == [9, 9940, 1]
    with pytest.raises(LeaseEnded):
        await desk.limiter.settle(charge.lease_id, SCOPE, Usage(1, 1))


async def test_cancel_after_settle_is_a_conflict(desk: Desk) -> None:
    """What was settled was used: it cannot be cancelled."""
    charge = await given(desk, TPM)
    await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10, 5))
    with pytest.raises(Conflict, match="settled"):
        await desk.limiter.cancel(charge.lease_id, SCOPE)
    assert await remaining(desk) == [9985]


async def test_cancel_after_expiry_refunds_what_stayed_charged(desk: Desk) -> None:
    """Work that turns out never to have run is refunded even after its lease expired, and frees nothing twice."""
    tpm = bucket("tpm", 60)
    charge = await given(desk, SLOT, tpm)
    desk.clock.advance(30_000)
    await given(desk, SLOT)
    await desk.limiter.cancel(charge.lease_id, SCOPE)
    assert await remaining(desk) == [0, 60]


async def test_operator_releases_by_force(desk: Desk) -> None:
    """A released lease frees its slot at once, keeps its charge, and can still be settled for its tokens."""
    charge = await given(desk, SLOT, TPM)
    await desk.limiter.release(charge.lease_id)
    assert await remaining(desk) == [1, 9940]
    with pytest.raises(LeaseEnded):
        await desk.limiter.release(charge.lease_id)
    assert not (await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10, 0))).freed


async def test_leases_of_others_do_not_exist(desk: Desk) -> None:
    """Another credential gets the very answer that an unknown id gets, from every call, and changes nothing."""
    charge = await given(desk, SLOT)
    messages = set()
    for lease_id in (charge.lease_id, "unknown"):
        for call in (
            desk.limiter.settle(lease_id, "key-2", Usage(1, 1)),
            desk.limiter.renew(lease_id, "key-2", 1000),
            desk.limiter.cancel(lease_id, "key-2"),
        ):
            with pytest.raises(NotFound) as raised:
                await call
            messages.add(raised.value.message.replace(lease_id, "ID"))
    assert len(messages) == 1
    assert not (await desk.spend(SLOT)).admitted


async def test_operators_see_leases_in_flight(desk: Desk) -> None:
    """Live leases are listed oldest first, of all tenants or one, with their node, age and rest; ended ones are not."""
    ended = await given(desk)
    first = await given(desk, prompt_tokens=1, max_tokens=2, node="vllm-0")
    desk.clock.advance(1000)
    second = await given(desk, tenant="b", ttl_ms=5000)
    await desk.limiter.settle(ended.lease_id, SCOPE, Usage(1, 1))
    rows = (
        LiveLease(first.lease_id, SCOPE, "a", "m", "vllm-0", 3, age_ms=1000, expires_in_ms=29_000),
        LiveLease(second.lease_id, SCOPE, "b", "m", None, 60, age_ms=0, expires_in_ms=5000),
    )
    assert rows == await desk.limiter.leases()
    assert rows[1:] == await desk.limiter.leases("b")
    assert desk.metrics.registry.get_sample_value("sluice_leases") == 2


async def test_a_thousand_rounds_of_mixed_endings_leave_nothing_held(desk: Desk) -> None:
    """Whatever way a call ends, and however often that is reported, the one slot is free for the next round and for one only."""
    limiter, lease_ttl_ms = desk.limiter, 30_000
    for round_number in range(1000):
        charge = await given(desk, SLOT, bucket("tokens_in_flight", 60))
        assert not (await desk.spend(SLOT)).admitted
        usage = Usage(10, round_number % 50, outcome=("completed", "aborted", "failed", "timeout")[round_number % 4])
        match round_number % 5:
            case 0 | 1:
                await limiter.settle(charge.lease_id, SCOPE, usage)
                assert (await limiter.settle(charge.lease_id, SCOPE, usage)).repeated
            case 2:
                await limiter.cancel(charge.lease_id, SCOPE)
                await limiter.cancel(charge.lease_id, SCOPE)
            case 3:
                await limiter.release(charge.lease_id)
                await limiter.settle(charge.lease_id, SCOPE, usage)
            case 4:
                desk.clock.advance(lease_ttl_ms)
                await limiter.settle(charge.lease_id, SCOPE, usage)
        desk.clock.advance(1)
        assert await remaining(desk) == [1, 60]
    assert await limiter.leases() == ()


async def test_after_a_restart_nothing_is_known() -> None:
    """Counters die with the process: a new one starts with full buckets and free slots, and knows no lease of the old one, as its hint says."""
    before, after = Desk(), Desk()
    charge = await given(before, SLOT, TPM)
    with pytest.raises(NotFound) as raised:
        await after.limiter.settle(charge.lease_id, SCOPE, Usage(1, 1))
    assert "a refused decision has no lease" in raised.value.advice
    assert "forgotten by a restart" in raised.value.advice
    assert (await after.spend(SLOT, TPM)).admitted


async def test_a_note_comes_with_every_settlement_until_it_is_taken(desk: Desk) -> None:
    """What is kept with a lease is in the first, a repeated and a late settlement; whoever takes it first has it, and nobody afterwards."""
    charge = await given(desk, TPM)
    await desk.limiter.keep_note(charge.lease_id, b"note")
    desk.clock.advance(31_000)
    settled = [await desk.limiter.settle(charge.lease_id, SCOPE, usage) for usage in (Usage(1, 1), Usage(1, 1), Usage(2, 2))]
    taken = [await desk.limiter.take_note(charge.lease_id) for _ in range(2)]

    assert [each.note for each in settled] == [b"note"] * 3
    assert taken == [b"note", None]
    assert (await desk.limiter.settle(charge.lease_id, SCOPE, Usage(2, 2))).note is None


async def test_a_note_ends_with_its_lease(desk: Desk) -> None:
    """A note is weighed with its lease, given back when it is taken, and forgotten with the record."""
    taken, forgotten = await given(desk, TPM), await given(desk, TPM)
    for charge in (taken, forgotten):
        await desk.limiter.keep_note(charge.lease_id, b"n" * 500)
    heavy = counted(desk)
    await desk.limiter.take_note(taken.lease_id)
    light = counted(desk)
    desk.clock.advance(30_000 + 60_000)
    await desk.limiter.expire_due()

    assert (heavy - light, counted(desk)) == (500, 0)
    with pytest.raises(NotFound):
        await desk.limiter.keep_note(forgotten.lease_id, b"note")
