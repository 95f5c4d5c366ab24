"""vLLM's page: its names of now and before, and pages of real engines."""

import json

import pytest

from app.telemetry.exposition import PageBroken
from app.telemetry.pages import Pages
from app.telemetry.snapshot import Reading
from app.telemetry.vllm import NAMES
from tests.unit.telemetry.pages import OPENMETRICS, TEXT, of_page, over_time, page
from tests.unit.telemetry.samples import FOLDER, needs_samples


def test_the_signals_of_a_page():
    """KV, waiting and running are what the page says; what it does not say is unknown."""
    assert of_page(NAMES, page()) == {"m": Reading(kv_ratio=0.5, waiting=4, running=2)}


def test_the_kv_gauge_before_its_renaming():
    """An engine of before the renaming is read all the same; where both names stand, the new one counts."""
    old = b'vllm:gpu_cache_usage_perc{model_name="m"} 0.62\n'
    assert of_page(NAMES, old)["m"].kv_ratio == 0.62
    assert of_page(NAMES, old + page(kv=0.93))["m"].kv_ratio == 0.93


def test_reasons_of_waiting_are_not_more_waiting():
    """The gauges that split the queue by reason are another name, and add nothing to it."""
    reasons = b'vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 50\n'
    assert of_page(NAMES, page() + reasons)["m"].waiting == 4


@pytest.mark.parametrize(
    ("labels", "tokens"),
    [
        ('block_size="16",num_gpu_blocks="100"', 1600),
        # Where blocks differ in size, their number times one of the sizes is not what fits.
        ('block_size="16",num_gpu_blocks="100",kv_cache_size_tokens="2400"', 2400),
        ('block_size="16",num_gpu_blocks="100",kv_cache_size_tokens="None"', None),
        ('block_size="16",num_gpu_blocks="None"', None),
        ('block_size="16",num_gpu_blocks="0"', None),
        ('block_size="16",num_gpu_blocks="100",kv_cache_size_tokens="0"', None),
        ('block_size="16"', None),
    ],
)
def test_the_size_of_the_cache(labels, tokens):
    """The engine's own count of tokens comes first, then blocks times their size."""
    told = of_page(NAMES, page() + f'vllm:cache_config_info{{engine="0",{labels}}} 1.0\n'.encode())["m"]
    assert (told.capacity_tokens, told.free_tokens) == (tokens, tokens and tokens // 2)


def steps(sum_s, count, name):
    return f'vllm:{name}_sum{{model_name="m"}} {sum_s}\nvllm:{name}_count{{model_name="m"}} {count}\n'


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("inter_token_latency_seconds", "iteration_ms"),
        ("time_per_output_token_seconds", "iteration_ms"),
        ("time_to_first_token_seconds", "ttft_ms"),
    ],
)
def test_means_between_two_pages(name, field):
    """25 s over 100 since the last page are 250 ms each: not 0.25, not 250 000."""
    first, second = over_time(NAMES, steps(5, 10, name), steps(30, 110, name))
    assert (getattr(first["m"], field), getattr(second["m"], field)) == (None, 250.0)


@needs_samples
def test_the_recorded_pages():
    """Every recorded page gives the readings that its author wrote down."""
    expected = json.loads((FOLDER / "telemetry/expected.json").read_text())["expected"]
    wrong = {}
    for name, want in expected.items():
        got = recorded((FOLDER / "telemetry" / name).read_bytes())
        if any(got[key] != value for key, value in want.items() if key in got):
            wrong[name] = (got, want)

    assert wrong == {}


def recorded(body):
    try:
        pages = Pages(NAMES).read(body, OPENMETRICS if b"# EOF" in body else TEXT)
    except PageBroken:
        return {"parse_error": True, "kv": None, "waiting": None}
    model, told = next(iter(pages.items()), (None, None))
    reading = told.reading if told else Reading()
    got = {"parse_error": False, "model": model, "kv": reading.kv_ratio, "waiting": reading.waiting, "running": reading.running}
    if told and told.ttft:
        (total,) = told.ttft.totals.values()
        got["ttft_mean_ms"] = total.sum / total.count * told.ttft.mean.unit_ms
    return got


@needs_samples
def test_a_real_busy_page():
    """The page of a real engine under load: 8 running, 4 waiting, 16384 blocks of 128 almost all free."""
    idle, busy = ((FOLDER / f"vllm_real/m_{state}.prom").read_text() for state in ("idle", "busy"))
    before, now = (told["tiny"] for told in over_time(NAMES, idle, busy))
    assert before == Reading(kv_ratio=0.0, waiting=0, running=0, capacity_tokens=2_097_152, rank_tokens=2_097_152, free_tokens=2_097_152)

    # 2_097_152 * (1 - 0.0004883110541414881) = 2_096_127.93; 8.567383557 s / 902 steps = 9.498 ms
    assert (now.waiting, now.running, now.free_tokens) == (4, 8, 2_096_127)
    assert now.kv_ratio == pytest.approx(0.000488, abs=1e-6)
    assert now.iteration_ms == pytest.approx(9.498, abs=1e-3)


@needs_samples
def test_a_real_page_of_two_ranks():
    """Two ranks of one model: 719 + 72 waiting, 11 + 24 running, the fuller cache counts."""
    told = of_page(NAMES, (FOLDER / "metrics/vllm_v1_busy_2engines.prom").read_bytes())
    # 20000 * 16 * (1 - 0.231717933836332) = 245_850.2; 20000 * 16 * (1 - 0.4565217391304348) = 173_913.04
    assert told == {
        "org/m": Reading(
            kv_ratio=0.4565217391304348,
            waiting=791,
            running=35,
            capacity_tokens=640_000,
            rank_tokens=320_000,
            free_tokens=245_850 + 173_913,
        )
    }


@needs_samples
def test_a_page_in_the_middle_of_the_renaming():
    """A page with the old and the new gauge, and a cache without a rank, is read as one engine: 7281 blocks of 16, all free."""
    told = of_page(NAMES, (FOLDER / "metrics/vllm_mixed_v0_v1.prom").read_bytes())
    assert told == {
        "facebook/opt-125m": Reading(kv_ratio=0.0, waiting=0, running=0, capacity_tokens=116_496, rank_tokens=116_496, free_tokens=116_496)
    }
