"""The pages of engines other than vLLM, each as a table: a series' name, its type, and what of the engine it tells.

What a page lacks matters as much as what it has: llama.cpp and TGI name no model, TensorRT-LLM has no gauge at all, and
llama.cpp, TGI, Triton and TensorRT-LLM count a request only once it has ended.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.simulator.exposition import Histogram, Type, family
from app.simulator.readings import Gauges, Outcome
from app.simulator.totals import Totals

OtherKind = Literal["sglang", "llamacpp", "tgi", "triton", "trtllm"]


@dataclass(frozen=True, slots=True)
class Told:
    """All that a series can tell."""

    now: Gauges
    totals: Totals
    capacity_tokens: int


@dataclass(frozen=True, slots=True)
class Series:
    """One metric; `labels` come after those that all metrics of its page have."""

    name: str
    type: Type
    read: Callable[[Told], float | Histogram]
    labels: Mapping[str, str] = field(default_factory=dict)


def _per(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def _us(seconds: float) -> int:
    return round(seconds * 1e6)


SGLANG = (
    Series("sglang:prompt_tokens_total", "counter", lambda t: t.totals.prompt_tokens),
    Series("sglang:generation_tokens_total", "counter", lambda t: t.totals.generation_tokens),
    Series("sglang:token_usage", "gauge", lambda t: t.now.kv_ratio),
    Series("sglang:num_used_tokens", "gauge", lambda t: t.now.kv_ratio * t.capacity_tokens),
    Series("sglang:max_total_num_tokens", "gauge", lambda t: t.capacity_tokens),
    Series("sglang:num_running_reqs", "gauge", lambda t: t.now.running),
    Series("sglang:num_queue_reqs", "gauge", lambda t: t.now.waiting),
    Series("sglang:num_requests_total", "counter", lambda t: t.totals.finished.count),
    Series("sglang:time_to_first_token_seconds", "histogram", lambda t: t.totals.first_token_s),
    Series("sglang:inter_token_latency_seconds", "histogram", lambda t: t.totals.inter_token_s),
    Series("sglang:e2e_request_latency_seconds", "histogram", lambda t: t.totals.finished.whole_s),
)
LLAMACPP = (
    Series("llamacpp:prompt_tokens_total", "counter", lambda t: t.totals.prompt_tokens),
    Series("llamacpp:prompt_seconds_total", "counter", lambda t: t.totals.finished.prompt_s),
    Series("llamacpp:tokens_predicted_total", "counter", lambda t: t.totals.finished.generated),
    Series("llamacpp:tokens_predicted_seconds_total", "counter", lambda t: t.totals.finished.decode_s),
    Series("llamacpp:n_decode_total", "counter", lambda t: t.totals.steps),
    Series("llamacpp:n_busy_slots_per_decode", "gauge", lambda t: _per(t.totals.sequences, t.totals.steps)),
    Series("llamacpp:predicted_tokens_seconds", "gauge", lambda t: _per(t.totals.finished.generated, t.totals.finished.decode_s)),
    Series("llamacpp:requests_processing", "gauge", lambda t: t.now.running),
    Series("llamacpp:requests_deferred", "gauge", lambda t: t.now.waiting),
)
TGI = (
    Series("tgi_request_success", "counter", lambda t: t.totals.finished.count),
    Series("tgi_queue_size", "gauge", lambda t: t.now.waiting),
    Series("tgi_batch_current_size", "gauge", lambda t: t.now.running),
    Series("tgi_batch_current_max_tokens", "gauge", lambda t: t.now.longest_tokens),
    Series("tgi_batch_inference_count", "counter", lambda t: t.totals.steps, {"method": "decode"}),
    Series("tgi_request_queue_duration", "histogram", lambda t: t.totals.finished.queued_s),
    Series("tgi_request_inference_duration", "histogram", lambda t: t.totals.finished.compute_s),
    Series("tgi_request_mean_time_per_token_duration", "histogram", lambda t: t.totals.finished.compute_per_token_s),
    Series("tgi_request_duration", "histogram", lambda t: t.totals.finished.whole_s),
)
TRITON = (
    Series("nv_inference_request_success", "counter", lambda t: t.totals.finished.count),
    Series("nv_inference_count", "counter", lambda t: t.totals.finished.count),
    Series("nv_inference_request_duration_us", "counter", lambda t: _us(t.totals.finished.whole_s.sum)),
    Series("nv_inference_queue_duration_us", "counter", lambda t: _us(t.totals.finished.queued_s.sum)),
    Series("nv_inference_compute_infer_duration_us", "counter", lambda t: _us(t.totals.finished.compute_s.sum)),
    Series("nv_inference_pending_request_count", "gauge", lambda t: t.now.waiting),
)
TRTLLM = (
    Series("trtllm_request_success_total", "counter", lambda t: t.totals.finished.count, {"finished_reason": "length"}),
    Series("trtllm_request_queue_time_seconds", "histogram", lambda t: t.totals.finished.queued_s),
    Series("trtllm_time_to_first_token_seconds", "histogram", lambda t: t.totals.finished.first_token_s),
    Series("trtllm_time_per_output_token_seconds", "histogram", lambda t: t.totals.finished.decode_per_token_s),
    Series("trtllm_e2e_request_latency_seconds", "histogram", lambda t: t.totals.finished.whole_s),
)


def _labels(kind: OtherKind, model: str) -> dict[str, str]:
    table: dict[OtherKind, dict[str, str]] = {
        "sglang": {"model_name": model},
        "llamacpp": {},
        "tgi": {},
        "triton": {"model": model, "version": "1"},
        "trtllm": {"model_name": model, "engine_type": "trtllm"},
    }
    return table[kind]


TABLES: dict[OtherKind, tuple[Series, ...]] = {"sglang": SGLANG, "llamacpp": LLAMACPP, "tgi": TGI, "triton": TRITON, "trtllm": TRTLLM}


class TablePage:
    """All series of one engine of this kind; a new page is a restarted engine, whose counters begin at zero."""

    def __init__(self, kind: OtherKind, model: str, *, capacity_tokens: int, gauges: Callable[[], Gauges]) -> None:
        self._series = TABLES[kind]
        self._labels = _labels(kind, model)
        self._capacity_tokens = capacity_tokens
        self._read_gauges = gauges
        self._totals = Totals()

    def stepped(self, outcome: Outcome) -> None:
        """Count one step."""
        self._totals.add(outcome)

    def render(self) -> bytes:
        """The page as text 0.0.4."""
        told = Told(self._read_gauges(), self._totals, self._capacity_tokens)
        return "".join(family(s.name, s.type, {**self._labels, **s.labels}, s.read(told)) for s in self._series).encode()
