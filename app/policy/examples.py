"""Example questions: every rule must answer them in the right shape before its bundle is offered to OPA."""

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
    "kv_max": 0.5,
    "kv_mean": 0.4,
    "waiting": 3,
    "running": 20,
    "free_tokens": 100000,
    "iteration_ms": 25,
}

QUIET: dict[str, Any] = {
    "tenant": _TENANT,
    "model": _MODEL,
    "readings": _READINGS,
    "subject": {"roles": ["risk-analyst"], "attributes": {"clearance": 3, "region": "cn-east"}, "approval": {"id": "a-1"}},
    "request": {"action": "infer", "priority": "P1", "purpose": "credit", "stream": True},
    "time": {"minute": 30, "hour": 9, "weekday": "monday"},
}
"""An ordinary request while the engines are quiet."""


def _other(**changes: dict[str, Any]) -> dict[str, Any]:
    return {section: {**QUIET[section], **changes.get(section, {})} for section in QUIET}


EXAMPLES: dict[str, dict[str, Any]] = {
    "quiet": QUIET,
    "busy": _other(readings={"kv_mean": 0.86, "kv_max": 0.9}),
    "full": _other(readings={"kv_mean": 0.95, "kv_max": 0.97, "waiting": 60}),
    "no live engine": {**QUIET, "readings": {"live": 0, "known": 2}},
    "no readings": {**QUIET, "readings": {}},
    "agreement": _other(tenant={"sla_class": "payment", "qps": 800}),
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
