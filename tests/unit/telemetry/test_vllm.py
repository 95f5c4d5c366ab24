"""vLLM's page as readings: names new and old, ranks, impossible values, free tokens, step time."""

import json

import pytest

from app.telemetry.exposition import PageBroken
from app.telemetry.snapshot import Reading
from app.telemetry.vllm import VllmPages
from tests.unit.telemetry.pages import OPENMETRICS, TEXT, page
from tests.unit.telemetry.samples import FOLDER, needs_samples


def read(text, model="m"):
    body = text if isinstance(text, bytes) else text.encode()
    return VllmPages().read(body, TEXT).get(model)


def test_the_signals_of_a_page():
    """KV, waiting and running are what the page says; what it does not say is unknown."""
    assert read(page()) == Reading(kv_ratio=0.5, waiting=4, running=2)


def test_the_old_kv_name_counts_where_the_new_one_is_absent():
    """Before the rename KV had another name, and is read all the same."""
    assert read('vllm:gpu_cache_usage_perc{model_name="m"} 0.62\n').kv_ratio == 0.62


def test_the_new_kv_name_wins():
    """On a page with both names the new one counts, even where it is impossible: the old may be a leftover."""
    old = 'vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.1\n'
    assert read(old + 'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.93\n').kv_ratio == 0.93
    assert read(old + 'vllm:kv_cache_usage_perc{engine="0",model_name="m"} NaN\n').kv_ratio is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-0.01", "87.5", "1.0001"])
def test_impossible_kv_is_unknown(value):
    """A KV usage outside 0..1 is unknown, never 0 and never taken for a percentage."""
    assert read(page(kv=value)) == Reading(kv_ratio=None, waiting=4, running=2)


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1", "2.5", "1e300", "9007199254740993e3"])
def test_impossible_counts_are_unknown(value):
    """A count that is no whole number from 0 that a page can hold exactly is unknown."""
    assert read(page(waiting=value)) == Reading(kv_ratio=0.5, waiting=None, running=2)


def test_engine_ranks():
    """Over data-parallel ranks KV is the largest and counts add up; tensor and pipeline slices count once."""
    text = "".join(
        f'vllm:{name}{{engine="{engine}",model_name="m",tp_rank="{slice_}"}} {value}\n'
        for name, engine, slice_, value in [
            ("kv_cache_usage_perc", 0, 0, 0.2),
            ("kv_cache_usage_perc", 0, 1, 0.3),
            ("kv_cache_usage_perc", 1, 0, 0.25),
            ("num_requests_waiting", 0, 0, 7),
            ("num_requests_waiting", 0, 1, 7),
            ("num_requests_waiting", 1, 0, 2),
        ]
    )
    assert read(text) == Reading(kv_ratio=0.3, waiting=9)


def test_one_unknown_rank_makes_the_reading_unknown():
    """A rank whose value is impossible may be the fullest, so the whole reading is unknown."""
    text = 'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.2\nvllm:kv_cache_usage_perc{engine="1",model_name="m"} NaN\n'
    assert read(text).kv_ratio is None


def test_models_are_kept_apart():
    """Two models on one page have readings of their own; a series without a model belongs to none."""
    readings = VllmPages().read(page(kv=0.1) + page(kv=0.9, model="n") + b"vllm:kv_cache_usage_perc 0.5\n", TEXT)
    assert {model: reading.kv_ratio for model, reading in readings.items()} == {"m": 0.1, "n": 0.9}


def test_an_empty_page_tells_nothing():
    """A page without a known series has no readings, not readings of 0."""
    assert VllmPages().read(b"", TEXT) == {}


