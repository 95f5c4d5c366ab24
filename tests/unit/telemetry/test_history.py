"""What pages say over time: means between them, the floor of KV, smoothing, stillness; restarts and gaps."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimators.counters import Total
from app.telemetry.history import FORGET_MS, MOST_ITERATION_MS, History
from app.telemetry.names import MILLISECONDS, SECONDS, histogram
from app.telemetry.pages import Counted, PageReading
from app.telemetry.snapshot import Reading
from app.telemetry.vllm import NAMES
from tests.unit.telemetry.pages import over_time

STEPS = histogram("steps", SECONDS)


def told(kv=None, steps=None, first=None, progress=()):
    """A page: `steps` and `first` are (sum, count) by rank, in seconds."""

    def counted(by_rank):
        return by_rank and Counted(STEPS, {(str(rank),): Total(*total) for rank, total in enumerate(by_rank)})

    return {"m": PageReading(Reading(kv_ratio=kv), counted(steps), counted(first), progress)}


def push(pages, step_ms=100.0):
    history = History()
    return [history.push(page, number * step_ms)["m"] for number, page in enumerate(pages)]


def iterations(*steps, step_ms=100.0):
    return [reading.iteration_ms for reading in push([told(steps=one) for one in steps], step_ms)]


def test_means_between_pages():
    """25 s more over 100 more is 250 ms, for steps and first tokens alike."""
    _, now = push([told(steps=[(5, 10)], first=[(1, 4)]), told(steps=[(30, 110)], first=[(26, 104)])])
    assert (now.iteration_ms, now.ttft_ms) == (250.0, 250.0)


def test_a_mean_over_ranks_weighs_by_what_each_measured():
    """3 s over 10 on one rank and 1 s over 30 on the other are 100 ms."""
    assert iterations([(5, 10), (5, 10)], [(8, 20), (6, 40)]) == [None, 100.0]


def test_restarted_counters():
    """Counters that began anew tell nothing once, and the page after that does; the mean of before stands meanwhile."""
    assert iterations([(5, 10)], [(1, 2)], [(1.5, 12)]) == [None, None, 50.0]
    assert iterations([(5, 10)], [(7.5, 20)], [(1, 30)]) == [None, 250.0, 250.0]


def test_a_restarted_rank_does_not_hide_behind_another():
    """One rank that began anew makes the whole mean unknown once, though the sum over ranks has grown."""
    assert iterations([(5, 100), (5, 10)], [(0.125, 2), (50, 500)], [(0.375, 4), (50.5, 506)]) == [None, None, 93.75]


@pytest.mark.parametrize(
    "pages",
    [
        [[(5, 10)], [(5, 10)]],
        [[(5, 10)], None],
        [None, [(5, 10)]],
        [[(5, 10)], [(5, 10), (5, 10)]],
    ],
)
def test_no_mean_without_anything_measured(pages):
    """No step between two pages, no total on one of them, or other ranks than before: no step time."""
    assert iterations(*pages)[-1] is None


def test_counters_under_another_name_are_not_compared():
    """A page that changes the name it tells a latency under has no earlier page to be compared with."""
    milliseconds = {"m": PageReading(Reading(), Counted(histogram("steps_ms", MILLISECONDS), {("0",): Total(9000, 110)}))}
    assert push([told(steps=[(5, 10)]), milliseconds])[-1].iteration_ms is None


def test_latencies_are_smoothed():
    """A second after a step of 50 ms, one of 250 ms counts half: 150 ms. Downwards the ratio halves: from 400 ms to 100 ms, 200 ms."""
    assert iterations([(0, 0)], [(0.05, 1)], [(0.30, 2)], step_ms=1000.0) == [None, pytest.approx(50.0), pytest.approx(150.0)]
    assert iterations([(0, 0)], [(0.4, 1)], [(0.5, 2)], step_ms=1000.0) == [None, pytest.approx(400.0), pytest.approx(200.0)]


def test_an_idle_engine_has_no_latency():
    """What was measured stands while nothing new is, and is forgotten after ten seconds."""
    values = iterations([(0, 0)], *[[(0.25, 1)]] * 12, step_ms=1000.0)
    assert values[1:11] == [250.0] * 10
    assert values[11:] == [None, None]
    assert FORGET_MS == 10_000.0


def test_an_impossible_step_is_no_sample():
    """A sum that jumps by a million seconds is not smoothed in: the mean of before stands, and the next page counts again."""
    sums_s = [0.0, 0.25, 1_000_000.25, 1_000_000.5, 1_000_000.75]
    values = iterations(*[[(sum_s, count)] for count, sum_s in enumerate(sums_s)])
    assert values == [None, 250.0, 250.0, 250.0, 250.0]


@pytest.mark.parametrize(
    ("seconds", "step_ms", "first_ms"), [(59, 59_000.0, 59_000.0), (61, None, 61_000.0), (3_599, None, 3_599_000.0), (3_601, None, None)]
)
def test_the_longest_times(seconds, step_ms, first_ms):
    """A step of a minute and a first token after an hour are the longest that can be; above they are unknown."""
    _, now = push([told(steps=[(0, 0)], first=[(0, 0)]), told(steps=[(seconds, 1)], first=[(seconds, 1)])])
    assert (now.iteration_ms, now.ttft_ms) == (step_ms, first_ms)


def floors(*readings):
    history = History()
    return [history.push(told(kv=kv), at_ms)["m"].kv_floor for at_ms, kv in readings]


def test_the_floor_of_kv():
    """The least KV of three seconds is known once pages span them."""
    values = floors(*((at_ms, 0.9) for at_ms in range(0, 2901, 100)), (3000, 0.95), (3100, 0.8), (3200, 0.9))
    assert values == [None] * 30 + [0.9, 0.8, 0.8]


def test_a_gap_begins_the_floor_anew():
    """Scrapes that fail add nothing; after a gap of more than a second nobody knows what was, and the window begins anew."""
    pages = [*((at_ms, 0.9) for at_ms in range(0, 3001, 100)), *((at_ms, 0.9) for at_ms in range(4500, 7501, 100))]
    values = floors(*pages)
    assert values[30:] == [0.9] + [None] * 30 + [0.9]


def test_an_unknown_kv_begins_the_floor_anew():
    """A page whose KV is impossible is no low reading, nor one that may be left out."""
    values = floors(*((at_ms, 0.9) for at_ms in range(0, 3001, 100)), (3100, None), (3200, 0.9))
    assert values[30:] == [0.9, None, None]


def stillness(*texts):
    return [readings["m"].still_ms for readings in over_time(NAMES, *texts)]


KV = 'vllm:kv_cache_usage_perc{model_name="m"} '
TOKENS = 'vllm:generation_tokens_total{model_name="m"} '


def test_stillness():
    """A page that says the same is still, whether idle or busy; a gauge or a token counter that moves ends it."""
    frozen = f"{KV}0.99\n{TOKENS}500\n"
    assert stillness(frozen, frozen, frozen, f"{KV}0.99\n{TOKENS}501\n", frozen) == [0.0, 100.0, 200.0, 0.0, 0.0]
    assert stillness(frozen, f"{KV}0.98\n{TOKENS}500\n") == [0.0, 0.0]


def test_what_is_no_work_is_no_movement():
    """The engine's own clock, its memory and `_created` series move on a page of an engine that does nothing."""
    pages = [
        f'{KV}0.99\nprocess_cpu_seconds_total {n}\nvllm:generation_tokens_created{{model_name="m"}} {n}\nhttp_requests_total {n}\n'
        for n in (1, 2)
    ]
    assert stillness(*pages) == [0.0, 100.0]


