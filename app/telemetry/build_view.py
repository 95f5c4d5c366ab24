"""From a snapshot to a view: which nodes are live for each model, and their aggregates as rules read them.

Pure: ages are durations that the caller has brought up to date. A node is live for a model when its page is younger than
`stale_ms`, tells every signal that the model's spec declares (A2), and nothing this replica knows speaks against it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from app.catalog.models import ModelSpec
from app.estimators.kv_cache import bytes_per_token, tokens_that_fit
from app.telemetry.snapshot import Gpu, Node, Reading, Snapshot
from app.telemetry.view import NOTHING_KNOWN, Choice, Memory, ModelView, NodeState, Own, Standing, View, missing_signal

RATIO_DIGITS = 3
"""Ratios are rounded to 0.001, so that noise below what any watermark names does not make a new question."""
TOKENS_DIGITS = 3
"""Tokens are cut to this many leading digits: for the same reason, and never a larger promise."""
MS_DIGITS = 1
"""Times are rounded to 0.1 ms."""
NOT_LOOKED_AT = Memory()


def build_view(
    snapshot: Snapshot,
    models: Mapping[str, ModelSpec],
    *,
    stale_ms: float,
    taken_ms: float = 0.0,
    before: View | None = None,
    own: Own | None = None,
) -> View:
    """The view of `snapshot`; what has not changed since `before` keeps its object and its generation."""
    before, own = before or View(), own or Own()
    gpus = {gpu.id: gpu for gpu in snapshot.gpus if gpu.age_ms is not None and gpu.age_ms < stale_ms}
    states = tuple(
        _state(node, models[model], stale_ms, _memory(node, gpus), own.standings.get((node.name, model), NOTHING_KNOWN))
        for node in snapshot.nodes
        for model in node.models
        if model in models
    )
    by_model: dict[str, list[NodeState]] = {model: [] for model in models}
    for state in states:
        by_model[state.model].append(state)
    views = {
        model: _model_view(models[model], of, before.models.get(model), own.held_tokens.get(model, 0)) for model, of in by_model.items()
    }
    changed = (views, states) != (before.models, before.nodes)
    return View(before.generation + changed, views, states, snapshot.gpus, taken_ms, snapshot.loads)


def _state(node: Node, spec: ModelSpec, stale_ms: float, memory: Memory, standing: Standing) -> NodeState:
    reading = node.readings.get(spec.id)
    if node.age_ms is None:
        why = node.problem or "no_page"
    elif node.age_ms >= stale_ms:
        why = node.problem or "stale"
    elif signal := missing_signal(reading, spec):
        why = f"missing:{signal}"
    else:
        why = standing.why
    reading = _with_room(reading or Reading(), spec, memory)
    return NodeState(node.name, spec.id, reading, node.age_ms, why, node.kind, node.max_num_seqs, node.control_url, memory, standing)


def _memory(node: Node, fresh: Mapping[str, Gpu]) -> Memory:
    """Of all GPUs under the node; unknown where one of them is: it could be the fullest."""
    if not node.gpus:
        return NOT_LOOKED_AT
    gpus = [fresh.get(gpu, Gpu(gpu)) for gpu in node.gpus]
    ratios, floors = _all(gpu.memory_ratio for gpu in gpus), _all(gpu.memory_floor for gpu in gpus)
    free = _all(None if gpu.total_bytes is None or gpu.used_bytes is None else gpu.total_bytes - gpu.used_bytes for gpu in gpus)
    return Memory(_rounded(max(ratios, default=None)), _rounded(max(floors, default=None)), int(sum(free)) if free else None)


def _with_room(reading: Reading, spec: ModelSpec, memory: Memory) -> Reading:
    """The reading, its free tokens told by the model spec where no page tells blocks: by the shape, else as declared (B6).

    Free device memory of an engine that takes all of it at its start says nothing about its cache.
    """
    if reading.free_tokens is not None:
        return reading
    if spec.kv_tokens is not None and reading.kv_ratio is not None:
        return replace(reading, free_tokens=math.floor(spec.kv_tokens * (1 - reading.kv_ratio)))
    if spec.preallocates or memory.free_bytes is None:
        return reading
    if spec.layers is None or spec.kv_heads is None or spec.head_dim is None or spec.kv_bytes is None:
        return reading
    per_token = bytes_per_token(layers=spec.layers, kv_heads=spec.kv_heads, head_dim=spec.head_dim, kv_bytes=spec.kv_bytes)
    return replace(reading, free_tokens=tokens_that_fit(memory.free_bytes, per_token))


def _model_view(spec: ModelSpec, states: list[NodeState], before: ModelView | None, held_tokens: int) -> ModelView:
    live = [state for state in states if not state.why]
    readings = {
        "live": len(live),
        "known": len(states),
        "frozen": sum(state.why == "frozen" for state in states),
        "avoided": sum(state.standing.avoid for state in live),
        **_engines(live),
        **_tokens(spec, live, held_tokens),
        **_own(live),
    }
    if before is not None and before.readings == readings:
        readings = before.readings  # type: ignore[assignment]  # equal, and the same object is known to be unchanged
    choices = sorted((_choice(spec, state) for state in live if not state.standing.avoid), key=lambda one: one.load(0, 0))
    ages = [state.age_ms for state in live if state.age_ms is not None]
    return ModelView(readings, tuple(one.node for one in choices), min(ages, default=None), tuple(choices))


def _choice(spec: ModelSpec, state: NodeState) -> Choice:
    reading, standing = state.reading, state.standing
    capacity = reading.capacity_tokens or spec.kv_tokens
    return Choice(
        state.node,
        _or_last(reading.kv_ratio),
        _or_last(reading.waiting),
        per_request=0.0 if capacity else 1 / max(1, state.max_num_seqs),
        per_token=1 / capacity if capacity else 0.0,
        requests=standing.requests,
        tokens=standing.tokens,
    )


def _engines(live: list[NodeState]) -> dict[str, Any]:
    """Aggregates over live nodes. One is absent unless every live node tells it: the silent one could be the worst."""
    section: dict[str, Any] = {}
    if kv := _all(state.reading.kv_ratio for state in live):
        section["kv_max"] = round(max(kv), RATIO_DIGITS)
        section["kv_mean"] = round(_mean(kv), RATIO_DIGITS)
    for name in ("waiting", "running"):
        if counts := _all(getattr(state.reading, name) for state in live):
            section[name] = sum(counts)
    for name in ("iteration_ms", "ttft_ms"):
        if times := _all(getattr(state.reading, name) for state in live):
            section[name] = round(_mean(times), MS_DIGITS)
    shares = {
        "kv_floor": [state.reading.kv_floor for state in live],
        "memory": [state.memory.ratio for state in live],
        "memory_floor": [state.memory.floor for state in live],
    }
    return section | {name: round(_mean(known), RATIO_DIGITS) for name, ratios in shares.items() if (known := _all(ratios))}


def _tokens(spec: ModelSpec, live: list[NodeState], held_tokens: int) -> dict[str, Any]:
    """Room of the caches (B6): free on all live nodes, ours among the used, and the most that one node holds in all."""
    section: dict[str, Any] = {}
    if free := _all(state.reading.free_tokens for state in live):
        section["free_tokens"] = _cut(int(sum(free)))
    if largest := _all(state.reading.rank_tokens or spec.kv_tokens for state in live):
        section["capacity_tokens_max"] = int(max(largest))
    capacity = _all(state.reading.capacity_tokens or spec.kv_tokens for state in live)
    if capacity and free:
        # What leases hold is partly in use already; no more of it than is in use at all.
        section["held_tokens"] = _cut(max(0, min(held_tokens, int(sum(capacity)) - int(sum(free)))))
    return section


def _own(live: list[NodeState]) -> dict[str, Any]:
    """What the controllers of this replica say, over all live nodes (A3)."""
    section: dict[str, Any] = {}
    if most := _all(state.standing.max_in_flight for state in live):
        section["max_in_flight"] = sum(most)
    if admission := _all(state.standing.admission for state in live):
        section["admission"] = round(_mean(admission), RATIO_DIGITS)
    return section


def _all(values: Iterable[float | None]) -> list[float]:
    every = list(values)
    told = [value for value in every if value is not None]
    return told if len(told) == len(every) else []


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, RATIO_DIGITS)


def _cut(count: int) -> int:
    step: int = 10 ** max(0, len(str(count)) - TOKENS_DIGITS)
    return count // step * step


def _or_last(value: float | None) -> float:
    return math.inf if value is None else value
