"""vLLM's page: which series carry which signal, under the names of v1 and of those before it, over several engine ranks.

When down: the reading is unknown (None), never 0; what an unknown signal means for a node is decided in view.py.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.telemetry.exposition import Exposition, Series
from app.telemetry.snapshot import Reading

KV_NAMES = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
"""The newest name first; where a page has several, the newest wins. The same holds for all tables here."""
WAITING_NAMES = ("vllm:num_requests_waiting",)
RUNNING_NAMES = ("vllm:num_requests_running",)
ITERATION_NAMES = ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")
CACHE_NAME = "vllm:cache_config_info"
"""Its labels carry the shape of the cache; it has no model label."""
WANTED = frozenset(
    [*KV_NAMES, *WAITING_NAMES, *RUNNING_NAMES, CACHE_NAME] + [f"{name}_{part}" for name in ITERATION_NAMES for part in ("sum", "count")]
)
MODEL_LABEL = "model_name"
RANK_LABELS = ("engine", "dp_rank")
"""Each combination is one scheduler with a cache of its own; tp_rank and pp_rank are slices of the same one."""
MOST = 2**53
"""Counts above this are not exact in a page's floats: impossible, hence unknown."""

Rank = tuple[str | None, ...]
Samples = Mapping[str, list[tuple[Mapping[str, str], float]]]


@dataclass(frozen=True, slots=True)
class Latency:
    """An engine's running total of step times: their sum in seconds, and how many."""

    sum_s: float
    count: float


class VllmPages:
    """Reads page after page of one engine; remembers only what the mean step time between two pages needs."""

    def __init__(self) -> None:
        self._exposition = Exposition(WANTED)
        self._latencies: dict[str, Latency] = {}

    def read(self, body: bytes, content_type: str) -> dict[str, Reading]:
        """Readings by model id as the page names it. Raises PageBroken."""
        samples = _by_name(self._exposition.read(body, content_type))
        latencies = {model: latency for model in _models(samples) if (latency := _latency(samples, model))}
        readings = {model: _reading(samples, model, self._latencies.get(model), latencies.get(model)) for model in _models(samples)}
        self._latencies = latencies
        return readings


def _by_name(samples: Mapping[Series, float]) -> dict[str, list[tuple[Mapping[str, str], float]]]:
    table: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for series, value in samples.items():
        table.setdefault(series.name, []).append((series.labels, value))
    return table


def _models(samples: Samples) -> list[str]:
    labelled = (labels for name in samples if name != CACHE_NAME for labels, _ in samples[name])
    return sorted({labels[MODEL_LABEL] for labels in labelled if MODEL_LABEL in labels})


def _reading(samples: Samples, model: str, before: Latency | None, now: Latency | None) -> Reading:
    kv = _ranks(samples, KV_NAMES, model, most=1.0)
    return Reading(
        kv_ratio=max(known) if (known := _all_known(kv)) else None,
        waiting=_count(_ranks(samples, WAITING_NAMES, model)),
        running=_count(_ranks(samples, RUNNING_NAMES, model)),
        free_tokens=_free_tokens(samples, kv),
        iteration_ms=_mean_ms(before, now),
    )


def _ranks(samples: Samples, names: Iterable[str], model: str, most: float = MOST) -> dict[Rank, float | None]:
    """The value of each rank under the first of `names` that the page has for this model; None where it is impossible.

    A rank that stands several times is sliced over tensor or pipeline ranks: the largest of its slices counts, once.
    """
    for name in names:
        values: dict[Rank, float | None] = {}
        for labels, value in samples.get(name, ()):
            if labels.get(MODEL_LABEL) == model:
                rank = tuple(labels.get(label) for label in RANK_LABELS)
                other = values.get(rank, 0.0)
                values[rank] = max(other, value) if other is not None and 0 <= value <= most else None
        if values:
            return values
    return {}


def _all_known(ranks: Mapping[Rank, float | None]) -> list[float]:
    """The values, or none at all where one rank is unknown: the others would hide it."""
    known = [value for value in ranks.values() if value is not None]
    return known if len(known) == len(ranks) else []


def _count(ranks: Mapping[Rank, float | None]) -> int | None:
    known = _all_known(ranks)
    return int(sum(known)) if known and all(value.is_integer() for value in known) else None


def _free_tokens(samples: Samples, kv: Mapping[Rank, float | None]) -> int | None:
    """Tokens that still fit, over all ranks; a cache without rank labels is the shape of each rank's."""
    shapes = {tuple(labels.get(label) for label in RANK_LABELS): _capacity(labels) for labels, _ in samples.get(CACHE_NAME, ())}
    free = 0
    for rank, ratio in kv.items():
        capacity = shapes.get(rank, shapes.get((None, None)))
        if capacity is None or ratio is None:
            return None
        free += math.floor(capacity * (1 - ratio))
    return free if kv else None


def _capacity(labels: Mapping[str, str]) -> int | None:
    blocks, size = labels.get("num_gpu_blocks", ""), labels.get("block_size", "")
    return int(blocks) * int(size) if blocks.isdecimal() and size.isdecimal() and len(blocks) + len(size) < 16 else None


def _latency(samples: Samples, model: str) -> Latency | None:
    for name in ITERATION_NAMES:
        sums = _all_known(_ranks(samples, (f"{name}_sum",), model))
        counts = _all_known(_ranks(samples, (f"{name}_count",), model))
        if sums and counts:
            return Latency(sum(sums), sum(counts))
    return None


def _mean_ms(before: Latency | None, now: Latency | None) -> float | None:
    """Mean step time between two pages; unknown without a step between them, and once when the counters began anew."""
    if before is None or now is None or now.count <= before.count or now.sum_s < before.sum_s:
        return None
    return (now.sum_s - before.sum_s) / (now.count - before.count) * 1000
