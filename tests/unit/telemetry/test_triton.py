"""Triton's page: several models in several versions, its TensorRT-LLM backend, and times in micro- and milliseconds."""

from app.telemetry.snapshot import Reading
from app.telemetry.triton import NAMES
from tests.unit.telemetry.pages import of_page, over_time
from tests.unit.telemetry.samples import FOLDER, needs_samples


def test_versions_of_a_model_add_up():
    """Each model's queue is that of all its versions, on all GPUs."""
    text = "".join(
        f'nv_inference_pending_request_count{{model="{model}",{where}}} {waiting}\n'
        for model, where, waiting in [
            ("a", 'version="1",gpu_uuid="x"', 1),
            ("a", 'version="1",gpu_uuid="y"', 2),
            ("a", 'version="2"', 4),
            ("b", 'version="1"', 0),
        ]
    )
    assert of_page(NAMES, text) == {"a": Reading(waiting=7), "b": Reading(waiting=0)}


def test_the_tensorrt_llm_backend():
    """It tells its own queue, batch and cache: 1000 blocks of 64 tokens, 60 % in use."""
    requests = {"waiting": 3, "context": 1, "scheduled": 4, "active": 7, "max": 512}
    blocks = {"fraction": 0.6, "used": 600, "max": 1000, "free": 400, "tokens_per": 64}
    text = "".join(f'nv_trt_llm_request_metrics{{model="m",request_type="{kind}",version="1"}} {n}\n' for kind, n in requests.items())
    text += "".join(
        f'nv_trt_llm_kv_cache_block_metrics{{kv_cache_block_type="{k}",model="m",version="1"}} {n}\n' for k, n in blocks.items()
    )
    text += 'nv_inference_pending_request_count{model="m",version="1"} 0\n'
    assert of_page(NAMES, text) == {
        "m": Reading(kv_ratio=0.6, waiting=3, running=4, capacity_tokens=64_000, rank_tokens=64_000, free_tokens=25_600)
    }


def durations(us, requests):
    return f'nv_inference_request_duration_us{{model="m",version="1"}} {us}\nnv_inference_request_success{{model="m",version="1"}} {requests}\n'


def responses(ms, count):
    name = "nv_inference_first_response_histogram_ms"
    return f'{name}_sum{{model="m",version="1"}} {ms}\n{name}_count{{model="m",version="1"}} {count}\n'


def test_the_response_time_in_microseconds():
    """25 000 000 µs over 100 requests are 250 ms."""
    assert [told["m"].ttft_ms for told in over_time(NAMES, durations(0, 0), durations(25_000_000, 100))] == [None, 250.0]


def test_the_first_response_in_milliseconds_wins():
    """Where the first response is told, 25 000 ms over 100 are 250 ms, however long whole requests take."""
    before, now = durations(0, 0) + responses(0, 0), durations(9e9, 100) + responses(25_000, 100)
    assert [told["m"].ttft_ms for told in over_time(NAMES, before, now)] == [None, 250.0]


def test_two_units_never_meet():
    """When the first response begins to be told, its milliseconds are not compared with the microseconds of before."""
    pages = [durations(1000, 1), durations(2000, 2) + responses(90_000, 90), durations(3000, 3) + responses(90_250, 91)]
    assert [told["m"].ttft_ms for told in over_time(NAMES, *pages)] == [None, None, 250.0]


@needs_samples
def test_a_real_page():
    """Two models, none with a cache, nothing pending."""
    told = of_page(NAMES, (FOLDER / "metrics/triton_real.prom").read_bytes())
    assert told == {"densenet_onnx": Reading(waiting=0), "simple_string": Reading(waiting=0)}
