"""A snapshot as JSON between the telemetry process and its readers. null means unknown; ages are durations in ms.

{"generation": 7, "nodes": [{"name", "models": [...], "gpus": [...], "max_num_seqs", "control_url", "kind", "steps",
 "readings": {model: {"kv_ratio",
 "kv_floor", "waiting", "running", "capacity_tokens", "rank_tokens", "free_tokens", "iteration_ms", "ttft_ms", "still_ms"}}, "age_ms", "problem"}],
 "gpus": [{"id", "total_bytes", "used_bytes", "memory_ratio", "memory_floor", "source", "age_ms", "problem"}],
 "loads": {"ok": 1, "refused": 0, "problem": null}}
"""

from typing import NewType

import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError

from app.errors import DependencyDown
from app.fields import explain
from app.telemetry.snapshot import Snapshot

# A type of its own, because a dataclass itself takes no config. A NaN would be an age that never becomes stale.
_Document = NewType("_Document", Snapshot)
_DOCUMENT = TypeAdapter(_Document, config=ConfigDict(strict=True, allow_inf_nan=False))


def encode(snapshot: Snapshot) -> bytes:
    """The document."""
    return orjson.dumps(snapshot)


def decode(body: bytes) -> Snapshot:
    """The snapshot in a document. Raises DependencyDown where it is not one."""
    try:
        return _DOCUMENT.validate_json(body)
    except ValidationError as error:
        raise DependencyDown(f"the telemetry process answered no snapshot: {explain(error)[:200]}") from None
