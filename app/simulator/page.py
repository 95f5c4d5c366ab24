"""The stand-in engine's /metrics page, under the names of vLLM v1 or of its predecessor."""

from collections.abc import Callable
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from app.simulator.readings import Gauges, Outcome

Names = Literal["v1", "v0"]

LATENCY_BUCKETS_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
TOKEN_BUCKETS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
KV_NAME: dict[Names, str] = {"v1": "vllm:kv_cache_usage_perc", "v0": "vllm:gpu_cache_usage_perc"}
INTER_TOKEN_NAME: dict[Names, str] = {"v1": "vllm:inter_token_latency_seconds", "v0": "vllm:time_per_output_token_seconds"}


class VllmPage:
    """All series of one engine; a new page is a restarted engine, whose counters begin at zero."""

    def __init__(self, model: str, *, blocks: int, block_size: int, names: Names, gauges: Callable[[], Gauges]) -> None:
        self._registry = CollectorRegistry()
        self._labels = {"model_name": model} if names == "v0" else {"engine": "0", "model_name": model}
        self._read_gauges = gauges
        self._kv = self._gauge(KV_NAME[names], "KV-cache usage. 1 means 100 percent usage.")
        self._waiting = self._gauge("vllm:num_requests_waiting", "Requests that wait to be processed.")
        self._running = self._gauge("vllm:num_requests_running", "Requests in the batch.")
        self._preemptions = self._counter("vllm:num_preemptions", "Preemptions since the engine started.")
        self._prompt_tokens = self._counter("vllm:prompt_tokens", "Prompt tokens processed.")
        self._generation_tokens = self._counter("vllm:generation_tokens", "Tokens generated.")
        self._time_to_first_token_s = self._histogram("vllm:time_to_first_token_seconds", LATENCY_BUCKETS_S)
        self._inter_token_s = self._histogram(INTER_TOKEN_NAME[names], LATENCY_BUCKETS_S)
        self._iteration_tokens = self._histogram("vllm:iteration_tokens_total", TOKEN_BUCKETS)
        self._success = Counter(
            "vllm:request_success", "Requests by how they ended.", [*self._labels, "finished_reason"], registry=self._registry
        )
        for reason in ("stop", "length", "abort", "error"):
            self._success.labels(**self._labels, finished_reason=reason)
        config = {"block_size": str(block_size), "num_gpu_blocks": str(blocks)} | ({} if names == "v0" else {"engine": "0"})
        Gauge("vllm:cache_config_info", "Shape of the cache.", list(config), registry=self._registry).labels(**config).set(1)

    def stepped(self, outcome: Outcome) -> None:
        """Count one step."""
        self._iteration_tokens.observe(outcome.computed_tokens)
        self._preemptions.inc(outcome.preempted)
        self._prompt_tokens.inc(outcome.prompt_tokens)
        self._generation_tokens.inc(len(outcome.first_token_s) + len(outcome.next_token_s))
        for wait_s in outcome.first_token_s:
            self._time_to_first_token_s.observe(wait_s)
        for gap_s in outcome.next_token_s:
            self._inter_token_s.observe(gap_s)
        self._success.labels(**self._labels, finished_reason="length").inc(len(outcome.finished))
        self._success.labels(**self._labels, finished_reason="abort").inc(outcome.aborted)

    def render(self) -> bytes:
        """The page as text 0.0.4."""
        now = self._read_gauges()
        self._kv.set(now.kv_ratio)
        self._waiting.set(now.waiting)
        self._running.set(now.running)
        return generate_latest(self._registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, list(self._labels), registry=self._registry).labels(**self._labels)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(name, text, list(self._labels), registry=self._registry).labels(**self._labels)

    def _histogram(self, name: str, buckets: tuple[float, ...]) -> Histogram:
        metric = Histogram(name, f"Histogram of {name}.", list(self._labels), buckets=buckets, registry=self._registry)
        return metric.labels(**self._labels)