def test_a_stuck_nan_is_still():
    """A gauge that stays NaN does not look like movement."""
    assert stillness(f"{KV}NaN\n", f"{KV}NaN\n") == [0.0, 100.0]


def test_models_have_histories_of_their_own():
    """What one model on a page does is nothing that the other does; one that vanishes is forgotten."""
    one, other = KV + "0.5\n", KV.replace('"m"', '"n"')
    first, second, third, fourth = over_time(NAMES, f"{one}{other}0.1\n", f"{one}{other}0.2\n", one, f"{one}{other}0.2\n")
    assert (second["m"].still_ms, second["n"].still_ms) == (100.0, 0.0)
    assert (set(first), set(third)) == ({"m", "n"}, {"m"})
    assert (fourth["m"].still_ms, fourth["n"].still_ms) == (300.0, 0.0)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 10**6)), min_size=2, max_size=8))
def test_a_mean_is_never_negative_nor_made_of_a_restart(totals):
    """Whatever counters do, every sample is the growth of both between two pages, or none."""
    means = [
        (now[0] - before[0]) / (now[1] - before[1]) * 1000
        for before, now in itertools.pairwise(totals)
        if now[1] > before[1] and now[0] >= before[0]
    ]
    samples = [mean for mean in means if mean <= MOST_ITERATION_MS]
    value = iterations(*[[one] for one in totals])[-1]
    assert (value is None) == (not samples)
    assert value is None or min(samples) - 1e-6 <= value <= max(samples) * (1 + 1e-9) + 1e-6
