"""Lease records: replays by request id, kept for a while and within a bound of bytes."""

import gc
import tracemalloc

import pytest

from app.errors import NotFound
from app.limiter.charge import Bucket, Charge, Usage
from app.limiter.errors import LeaseRecordsFull, RequestIdReused, RequestInFlight
from tests.unit.limiter.conftest import SCOPE, Desk, bucket

KEY = ("key-1", "a", "request-1")
BODY, OTHER_BODY = b"digest-1", b"digest-2"
TPM = bucket("tpm", 1000)


async def answered(desk: Desk, key: tuple[str, ...] = KEY, answer: bytes = b"answer") -> Charge:
    """An admitted charge under a request id, its answer recorded."""
    charge = desk.charge(TPM, request_key=key, request_digest=BODY)
    assert (await desk.limiter.spend(charge)).admitted
    await desk.limiter.record(charge.lease_id, answer)
    return charge


async def weight(**rest: object) -> int:
    """Bytes that a request with the longest of ids here is counted with, before its answer."""
    desk = Desk()
    await desk.spend(TPM, **{"request_key": (*KEY, "0" * 20), "request_digest": BODY} | rest)
    return counted(desk)


def counted(desk: Desk) -> int:
    value = desk.metrics.registry.get_sample_value("sluice_lease_records_bytes")
    assert value is not None
    return int(value)


def evicted(desk: Desk) -> float | None:
    return desk.metrics.registry.get_sample_value("sluice_lease_records_evicted_total")


async def test_repeated_request_is_answered_from_its_record(desk: Desk) -> None:
    """The same id with the same body gets the recorded answer; with another body it is a conflict; neither is charged."""
    assert await desk.limiter.recall(KEY, BODY) is None
    await answered(desk)
    assert await desk.limiter.recall(KEY, BODY) == b"answer"
    with pytest.raises(RequestIdReused, match="request-1"):
        await desk.limiter.recall(KEY, OTHER_BODY)
    assert [level.remaining for level in await desk.limiter.usage("a")] == [940]


async def test_request_ids_belong_to_credential_and_tenant(desk: Desk) -> None:
    """The same id of another tenant is another request."""
    await answered(desk)
    assert await desk.limiter.recall(("key-1", "b", "request-1"), OTHER_BODY) is None


async def test_refused_request_is_decided_anew(desk: Desk) -> None:
    """A refusal leaves no record: the same id may be admitted later, with any body."""
    full = bucket("concurrency", 0)
    assert not (await desk.spend(full, request_key=KEY, request_digest=BODY)).admitted
    assert await desk.limiter.recall(KEY, OTHER_BODY) is None


async def test_twin_that_arrives_before_the_answer_is_not_charged(desk: Desk) -> None:
    """Between admission and its recorded answer, and after it, the same id is not admitted a second time."""
    charge = desk.charge(TPM, request_key=KEY, request_digest=BODY)
    await desk.limiter.spend(charge)
    for call in (desk.limiter.recall(KEY, BODY), desk.spend(TPM, request_key=KEY, request_digest=BODY)):
        with pytest.raises(RequestInFlight):
            await call
    with pytest.raises(RequestIdReused):
        await desk.spend(TPM, request_key=KEY, request_digest=OTHER_BODY)
    await desk.limiter.record(charge.lease_id, b"answer")
    with pytest.raises(RequestInFlight):
        await desk.spend(TPM, request_key=KEY, request_digest=BODY)
    assert [level.remaining for level in await desk.limiter.usage("a")] == [940]


@pytest.mark.parametrize("ending", ["settle", "expire", "release"])
async def test_record_outlives_its_lease_for_a_while(desk: Desk, ending: str) -> None:
    """An ended lease answers replays and late settles until 60 s after its end, then it is gone."""
    charge = await answered(desk)
    match ending:
        case "settle":
            await desk.limiter.settle(charge.lease_id, SCOPE, Usage(1, 1))
        case "expire":
            desk.clock.advance(30_000)  # and nobody is there to notice
        case "release":
            await desk.limiter.release(charge.lease_id)
    desk.clock.advance(59_999)
    assert await desk.limiter.recall(KEY, BODY) == b"answer"
    assert (await desk.limiter.settle(charge.lease_id, SCOPE, Usage(1, 1))).tokens_charged == 2

    desk.clock.advance(1)
    assert await desk.limiter.recall(KEY, BODY) is None
    with pytest.raises(NotFound):
        await desk.limiter.settle(charge.lease_id, SCOPE, Usage(1, 1))
    assert counted(desk) == 0


async def test_cancelled_request_may_be_asked_again(desk: Desk) -> None:
    """A cancelled lease answers no replay: the same id is admitted anew, and that record stays when the old one goes."""
    charge = await answered(desk)
    await desk.limiter.cancel(charge.lease_id, SCOPE)
    assert await desk.limiter.recall(KEY, BODY) is None
    desk.clock.advance(50_000)
    await answered(desk, answer=b"second")
    desk.clock.advance(10_000)
    assert await desk.limiter.recall(KEY, BODY) == b"second"


async def test_lease_that_was_never_answered_frees_its_request_id(desk: Desk) -> None:
    """Where no answer was recorded by the end of the lease, there is none to repeat, and the id is open again."""
    await desk.spend(TPM, request_key=KEY, request_digest=BODY)
    desk.clock.advance(30_000)
    assert await desk.limiter.recall(KEY, BODY) is None


