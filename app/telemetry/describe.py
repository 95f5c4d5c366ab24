"""The view as GET /telemetry answers it: per model the aggregates, per node and model what it tells or why not, per GPU its memory."""

from collections.abc import Mapping
from typing import Any

from app.telemetry.snapshot import Gpu
from app.telemetry.view import NodeState, View


def describe(view: View) -> dict[str, Any]:
    """The document; what is unknown is absent."""
    return {
        "generation": view.generation,
        "models": {model: {**one.readings, "nodes": list(one.nodes)} for model, one in view.models.items()},
        "nodes": [_node(state) for state in view.nodes],
        "gpus": [_gpu(gpu) for gpu in view.gpus],
    }


def _node(state: NodeState) -> dict[str, Any]:
    reading = state.reading
    told = {
        "kv_usage": reading.kv_ratio,
        "waiting": reading.waiting,
        "running": reading.running,
        "iteration_ms": _tenth(reading.iteration_ms),
        "ttft_ms": _tenth(reading.ttft_ms),
        "free_tokens": reading.free_tokens,
        "memory": state.memory.ratio,
        "max_in_flight": state.standing.max_in_flight,
        "admission": state.standing.admission,
        "max_num_seqs": state.standing.max_num_seqs,
        "avoided_by": list(state.standing.avoided_by) or None,
        "age_ms": _tenth(state.age_ms),
        "why": state.why or None,
    }
    return {"node": state.node, "model": state.model, "fresh": not state.why, **_known(told)}


def _gpu(gpu: Gpu) -> dict[str, Any]:
    told = {
        "memory": gpu.memory_ratio,
        "memory_floor": gpu.memory_floor,
        "used_bytes": gpu.used_bytes,
        "total_bytes": gpu.total_bytes,
        "source": gpu.source or None,
        "age_ms": _tenth(gpu.age_ms),
        "why": gpu.problem,
    }
    return {"gpu": gpu.id, **_known(told)}


def _known(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if value is not None}


def _tenth(duration_ms: float | None) -> float | None:
    return None if duration_ms is None else round(duration_ms, 1)
