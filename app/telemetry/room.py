"""What pages leave out and cards and model specs tell: device memory under each node, and room in caches whose pages tell none."""

import math
from collections.abc import Mapping
from dataclasses import replace

from app.catalog.models import ModelSpec
from app.estimators.kv_cache import bytes_per_token, tokens_that_fit
from app.telemetry.snapshot import Gpu, Node, Reading, Snapshot
from app.telemetry.unknown import all_known
from app.telemetry.view import Memory

RATIO_DIGITS = 3
"""Ratios are rounded to 0.001, so that noise below what any watermark names does not make a new question."""
NOT_LOOKED_AT = Memory()


def memories(snapshot: Snapshot, stale_ms: float) -> dict[str, Memory]:
    """Device memory by node, of GPUs whose reading is younger than `stale_ms`."""
    fresh = {gpu.id: gpu for gpu in snapshot.gpus if gpu.age_ms is not None and gpu.age_ms < stale_ms}
    return {node.name: _memory(node, fresh) for node in snapshot.nodes if node.gpus}


def with_room(snapshot: Snapshot, models: Mapping[str, ModelSpec], memory: Mapping[str, Memory]) -> Snapshot:
    """The snapshot with free tokens by the model specs where no page tells blocks (B6)."""
    return replace(snapshot, nodes=tuple(_node(node, models, memory.get(node.name, NOT_LOOKED_AT)) for node in snapshot.nodes))


def _node(node: Node, models: Mapping[str, ModelSpec], memory: Memory) -> Node:
    known = ((model, reading) for model, reading in node.readings.items() if model in models)
    filled = {model: new for model, reading in known if (new := _with_room(reading, models[model], memory)) is not reading}
    return replace(node, readings={**node.readings, **filled}) if filled else node


def _memory(node: Node, fresh: Mapping[str, Gpu]) -> Memory:
    """Of all GPUs under the node; unknown where one of them is: it could be the fullest."""
    gpus = [fresh.get(gpu, Gpu(gpu)) for gpu in node.gpus]
    ratios, floors = all_known(gpu.memory_ratio for gpu in gpus), all_known(gpu.memory_floor for gpu in gpus)
    free = all_known(None if gpu.total_bytes is None or gpu.used_bytes is None else gpu.total_bytes - gpu.used_bytes for gpu in gpus)
    return Memory(_rounded(max(ratios, default=None)), _rounded(max(floors, default=None)), int(sum(free)) if free else None)


def _with_room(reading: Reading, spec: ModelSpec, memory: Memory) -> Reading:
    """The reading, its free tokens as the page tells by its blocks, else as declared, but no more than the card has memory for (B6).

    Free device memory of an engine that takes all of it at its start says nothing about its cache; one that does not may have
    more blocks than memory.
    """
    told = reading.free_tokens
    if told is None and spec.kv_tokens is not None and reading.kv_ratio is not None:
        told = math.floor(spec.kv_tokens * (1 - reading.kv_ratio))
    on_card = _on_card(spec, memory)
    free = min((room for room in (told, on_card) if room is not None), default=None)
    return reading if free == reading.free_tokens else replace(reading, free_tokens=free)


def _on_card(spec: ModelSpec, memory: Memory) -> int | None:
    if spec.preallocates or memory.free_bytes is None:
        return None
    if spec.layers is None or spec.kv_heads is None or spec.head_dim is None or spec.kv_bytes is None:
        return None
    per_token = bytes_per_token(layers=spec.layers, kv_heads=spec.kv_heads, head_dim=spec.head_dim, kv_bytes=spec.kv_bytes)
    return tokens_that_fit(memory.free_bytes, per_token)


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, RATIO_DIGITS)