async def test_oldest_ended_record_leaves_first_when_room_is_short() -> None:
    """At the bound the oldest ended records go, counted; leases in flight never do."""
    desk = Desk(records_bytes=3 * await weight())
    keys = [("key-1", "a", f"request-{number}") for number in range(4)]
    flying = await answered(desk, keys[0], b"")
    for key in keys[1:3]:
        charge = await answered(desk, key, b"")
        await desk.limiter.settle(charge.lease_id, SCOPE, Usage(1, 1))
    await answered(desk, keys[3], b"")
    assert [await desk.limiter.recall(key, BODY) for key in keys] == [b"", None, b"", b""]
    assert evicted(desk) == 1
    assert flying.lease_id == (await desk.limiter.leases())[0].lease_id


async def test_full_of_leases_in_flight_admits_nothing() -> None:
    """Where leases in flight fill the bound, admission is refused before anything is charged, and resumes when one ends."""
    desk = Desk(records_bytes=2 * await weight())
    charge = await answered(desk, answer=b"")
    await desk.spend(TPM)
    with pytest.raises(LeaseRecordsFull) as raised:
        await desk.spend(TPM)
    assert (raised.value.code, raised.value.status) == ("lease_records_full", 503)
    assert [level.remaining for level in await desk.limiter.usage("a")] == [880]

    await desk.limiter.settle(charge.lease_id, SCOPE, Usage(10, 50))
    assert (await desk.spend(TPM)).admitted


async def test_answers_count_towards_the_bound() -> None:
    """An answer's bytes are counted, once, and given back with its record."""
    one = await weight(request_key=KEY)
    desk = Desk(records_bytes=10 * one)
    charge = await answered(desk, answer=b"x" * 1000)
    await desk.limiter.record(charge.lease_id, b"x" * 600)
    assert counted(desk) == one + 600
    await answered(desk, (*KEY, "long"), b"x" * (8 * one))
    with pytest.raises(LeaseRecordsFull):
        await desk.spend(TPM)


async def test_many_short_leases_keep_indexes_small() -> None:
    """100 000 settled requests of distinct ids leave records within the bound, and no trace in the order of expiry."""
    most_bytes = 1_000_000
    desk = Desk(records_bytes=most_bytes)
    records = desk.limiter._records
    for number in range(100_000):
        charge = desk.charge(request_key=("key-1", "a", str(number)), request_digest=BODY, ttl_ms=3_600_000)
        await desk.limiter.spend(charge)
        await desk.limiter.record(charge.lease_id, b"")
        await desk.limiter.settle(charge.lease_id, SCOPE, Usage(1, 1))
    kept = len(records._ended)
    assert (kept, kept) == (len(records._ended_in_order), len(records._by_request))
    assert most_bytes * 0.9 < counted(desk) <= most_bytes
    assert len(records._expiries) <= 66
    assert evicted(desk) == 100_000 - kept


async def test_buckets_that_warm_requests_share_are_counted_once() -> None:
    """Eight buckets weigh with the first of the leases that keep them, and again where a limit has moved; the rest weigh alike without."""

    async def grows(*buckets: Bucket) -> int:
        before = counted(desk)
        await desk.spend(*buckets)
        return counted(desk) - before

    desk = Desk()
    shared = [bucket("qps", 1e6, "subject", ("a", str(number))) for number in range(8)]
    alone = await grows()
    first, second = await grows(*shared), await grows(*shared)
    moved = await grows(bucket("qps", 2e6, "subject", ("a", "0")), *shared[1:])

    assert (first > alone, second, moved > alone) == (True, alone, True)
    assert first - alone == 8 * (moved - alone)


async def test_a_bucket_that_charges_nothing_is_kept_by_no_lease() -> None:
    """How large a request may be weighs on no record, and is told in the answer all the same."""
    weights, told = [], []
    for buckets in ([TPM], [TPM, bucket("request_tokens", 1e6)]):
        desk = Desk()
        told.append([level.bucket.dimension for level in (await desk.spend(*buckets)).levels])
        weights.append(counted(desk))

    assert told == [["tpm"], ["tpm", "request_tokens"]]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("text", ["short", "\N{GRINNING FACE}" * 124])
async def test_counted_bytes_are_those_of_memory(text: str) -> None:
    """Whatever the size of its ids, a record is counted with what memory grows by, and at most a quarter more."""
    desk, leases = Desk(), 1000
    gc.collect()
    tracemalloc.start()
    for number in range(leases):
        tenant, model, request_id, subject = [f"{number:03d}{name}{text}" for name in ("t", "m", "r", "s")]
        buckets = [
            bucket("qps", 1e6),
            bucket("tpm", 1e9),
            bucket("concurrency", 1e6),
            bucket("tokens_in_flight", 1e6, "subject", ("a", subject)),
        ]
        key = ("key-1", tenant, request_id)
        charge = desk.charge(*buckets, tenant=tenant, model=model, request_key=key, request_digest=number.to_bytes(32, "big"))
        await desk.limiter.spend(charge)
        await desk.limiter.record(charge.lease_id, bytes(500))
        await desk.limiter.settle(charge.lease_id, SCOPE, Usage(number, number))
    del charge, buckets, key, tenant, model, request_id, subject
    desk.limiter._meters._by_key.clear()
    desk.limiter._spent.sums(desk.clock.monotonic_ms() + 600_000)
    gc.collect()
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 1.0 <= counted(desk) / grown <= 1.25
