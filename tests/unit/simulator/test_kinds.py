"""The pages of other engines: the names, labels and gaps of each, over what the same scheduler did."""

import asyncio
import math
import re
from dataclasses import dataclass

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.clock import ManualClock
from app.simulator.engine import Engine, EngineConfig
from app.simulator.faults import Fault

OTHERS = ("sglang", "llamacpp", "tgi", "triton", "trtllm")
LABELS = {
    "sglang": {"model_name": "m"},
    "llamacpp": {},
    "tgi": {},
    "triton": {"model": "m", "version": "1"},
    "trtllm": {"model_name": "m", "engine_type": "trtllm"},
}


def engine(kind, **options):
    """Eight blocks of four tokens, ten milliseconds a step, two steps to the first token."""
    config = EngineConfig("m", kind=kind, **({"blocks": 8, "block_size": 4, "ttft_ms": 20, "itl_ms": 10} | options))
    return Engine(config, ManualClock(), None)


@dataclass(frozen=True)
class Sample:
    """Value and labels of one line."""

    value: float
    labels: dict[str, str]


def told(one, own=False):
    """The lines of the page by name, as they are written; those of buckets and of the stand-in's own series left out."""
    page = {}
    for line in one.render().decode().splitlines():
        if not line.startswith("#"):
            name, labels, value = re.fullmatch(r"([\w:]+)(?:\{(.*)\})? (\S+)", line).groups()
            page[name] = Sample(float(value), dict(re.findall(r'(\w+)="(.*?)"', labels or "")))
    return {n: sample for n, sample in page.items() if not n.endswith("_bucket") and (own or not n.startswith("sluice_"))}


def values(one):
    return {name: pytest.approx(sample.value, abs=1e-9) for name, sample in told(one).items()}


async def after_one_request(kind):
    """Six prompt tokens and three generated ones, alone: admitted at 10 ms, tokens at 20, 30 and 40 ms."""
    one = engine(kind)
    task = asyncio.create_task(drain(one, 6, 3))
    for _ in range(4):
        await asyncio.sleep(0)
        one._clock.advance(10)
        one.step()
    await task
    return one


async def drain(one, prompt, most):
    return [token async for token in one.generate(prompt, most)]


async def while_busy(kind):
    """A batch of one, with 16 of its 16 + 16 tokens in half of the cache, and one request that waits."""
    one = engine(kind, max_num_seqs=1)
    tasks = [asyncio.create_task(drain(one, 16, 16)), asyncio.create_task(drain(one, 4, 4))]
    await asyncio.sleep(0)
    one.step()
    one.step()
    told_now = values(one)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return told_now


@pytest.mark.parametrize("kind", OTHERS)
async def test_labels(kind):
    """Each sample has the labels of its engine: the model under the engine's own name for it, or none at all."""
    for name, sample in told(await after_one_request(kind)).items():
        extra = {"tgi_batch_inference_count": {"method": "decode"}, "trtllm_request_success_total": {"finished_reason": "length"}}
        assert {**LABELS[kind], **extra.get(name, {})} == sample.labels


async def test_sglang_counts():
    """SGLang counts tokens as they come, and latencies in seconds."""
    page = values(await after_one_request("sglang"))

    assert page["sglang:prompt_tokens_total"] == 6
    assert page["sglang:generation_tokens_total"] == 3
    assert page["sglang:num_requests_total"] == 1
    assert (page["sglang:time_to_first_token_seconds_sum"], page["sglang:time_to_first_token_seconds_count"]) == (0.02, 1)
    assert (page["sglang:inter_token_latency_seconds_sum"], page["sglang:inter_token_latency_seconds_count"]) == (0.02, 2)


async def test_sglang_gauges():
    """SGLang tells the cache as a share and in tokens: half of 32."""
    page = await while_busy("sglang")

    assert (page["sglang:token_usage"], page["sglang:num_used_tokens"], page["sglang:max_total_num_tokens"]) == (0.5, 16, 32)
    assert (page["sglang:num_running_reqs"], page["sglang:num_queue_reqs"]) == (1, 1)


async def test_llamacpp():
    """llama.cpp counts generated tokens and their time once a request ends, and decodes as they happen."""
    page = values(await after_one_request("llamacpp"))

    assert page == {
        "llamacpp:prompt_tokens_total": 6,
        "llamacpp:prompt_seconds_total": 0.01,
        "llamacpp:tokens_predicted_total": 3,
        "llamacpp:tokens_predicted_seconds_total": 0.02,
        "llamacpp:n_decode_total": 4,
        "llamacpp:n_busy_slots_per_decode": 1,
        "llamacpp:predicted_tokens_seconds": 150,
        "llamacpp:requests_processing": 0,
        "llamacpp:requests_deferred": 0,
    }


