"""Example questions of both kinds: every rule must answer its own in the right shape before its bundle is offered to OPA."""

from typing import Any

_TENANT: dict[str, Any] = {
    "id": "tenant-prod-a",
    "zone": "Asia/Shanghai",
    "sla_class": "standard",
    "region": "cn-east",
    "qps": 50,
    "tpm": 30000,
    "concurrency": 8,
    "rate_factors": {"llama-3-8b": 0.8},
    "costs": {"gpt-4o": 5},
    "version": 1,
}
_MODEL: dict[str, Any] = {
    "id": "llama-3-8b",
    "cost": 1,
    "cached_weight": 0.1,
    "layers": 32,
    "kv_heads": 8,
    "head_dim": 128,
    "kv_bytes": 2,
    "preallocates": True,
    "signals": ["kv", "waiting"],
}
_SENSITIVE: dict[str, Any] = {
    "actions": ["infer"],
    "roles": ["risk-analyst"],
    "purposes": ["credit"],
    "regions": ["cn-east"],
    "hours": {"from": 8, "to": 20},
    "clearance": 3,
    "mask": ["email"],
    "approval": True,
    "retention_days": 365,
}
_READINGS: dict[str, Any] = {
    "live": 2,
    "known": 2,
    "frozen": 0,
    "avoided": 0,
    "kv_max": 0.5,
    "kv_mean": 0.4,
    "kv_floor": 0.35,
    "waiting": 3,
    "running": 20,
    "free_tokens": 100000,
    "held_tokens": 20000,
    "capacity_tokens_max": 90000,
    "iteration_ms": 25,
    "ttft_ms": 180,
    "memory": 0.9,
    "memory_floor": 0.9,
    "max_in_flight": 64,
    "admission": 1,
}

QUIET: dict[str, Any] = {
    "tenant": _TENANT,
    "model": _MODEL,
    "readings": _READINGS,
    "subject": {
        "roles": ["risk-analyst"],
        "attributes": {"clearance": 3, "region": "cn-east"},
        "approval": {"state": "approved", "model": "mdl-fin-risk-v3", "action": "infer", "purpose": "credit", "subject": "same"},
    },
    "request": {"action": "infer", "priority": "P1", "purpose": "credit", "stream": True},
    "time": {"minute": 30, "hour": 9, "weekday": "monday"},
}
"""An ordinary request while the engines are quiet."""


def _other(**changes: dict[str, Any]) -> dict[str, Any]:
    return {section: {**QUIET[section], **changes.get(section, {})} for section in QUIET}


EXAMPLES: dict[str, dict[str, Any]] = {
    "quiet": QUIET,
    "busy": _other(readings={"kv_mean": 0.86, "kv_max": 0.9, "kv_floor": 0.8, "admission": 0.7}),
    "full": _other(readings={"kv_mean": 0.95, "kv_max": 0.97, "kv_floor": 0.94, "waiting": 60, "free_tokens": 0, "ttft_ms": 6000}),
    "full of memory": _other(model={"preallocates": False}, readings={"memory": 0.95, "memory_floor": 0.94}),
    "no live engine": {**QUIET, "readings": {"live": 0, "known": 2, "frozen": 0, "avoided": 0}},
    "every engine avoided": {**QUIET, "readings": {**QUIET["readings"], "avoided": 2}},
    "frozen engine": {**QUIET, "readings": {"live": 0, "known": 2, "frozen": 1, "avoided": 0}},
    "no readings": {**QUIET, "readings": {}},
    "agreement": _other(tenant={"sla_class": "payment", "qps": 800}, readings={"ttft_ms": 400}),
    "sensitive": _other(model={"id": "mdl-fin-risk-v3", "sensitive": _SENSITIVE}),
    "sensitive, refused": {
        **_other(model={"id": "mdl-fin-risk-v3", "sensitive": _SENSITIVE}),
        "subject": {"roles": [], "attributes": {}},
        "request": {"action": "train", "priority": "P2", "stream": False},
        "time": {"minute": 0, "hour": 3, "weekday": "sunday"},
    },
    "unknown tenant": {**QUIET, "tenant": {}},
    "unknown model": {**QUIET, "model": {}},
}
"""Name and question of each example."""

_NODE: dict[str, Any] = {"name": "vllm-0", "kind": "vllm", "max_num_seqs": 256}
_NODE_READINGS: dict[str, Any] = {
    "kv": 0.5,
    "kv_floor": 0.45,
    "waiting": 1,
    "running": 10,
    "free_tokens": 50000,
    "capacity_tokens": 100000,
    "iteration_ms": 25,
    "ttft_ms": 180,
    "memory": 0.6,
    "memory_floor": 0.6,
}
_SHARING: dict[str, Any] = {**_MODEL, "preallocates": False}


def _node(model: dict[str, Any], **readings: float) -> dict[str, Any]:
    return {"node": _NODE, "model": model, "readings": {**_NODE_READINGS, **readings}}


NODE_EXAMPLES: dict[str, dict[str, Any]] = {
    "quiet node": _node(_MODEL),
    "busy node": _node(_MODEL, kv=0.82, kv_floor=0.8, waiting=12),
    "full node": _node(_MODEL, kv=0.97, kv_floor=0.95, waiting=40, iteration_ms=140, memory=0.95, memory_floor=0.95),
    "node that does not preallocate": _node(_SHARING),
    "node whose memory is nearly full": _node(_SHARING, memory=0.8, memory_floor=0.78),
    "node whose memory is full": _node(_SHARING, memory=0.95, memory_floor=0.94),
    "node without readings": {"node": _NODE, "model": _MODEL, "readings": {}},
    "node of an unknown model": {"node": _NODE, "model": {}, "readings": _NODE_READINGS},
}
"""The same of rules for nodes."""
