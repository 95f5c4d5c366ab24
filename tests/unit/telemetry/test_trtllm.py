"""TensorRT-LLM's page: histograms of old workers, gauges of newer ones, and those that Dynamo adds."""

import pytest

from app.telemetry.snapshot import Reading
from app.telemetry.trtllm import NAMES
from tests.unit.telemetry.pages import of_page, over_time
from tests.unit.telemetry.samples import FOLDER, needs_samples

LABELS = 'model_name="m",engine_type="trtllm"'


def test_the_signals_of_a_newer_engine():
    """Queue, batch and cache are told: 16384 blocks of 32 tokens, a quarter in use."""
    gauges = {
        "num_requests_waiting": 3,
        "num_requests_running": 8,
        "kv_cache_utilization": 0.25,
        "kv_cache_max_blocks": 16384,
        "kv_cache_tokens_per_block": 32,
    }
    text = "".join(f"trtllm_{name}{{{LABELS}}} {value}\n" for name, value in gauges.items())
    assert of_page(NAMES, text) == {
        "m": Reading(kv_ratio=0.25, waiting=3, running=8, capacity_tokens=524_288, rank_tokens=524_288, free_tokens=393_216)
    }


@pytest.mark.parametrize("name", ["dynamo_component_gpu_cache_usage_percent", "dynamo_component_kvstats_gpu_cache_usage_percent"])
@pytest.mark.parametrize("model", [',model="m"', ""])
def test_dynamos_own_gauge(name, model):
    """Dynamo's gauge is a share despite its name, the fullest rank counts, and it is of the page's model where it names none."""
    text = f"trtllm_request_success_total{{{LABELS}}} 1\n"
    text += "".join(f'{name}{{dynamo_component="backend",dp_rank="{rank}"{model}}} {kv}\n' for rank, kv in ((0, 0.25), (1, 0.5)))
    assert of_page(NAMES, text)["m"].kv_ratio == 0.5
    assert of_page(NAMES, text.replace("0.5", "50"))["m"].kv_ratio is None


@pytest.mark.parametrize("prefix", ["trtllm_", "trtllm:"])
def test_latencies(prefix):
    """25 s over 100 are 250 ms to the first token and between tokens, under both forms of the name."""

    def histograms(sum_s, count):
        names = [f"{prefix}{name}" for name in ("time_to_first_token_seconds", "time_per_output_token_seconds")]
        return "".join(f"{name}_sum{{{LABELS}}} {sum_s}\n{name}_count{{{LABELS}}} {count}\n" for name in names)

    _, told = over_time(NAMES, histograms(5, 10), histograms(30, 110))
    assert (told["m"].ttft_ms, told["m"].iteration_ms) == (250.0, 250.0)


@needs_samples
def test_a_recorded_page_of_an_old_worker():
    """Histograms alone: the model is told, and nothing of what it holds or who waits."""
    assert of_page(NAMES, (FOLDER / "metrics/trtllm_dynamo.prom").read_bytes()) == {"Qwen/Qwen3-0.6B": Reading()}