@pytest.mark.parametrize(
    ("shapes", "free"),
    [
        # 100 blocks of 16: half of 1600 on rank 0, a quarter free of 1600 on rank 1
        ('{block_size="16",num_gpu_blocks="100"}', 800 + 400),
        ('{block_size="16",num_gpu_blocks="100",engine="0"}|{block_size="16",num_gpu_blocks="200",engine="1"}', 800 + 800),
        ('{block_size="16",num_gpu_blocks="100",engine="0"}', None),
        ('{block_size="16",num_gpu_blocks="None"}', None),
        ('{block_size="16"}', None),
    ],
)
def test_free_tokens(shapes, free):
    """Blocks times their size times what is free, over the ranks; unknown where a rank's shape is."""
    text = 'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5\nvllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75\n'
    text += "".join(f"vllm:cache_config_info{shape} 1.0\n" for shape in shapes.split("|"))
    assert read(text).free_tokens == free


def steps(sum_s, count, name="inter_token_latency_seconds"):
    return f'vllm:{name}_sum{{model_name="m"}} {sum_s}\nvllm:{name}_count{{model_name="m"}} {count}\n'.encode()


@pytest.mark.parametrize("name", ["inter_token_latency_seconds", "time_per_output_token_seconds"])
def test_step_time_between_two_pages(name):
    """25 s over 100 steps since the last page are 250 ms a step, under the new name and the old."""
    pages = VllmPages()
    assert pages.read(steps(5, 10, name), TEXT)["m"].iteration_ms is None
    assert pages.read(steps(30, 110, name), TEXT)["m"].iteration_ms == 250.0


def test_step_time_is_unknown_without_steps_and_once_after_a_restart():
    """No step between two pages, or counters that began anew, give no step time; the page after does."""
    pages = VllmPages()
    pages.read(steps(5, 10), TEXT)
    assert pages.read(steps(5, 10), TEXT)["m"].iteration_ms is None
    assert pages.read(steps(1, 2), TEXT)["m"].iteration_ms is None
    assert pages.read(steps(1.5, 12), TEXT)["m"].iteration_ms == 50.0


@needs_samples
def test_the_recorded_pages():
    """Every recorded page gives the readings that its author wrote down."""
    expected = json.loads((FOLDER / "telemetry/expected.json").read_text())["expected"]
    wrong = {}
    for name, want in expected.items():
        body = (FOLDER / "telemetry" / name).read_bytes()
        try:
            readings = VllmPages().read(body, OPENMETRICS if b"# EOF" in body else TEXT)
        except PageBroken:
            readings = None
        told = next(iter((readings or {}).items()), (None, Reading()))
        got = {
            "kv": told[1].kv_ratio,
            "waiting": told[1].waiting,
            "running": told[1].running,
            "model": told[0],
            "parse_error": readings is None,
        }
        if any(got[key] != value for key, value in want.items() if key in got):
            wrong[name] = (got, want)

    assert wrong == {}


@needs_samples
def test_a_real_busy_page():
    """The page of a real engine under load: 8 running, 4 waiting, 16384 blocks of 128 almost all free."""
    pages = VllmPages()
    idle, busy = ((FOLDER / f"vllm_real/m_{state}.prom").read_bytes() for state in ("idle", "busy"))
    assert pages.read(idle, TEXT)["tiny"] == Reading(kv_ratio=0.0, waiting=0, running=0, free_tokens=2_097_152)

    told = pages.read(busy, TEXT)["tiny"]
    # 2_097_152 * (1 - 0.0004883110541414881) = 2_096_127.93; 8.567383557 s / 902 steps = 9.498 ms
    assert (told.waiting, told.running, told.free_tokens) == (4, 8, 2_096_127)
    assert told.kv_ratio == pytest.approx(0.000488, abs=1e-6)
    assert told.iteration_ms == pytest.approx(9.498, abs=1e-3)


@needs_samples
def test_a_real_page_of_two_ranks():
    """Two ranks of one model: 719 + 72 waiting, 11 + 24 running, the fuller cache counts."""
    told = VllmPages().read((FOLDER / "metrics/vllm_v1_busy_2engines.prom").read_bytes(), TEXT)["org/m"]
    # 20000 * 16 * (1 - 0.231717933836332) = 245_850.2; 20000 * 16 * (1 - 0.4565217391304348) = 173_913.04
    assert told == Reading(kv_ratio=0.4565217391304348, waiting=791, running=35, free_tokens=245_850 + 173_913)
