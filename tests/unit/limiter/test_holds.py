"""When room comes in a bucket that is held: by how long units were held until now, and never past the ends of the leases."""

import pytest

from app.limiter.holds import MOST_SLOTS_READ, Holds

HOUR_MS = 3_600_000.0


def holding(*ends_ms: float, units: int = 100, now_ms: float = 0.0) -> Holds:
    """One lease of so many units for each end, all begun now."""
    holds = Holds()
    for end_ms in ends_ms:
        holds.take(units, end_ms, now_ms)
    return holds


def tell(holds: Holds, held_ms: float, units: int = 100, now_ms: float = 0.0) -> None:
    """A call begins and ends now, and is said to have taken so long."""
    holds.take(units, HOUR_MS, now_ms)
    holds.free(units, HOUR_MS, now_ms, held_ms)


def test_before_any_end_nothing_can_be_told() -> None:
    """The end of a lease is when a gateway has been gone for too long: it tells once it is nearer than all the time waited for."""
    holds = holding(30_000, 30_000)
    assert [holds.room_in_ms(100, now_ms) for now_ms in (0, 14_999, 15_000, 29_999)] == [None, None, 15_000, 1]


@pytest.mark.parametrize(("units", "wait_ms"), [(1, 5), (100, 500), (200, 1000), (400, 2000)])
def test_a_full_bucket_turns_over_once_in_the_time_that_units_are_held(units: int, wait_ms: float) -> None:
    """Of 400 units that are held for 2 s each, 100 come free in half a second, although the leases would live for 30 s."""
    holds = holding(30_000, 30_000, 30_000, 30_000)
    tell(holds, 2000)

    assert holds.room_in_ms(units, 0) == wait_ms


def test_large_calls_weigh_as_much_as_they_hold() -> None:
    """After 300 units held for 1 s and, fading by a 32nd, 100 held for 5 s, a unit is held for (96.875 x 5 + 300 x 1) / 396.875 s."""
    holds = holding(30_000)
    tell(holds, 5000, units=100)
    tell(holds, 1000, units=300)

    assert holds.room_in_ms(100, 0) == 1977


def test_calls_that_have_become_long_are_soon_believed() -> None:
    """After a hundred short calls, a hundred long ones tell all but a twentieth of the mean."""
    holds = holding(HOUR_MS)
    for held_ms in [100.0] * 100 + [10_000.0] * 100:
        tell(holds, held_ms)

    assert 9500 < (holds.room_in_ms(100, 0) or 0) <= 10_000


def test_work_that_never_ran_tells_nothing() -> None:
    """A cancelled lease makes room at once, and does not make the others look short."""
    holds = holding(30_000, 30_000)
    holds.free(100, 30_000, 1, None)
    assert holds.room_in_ms(100, 1) is None

    tell(holds, 2000, now_ms=1)
    assert (holds.total, holds.room_in_ms(100, 1)) == (100, 2000)


def test_who_asks_a_stuck_bucket_again_and_again_waits_twice_as_long_each_time() -> None:
    """Short calls were seen, then long ones fill the bucket: ten asks span 25 s, where one each 25 ms would be a thousand."""
    holds = holding(HOUR_MS)
    tell(holds, 50)
    now_ms, waits = 0.0, []
    for _ in range(10):
        waits.append(holds.room_in_ms(100, now_ms) or 0)
        now_ms += waits[-1]

    assert waits == [50, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800]


def test_no_wait_passes_the_ends_of_the_leases() -> None:
    """Where calls take long, the first to end tells; a request that needs two of three waits for the second."""
    holds = holding(10_000, 20_000, 30_000)
    tell(holds, HOUR_MS, now_ms=1000)

    assert [holds.room_in_ms(units, 1000) for units in (1, 100, 101, 300)] == [9000, 9000, 19_000, 29_000]


def test_a_renewed_lease_counts_by_its_new_end() -> None:
    """Renewed for an hour it is no longer the one to wait for; made shorter it is again."""
    holds = holding(10_000, 20_000)
    tell(holds, HOUR_MS)
    holds.renew(100, 10_000, HOUR_MS)
    assert holds.room_in_ms(100, 0) == 20_000

    holds.renew(100, HOUR_MS, 15_000)
    assert holds.room_in_ms(100, 0) == 15_000


def test_ends_near_to_each_other_are_told_as_the_last() -> None:
    """Within a tenth of a second no end is told too early."""
    holds = holding(9_901, 9_950, 10_000)
    tell(holds, HOUR_MS)
    assert [holds.room_in_ms(units, 0) for units in (100, 300)] == [10_000, 10_000]


def test_more_ends_than_are_looked_at_leave_the_usual_time() -> None:
    """A refusal stays cheap: what needs a 65th slot is told by the time that units are held alone."""
    holds = holding(*[1000.0 * (number + 1) for number in range(MOST_SLOTS_READ + 1)], units=1)
    tell(holds, 100_000)

    assert holds.room_in_ms(MOST_SLOTS_READ, 0) == 64_000
    assert holds.room_in_ms(MOST_SLOTS_READ + 1, 0) == 100_000


def test_what_is_given_back_leaves_no_slots() -> None:
    """Ten thousand leases of ten thousand different ends leave nothing behind."""
    ends_ms = [float(number * 37 % 100_000) for number in range(10_000)]
    holds = holding(*ends_ms)
    for end_ms in ends_ms:
        holds.free(100, end_ms, 0, 1)
    assert (holds.total, holds._units, holds._slots) == (0, {}, [])
