"""A vLLM metrics page of 50 KB, made here: the families of a real one, advancing as a busy engine's do."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from app.observability.metrics import FAST_BUCKETS

PAGE_BYTES = 50_000
ITL_S = 0.02
"""Time between two tokens: an engine that is busy and well."""
_BUCKETS_S = (*FAST_BUCKETS, 2.5, 5.0, 7.5, 10.0, 15.0, 20.0, 40.0, 80.0, 160.0)
_HISTOGRAMS = (
    "vllm:time_to_first_token_seconds",
    "vllm:inter_token_latency_seconds",
    "vllm:request_queue_time_seconds",
    "vllm:request_prefill_time_seconds",
    "vllm:request_decode_time_seconds",
    "vllm:e2e_request_latency_seconds",
    "vllm:iteration_tokens_total",
)
_MODEL = 'engine="0",model_name="{model}"'
_MOVING = re.compile(
    rb"^(vllm:(?:kv_cache_usage_perc|num_requests_running|prompt_tokens_total|generation_tokens_total"
    rb"|inter_token_latency_seconds|iteration_tokens_total)[^ ]*) ",
    re.MULTILINE,
)
"""Series that another step of the engine changes: gauges, token counters and the two histograms that count steps."""


class Page:
    """One engine's page; each rendering is a step further."""

    def __init__(self, text: bytes) -> None:
        """`text` is a page; its moving series get new values from then on, all others stay."""
        self._pieces: list[bytes] = []
        self._moving: list[bytes] = []
        end = 0
        for match in _MOVING.finditer(text):
            self._pieces.append(text[end : match.end()])
            self._moving.append(match[1])
            end = text.index(b"\n", match.end())
        self._rest = text[end:]

    @property
    def moving(self) -> int:
        """How many lines are new with each step."""
        return len(self._moving)

    def at(self, step: int) -> bytes:
        """The page after `step` steps."""
        return b"".join([*self._interleave(step), self._rest])

    def _interleave(self, step: int) -> Iterator[bytes]:
        for piece, series in zip(self._pieces, self._moving, strict=True):
            yield piece
            yield _value(series, step)


def _value(series: bytes, step: int) -> bytes:
    if series.startswith(b"vllm:kv_cache"):
        return b"%.4f" % (0.3 + step * 7 % 4000 / 10_000)
    if series.startswith(b"vllm:num_requests"):
        return b"%d.0" % (step * 5 % 64)
    if b"token_latency_seconds_sum" in series:
        return b"%.3f" % (ITL_S * (1000 + step * 3))
    return b"%d.0" % (1000 + step * 3)


def engine_page(model: str) -> Page:
    """The recorded page of a real engine where SLUICE_SAMPLES names one, else a made one of the same size."""
    samples = os.environ.get("SLUICE_SAMPLES")
    recorded = Path(samples) / "vllm_real" / "m_busy.prom" if samples else None
    return Page(recorded.read_bytes() if recorded and recorded.exists() else made_page(model))


def made_page(model: str) -> bytes:
    """A page of PAGE_BYTES: gauges, counters and histograms of the engine, then histograms of its HTTP server."""
    labels = _MODEL.format(model=model)
    lines = [f"vllm:{name}{{{labels}}} {value}" for name, value in _scalars()]
    lines += ['vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="28000"} 1.0']
    for name in _HISTOGRAMS:
        lines += _histogram(name, labels)
    handler = 0
    while sum(len(line) + 1 for line in lines) < PAGE_BYTES - 4000:
        lines += _histogram("http_request_duration_seconds", f'handler="/v1/route/{handler}",method="POST",status="2xx"')
        handler += 1
    padding = PAGE_BYTES - sum(len(line) + 1 for line in lines) - len("# HELP made \n")
    return "\n".join([*lines, f"# HELP made {'.' * padding}", ""]).encode()


def _scalars() -> list[tuple[str, str]]:
    gauges = [("kv_cache_usage_perc", "0.41"), ("num_requests_running", "12.0"), ("num_requests_waiting", "3.0")]
    return [*gauges, ("prompt_tokens_total", "812345.0"), ("generation_tokens_total", "412345.0"), ("num_preemptions_total", "0.0")]


def _histogram(name: str, labels: str) -> list[str]:
    lines = [f"# HELP {name} Histogram of {name}.", f"# TYPE {name} histogram"]
    lines += [f'{name}_bucket{{{labels},le="{bound}"}} {1000 + index}.0' for index, bound in enumerate((*_BUCKETS_S, "+Inf"))]
    return [*lines, f"{name}_sum{{{labels}}} 512.25", f"{name}_count{{{labels}}} 1022.0"]
