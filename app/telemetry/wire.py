"""A snapshot as JSON between the telemetry process and its readers. Absent means unknown; ages are durations in ms.

{"generation": 7, "nodes": [{"name", "models": [...], "readings": {model: {"kv_ratio"?, "waiting"?, "running"?,
 "free_tokens"?, "iteration_ms"?, "tokens_total"?}}, "age_ms"?, "problem"?}]}
"""

from dataclasses import asdict

import orjson
from pydantic import TypeAdapter, ValidationError

from app.errors import DependencyDown
from app.settings import explain
from app.telemetry.snapshot import Node, Reading, Snapshot

_SNAPSHOT = TypeAdapter(Snapshot)


def encode(snapshot: Snapshot) -> bytes:
    """The document; unknown values are left out."""
    return orjson.dumps({"generation": snapshot.generation, "nodes": [_node(node) for node in snapshot.nodes]})


def decode(body: bytes) -> Snapshot:
    """The snapshot in a document. Raises DependencyDown where it is not one."""
    try:
        return _SNAPSHOT.validate_json(body)
    except ValidationError as error:
        raise DependencyDown(f"the telemetry process answered no snapshot: {explain(error)[:200]}") from None


def _node(node: Node) -> dict[str, object]:
    document: dict[str, object] = {
        "name": node.name,
        "models": node.models,
        "readings": {model: _reading(reading) for model, reading in node.readings.items()},
        "age_ms": None if node.age_ms is None else round(node.age_ms, 1),
        "problem": node.problem,
    }
    return {name: value for name, value in document.items() if value is not None}


def _reading(reading: Reading) -> dict[str, object]:
    return {name: value for name, value in asdict(reading).items() if value is not None}
