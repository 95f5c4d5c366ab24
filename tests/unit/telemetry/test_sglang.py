"""SGLang's page: names with a colon and an underscore, ranks, priorities, the size of the cache."""

import pytest

from app.telemetry.sglang import NAMES
from app.telemetry.snapshot import Reading
from tests.unit.telemetry.pages import of_page, over_time
from tests.unit.telemetry.samples import FOLDER, needs_samples

COMMON = 'engine_type="unified",model_name="m",pp_rank="0",moe_ep_rank="0"'


def lines(separator, rows):
    return "".join(f"sglang{separator}{name}{{{COMMON},{labels}}} {value}\n" for name, labels, value in rows)


@pytest.mark.parametrize("separator", [":", "_"])
def test_ranks(separator):
    """Two data-parallel ranks of two slices each: queues add up, the fuller cache counts, both caches have room."""
    rows = [
        row
        for rank, usage, queue in ((0, 0.25, 3), (1, 0.5, 4))
        for slice_ in (0, 1)
        for labels in [f'dp_rank="{rank}",tp_rank="{slice_}"']
        for row in [
            ("token_usage", labels, usage),
            ("num_queue_reqs", labels, queue),
            ("num_running_reqs", labels, 8),
            ("max_total_num_tokens", labels, 60000),
        ]
    ]
    # 60000 * 0.75 + 60000 * 0.5
    assert of_page(NAMES, lines(separator, rows)) == {
        "m": Reading(kv_ratio=0.5, waiting=7, running=16, capacity_tokens=120_000, rank_tokens=60_000, free_tokens=75_000)
    }


def test_priorities_are_parts_of_the_whole():
    """The series of a single priority repeats what the one of all priorities has counted."""
    rows = [("num_queue_reqs", f'tp_rank="0",priority="{priority}"', waiting) for priority, waiting in (("", 5), ("1", 2), ("9", 3))]
    assert of_page(NAMES, lines(":", rows))["m"].waiting == 5


@pytest.mark.parametrize(
    ("rows", "tokens"),
    [
        ([("cache_config_info", 'page_size="16",num_pages="1000"', 1)], 16_000),
        ([("cache_config_info", 'page_size="16",num_pages="1000"', 1), ("max_total_num_tokens", 'tp_rank="0"', 15_990)], 15_990),
        ([("num_used_tokens", 'tp_rank="0"', 4000)], None),
    ],
)
def test_the_size_of_the_cache(rows, tokens):
    """Told in tokens, else by pages and their size; used tokens over a rounded share would only guess it."""
    assert of_page(NAMES, lines(":", [("token_usage", 'tp_rank="0"', 0.5), *rows]))["m"].capacity_tokens == tokens


def test_the_model_label_before_its_renaming():
    """Pages that name the model by `name` alone are of that model."""
    assert of_page(NAMES, 'sglang:token_usage{name="m"} 0.5\n') == {"m": Reading(kv_ratio=0.5)}


def test_latencies_over_callers():
    """Histograms that are split by caller are taken together: (1 + 2) s over (4 + 8) tokens are 250 ms."""
    rows = [
        (f"{name}_{part}", f'caller="{caller}"', value)
        for name in ("inter_token_latency_seconds", "time_to_first_token_seconds")
        for part, caller, value in (("sum", "a", 1), ("count", "a", 4), ("sum", "b", 2), ("count", "b", 8))
    ]
    _, told = over_time(NAMES, lines(":", [(name, labels, 0) for name, labels, _ in rows]), lines(":", rows))
    assert (told["m"].iteration_ms, told["m"].ttft_ms) == (250.0, 250.0)


@needs_samples
def test_a_real_page():
    """A real engine in deep trouble: 162 running, 2826 waiting; it does not tell how large its cache is."""
    told = of_page(NAMES, (FOLDER / "metrics/sglang_real.prom").read_bytes())
    assert told == {"meta-llama/Llama-3.1-8B-Instruct": Reading(kv_ratio=0.28, waiting=2826, running=162)}