async def test_llamacpp_while_busy():
    """While a request runs its tokens aren't counted yet, but the decodes are; slots and the queue are gauges."""
    page = await while_busy("llamacpp")

    assert (page["llamacpp:requests_processing"], page["llamacpp:requests_deferred"]) == (1, 1)
    assert (page["llamacpp:tokens_predicted_total"], page["llamacpp:n_decode_total"]) == (0, 2)


def test_llamacpp_before_its_first_generation():
    """Before anything was generated the rates are nan, as 0 / 0 is."""
    page = told(engine("llamacpp"))

    assert math.isnan(page["llamacpp:predicted_tokens_seconds"].value)
    assert math.isnan(page["llamacpp:n_busy_slots_per_decode"].value)


async def test_tgi():
    """TGI counts a finished request's queue, inference, whole time and time per token: 30 ms for three tokens."""
    page = values(await after_one_request("tgi"))

    assert page["tgi_request_success"] == 1
    assert page["tgi_batch_inference_count"] == 4
    assert page["tgi_request_queue_duration_sum"] == 0.01
    assert page["tgi_request_inference_duration_sum"] == 0.03
    assert (page["tgi_request_mean_time_per_token_duration_sum"], page["tgi_request_mean_time_per_token_duration_count"]) == (0.01, 1)
    assert page["tgi_request_duration_sum"] == 0.04


async def test_tgi_while_busy():
    """TGI tells its queue, its batch, and how many tokens the batch will hold at its longest."""
    page = await while_busy("tgi")

    assert (page["tgi_queue_size"], page["tgi_batch_current_size"], page["tgi_batch_current_max_tokens"]) == (1, 1, 32)


async def test_triton():
    """Triton counts finished requests, and their time in whole microseconds."""
    page = values(await after_one_request("triton"))

    assert page == {
        "nv_inference_request_success": 1,
        "nv_inference_count": 1,
        "nv_inference_request_duration_us": 40_000,
        "nv_inference_queue_duration_us": 10_000,
        "nv_inference_compute_infer_duration_us": 30_000,
        "nv_inference_pending_request_count": 0,
    }
    assert (await while_busy("triton"))["nv_inference_pending_request_count"] == 1


async def test_trtllm():
    """TensorRT-LLM tells of finished requests alone: the queue, the first token, the mean gap of 10 ms between tokens."""
    page = values(await after_one_request("trtllm"))

    assert page["trtllm_request_success_total"] == 1
    assert (page["trtllm_request_queue_time_seconds_sum"], page["trtllm_request_queue_time_seconds_count"]) == (0.01, 1)
    assert page["trtllm_time_to_first_token_seconds_sum"] == 0.02
    assert (page["trtllm_time_per_output_token_seconds_sum"], page["trtllm_time_per_output_token_seconds_count"]) == (0.01, 1)
    assert page["trtllm_e2e_request_latency_seconds_sum"] == 0.04


async def test_trtllm_has_no_gauge():
    """Nothing on TensorRT-LLM's page tells what runs or waits now: busy, it reads as it did before its first request."""
    assert "gauge" not in engine("trtllm").page.render().decode()
    assert await while_busy("trtllm") == values(engine("trtllm"))


async def test_buckets_are_cumulative():
    """A histogram's buckets count all values up to their bound, the last one all of them."""
    page = (await after_one_request("sglang")).render().decode()

    assert 'sglang:inter_token_latency_seconds_bucket{model_name="m",le="0.005"} 0\n' in page
    assert 'sglang:inter_token_latency_seconds_bucket{model_name="m",le="0.02"} 2\n' in page
    assert 'sglang:inter_token_latency_seconds_bucket{model_name="m",le="+Inf"} 2\n' in page


@pytest.mark.parametrize("kind", ["vllm", *OTHERS])
def test_every_page_tells_the_size_of_the_batch(kind):
    """The stand-in's own series stand on the page of every kind, without labels."""
    sample = told(engine(kind, max_num_seqs=7), own=True)["sluice_engine_max_num_seqs"]

    assert (sample.value, sample.labels) == (7, {})


@pytest.mark.parametrize("kind", OTHERS)
async def test_a_restart_begins_at_zero(kind):
    """A restarted engine's page is that of one that never worked."""
    one = await after_one_request(kind)
    one.set_fault(Fault("restart"))

    assert one.render() == engine(kind).render()


async def test_a_model_with_odd_characters_is_escaped():
    """Quotes, backslashes and line ends in the model's name do not break the page."""
    one = Engine(EngineConfig('a"b\\c\nd', kind="sglang"), ManualClock(), None)

    families = text_string_to_metric_families(one.page.render().decode())
    assert {'a"b\\c\nd'} == {sample.labels["model_name"] for family in families for sample in family.samples}


def test_older_names_are_vllms_alone():
    """Names of before on another engine's page would do nothing, so they are refused."""
    with pytest.raises(ValueError, match="names: only vLLM's page"):
        EngineConfig("m", kind="tgi", names="v0")
