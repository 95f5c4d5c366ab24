"""When a refused caller may come back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.decision.retry import default_retry_ms, limit_headers, retry_after_ms, retry_headers
from app.limiter.charge import Bucket, Level, Refusal


def bucket(dimension="qps", limit=10.0):
    return Bucket("tenant", ("tenant", "a"), dimension, limit)


def refusal(frees_in_ms, **kwargs):
    return Refusal(bucket(), 11, frees_in_ms, **kwargs)


def test_the_default_is_three_seconds_within_a_fifth():
    """Where nothing can be computed, callers wait 3 s, 2.4 s at the least draw and 3.6 s at the largest."""
    assert [default_retry_ms(draw) for draw in (0.0, 0.5, 1.0)] == [2400, 3000, 3600]


def test_every_refusing_bucket_must_have_room():
    """The longest of the waits counts, plus up to a fifth of jitter."""
    refusals = [refusal(800), refusal(1500)]

    assert retry_after_ms(refusals, 0.0) == 1500
    assert retry_after_ms(refusals, 1.0) == 1800


def test_waiting_cannot_help_a_request_larger_than_its_bucket():
    """One bucket that is too small for the request takes the retry time away, whatever the others say."""
    assert retry_after_ms([refusal(800), refusal(None, over_capacity=True)], 0.5) is None
    assert retry_headers(None) == {"x-should-retry": "false"}


def test_a_bucket_that_cannot_say_counts_with_the_default():
    """A closed bucket gives 3 s within a fifth, and a longer known wait beside it stays."""
    assert retry_after_ms([refusal(None, shed=True)], 0.5) == 3000
    assert retry_after_ms([refusal(None, shed=True), refusal(9000)], 0.5) == 9000


def test_nobody_is_told_to_wait_longer_than_two_minutes():
    """Waits are capped at 120 s, also beside a bucket that cannot say."""
    assert retry_after_ms([refusal(3_600_000)], 0.0) == 120_000
    assert retry_after_ms([refusal(3_600_000), refusal(None, shed=True)], 0.0) == 120_000


@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=5), st.floats(0, 1))
def test_the_wait_is_never_shorter_than_what_a_bucket_needs(waits, draw):
    """A caller who waits as told finds every bucket free, unless the cap was reached."""
    told = retry_after_ms([refusal(wait) for wait in waits], draw)

    assert told is not None
    assert told >= min(max(waits), 120_000)


def test_headers_carry_seconds_and_milliseconds():
    """Seconds are rounded up, so that the shorter header never invites too early."""
    assert retry_headers(1001) == {"Retry-After": "2", "retry-after-ms": "1001", "x-should-retry": "true"}
    assert retry_headers(1)["Retry-After"] == "1"


def test_limit_headers_follow_the_draft():
    """One policy and one state per dimension, the window only where there is one."""
    levels = (Level(bucket("tpm", 30000.0), 29700.4, 600), Level(bucket("concurrency", 8.0), 7, 0))

    assert limit_headers(levels) == {
        "RateLimit-Policy": '"tpm";q=30000;w=60, "concurrency";q=8',
        "RateLimit": '"tpm";r=29700;t=1, "concurrency";r=7;t=0',
    }
    assert limit_headers(()) == {}


def test_limit_headers_tell_clients_of_quotas_alone():
    """The room in the engines' caches is told to the gateway and to no client."""
    room = (Level(bucket("request_tokens", 85000.0), 85000, 0), Level(bucket("tokens_in_flight", 85000.0), 84700, 0))

    assert limit_headers((*room, Level(bucket("concurrency", 8.0), 7, 0))) == {
        "RateLimit-Policy": '"concurrency";q=8',
        "RateLimit": '"concurrency";r=7;t=0',
    }
    assert limit_headers(room) == {}


@pytest.mark.parametrize(("limit", "shown"), [(0.1, "q=1;w=10"), (0.3, "q=1;w=4"), (2.5, "q=2;w=1"), (10.0, "q=10;w=1")])
def test_fractional_rates_are_whole_in_headers(limit, shown):
    """The header fields hold integers; a rate under one a second is one in a longer window, never a larger promise."""
    assert limit_headers((Level(bucket("qps", limit), 1, 0),))["RateLimit-Policy"] == f'"qps";{shown}'
