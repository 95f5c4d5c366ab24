"""What calls come to: response, recovery, use of the engine, overflows."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.arrivals import Arrival
from bench.experience import (
    Batch,
    Promise,
    due,
    ended,
    gaps_s,
    overflowing,
    possible_tokens,
    recovery_s,
    share,
    tokens,
    ttfts,
)
from bench.traffic import Call, End

PROMISE = Promise(ttft_s=1.0, itl_s=0.05)


def call(due_s: float, *tokens_s: float, end: End = "completed", most_tokens: int = 10, lasts_s: float = 1.0) -> Call:
    arrival = Arrival(due_s, prompt_tokens=most_tokens - 1, max_tokens=1, generated=1)
    return Call(arrival, sent_s=due_s, decided_s=due_s, ended_s=due_s + lasts_s, end=end, tokens_s=tokens_s)


def test_response_counts_from_the_intended_moment() -> None:
    """The time to the first token begins when the request was due; where none came it is infinite or what stands for it; refused calls have none."""
    calls = [call(1.0, 1.5, 1.6), call(2.0, end="aborted"), call(3.0, end="refused")]

    assert ttfts(calls) == [0.5, math.inf]
    assert ttfts(calls, never_s=15.0) == [0.5, 15.0]


def test_window_holds_its_beginning_and_not_its_end() -> None:
    """Calls are told apart by when they were due."""
    calls = [call(1.0), call(2.0), call(3.0)]

    assert due(calls, 1.0, 3.0) == calls[:2]


def test_recovery_is_when_arrivals_are_served_in_time_again() -> None:
    """A call that was due 3.05 s after the end was late: the first window of 1 s without it begins 3.1 s after the end."""
    slow = [call(10.0 + at, 10.0 + at + 2.0) for at in (0.5, 1.5, 2.5, 3.05)]
    quick = [call(10.0 + at, 10.0 + at + 0.1) for at in (3.5, 4.0, 4.5, 5.0)]

    found = recovery_s(slow + quick, since_s=10.0, until_s=16.0, target_s=0.25, window_s=1.0)

    assert found == pytest.approx(3.1)


def test_recovery_is_at_once_where_nothing_was_late() -> None:
    """Without a late arrival the first window is the recovery."""
    calls = [call(at / 2, at / 2 + 0.1) for at in range(20)]

    assert recovery_s(calls, since_s=2.0, until_s=10.0, target_s=0.25, window_s=1.0) == 0


@pytest.mark.parametrize("calls", [[], [call(1.0, end="refused")], [call(at / 2, end="aborted") for at in range(20)]])
def test_nobody_let_in_or_served_is_no_recovery(calls: list[Call]) -> None:
    """An engine that is spared all requests has not recovered, nor has one that gives no token."""
    assert math.inf == recovery_s(calls, since_s=0.0, until_s=10.0, target_s=0.25, window_s=1.0)


def test_engine_could_have_made_a_full_batch_at_every_step() -> None:
    """10 s of 16 sequences at 20 ms, 5 s of 4 and 5 s of 16 again: 8000 + 1000 + 4000 tokens."""
    batches = [Batch(0, 16), Batch(10, 4), Batch(15, 16)]

    assert possible_tokens(batches, 0.02, 20.0) == pytest.approx(13_000)


def test_tokens_after_the_end_do_not_count() -> None:
    """Tokens count when they came, also those of calls that were lost later."""
    assert tokens([call(0.0, 1.0, 2.0, 3.0), call(0.0, 1.5, end="failed")], until_s=3.0) == 3


def test_gaps_are_within_streams() -> None:
    """Between the last token of one stream and the first of the next there is no gap."""
    assert gaps_s([call(0.0, 1.0, 1.5, 3.0), call(0.0, 9.0), call(0.0, end="refused")]) == [0.5, 1.5]


@pytest.mark.parametrize(
    ("tokens_s", "end", "kept"),
    [
        ((1.0, 1.04, 1.08), "completed", True),
        ((1.0,), "completed", True),
        ((1.01, 1.02), "completed", False),  # the first token after 1.01 s
        ((0.5, 0.51, 0.7), "completed", False),  # 0.1 s between tokens in the mean
        ((0.5, 0.55), "failed", False),
        ((), "refused", False),
    ],
)
def test_promise_is_kept_by_whole_answers_in_time(tokens_s: tuple[float, ...], end: End, kept: bool) -> None:
    """A good call got all of its tokens, the first and the mean of the others in time; a bound may be reached."""
    assert kept is PROMISE.kept(call(0.0, *tokens_s, end=end))


def test_calls_are_counted_by_their_end() -> None:
    """Each call has one end."""
    assert ended([call(0.0, end="refused"), call(0.0), call(1.0)], "completed") == 2


def test_overflowing_calls_find_the_room_taken() -> None:
    """60 and 30 of 100 are in flight: 10 more fit, 20 do not; refused and ended calls hold nothing."""
    fits, overflows = call(0.6, most_tokens=10), call(0.7, most_tokens=20, end="refused")
    calls = [call(0.0, most_tokens=60), call(0.5, most_tokens=30), fits, overflows, call(2.0, most_tokens=100, lasts_s=0.1)]

    assert overflowing(calls, 100) == [overflows]


@given(st.lists(st.tuples(st.floats(0, 10), st.integers(2, 100)), max_size=20), st.integers(1, 200))
def test_refused_calls_take_no_room(drawn: list[tuple[float, int]], room_tokens: int) -> None:
    """Where every call is refused, those overflow that are larger than the room alone."""
    calls = [call(at, most_tokens=size, end="refused") for at, size in drawn]

    assert [each for each in calls if each.arrival.most_tokens > room_tokens] == overflowing(calls, room_tokens)


def test_share_is_in_per_cent() -> None:
    """One of four is 25 %; of nothing it is none."""
    assert (share(1, 4), share(0, 0)) == (25.0, 0.0)
