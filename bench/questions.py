"""What is asked: tenants and their quotas, requests for Sluice, and the same questions for OPA alone."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from app.catalog.models import ModelSpec, load_models
from app.policy.question import Question
from app.quota.quota import parse_quota
from app.quota.registry import Tenant
from app.telemetry.build_view import build_view
from app.telemetry.snapshot import Node, Reading, Snapshot

MODELS_FILE = Path(__file__).resolve().parents[1] / "examples" / "models.yaml"
MODELS = ("llama-3-8b", "llama-3-70b")
"""The models of the two engines that change."""
HOT_TENANTS = 20
NUMBERED = "numbered-{k}"
"""Id of one of many tenants; the load generator fills in which."""
PROMPT_TOKENS, MAX_TOKENS = 200, 100


def quota(number: int) -> dict[str, Any]:
    """A quota of its own for each tenant, so wide that nothing is refused: what is measured is deciding."""
    return {
        "qps": 500_000 + number % 100_000,
        "tpm": 1_000_000_000,
        "concurrency": 1_000_000,
        "rate_factors": {MODELS[0]: 1.0},
        "sla_class": "payment",  # its rates are not held within the 50 requests a second of the ordinary classes
        "region": "cn-east",
        "zone": "Asia/Shanghai",
    }


def hot_tenants(count: int = HOT_TENANTS) -> list[str]:
    """The tenants that a load draws from."""
    return [f"hot-{number:02d}" for number in range(count)]


def zipf(count: int) -> list[float]:
    """How often each of `count` tenants calls: the second half as often as the first, the third a third."""
    return [1 / rank for rank in range(1, count + 1)]


def pairs(tenants: Sequence[str]) -> tuple[list[tuple[str, str]], tuple[float, ...]]:
    """Every tenant with every model, and how often the pair is drawn: tenants by Zipf's law, models alike."""
    weights = zipf(len(tenants))
    return [(tenant, model) for tenant in tenants for model in MODELS], tuple(weight for weight in weights for _ in MODELS)


def request(tenant: str, model: str = MODELS[0], **more: Any) -> str:
    """The body of one decision."""
    return json.dumps({"tenant": tenant, "model": model, "prompt_tokens": PROMPT_TOKENS, "max_tokens": MAX_TOKENS, **more})


def batch(tenants: Sequence[str], size: int) -> str:
    """The body of one batch: tenants in turn."""
    items = [request(tenants[number % len(tenants)], MODELS[number % len(MODELS)]) for number in range(size)]
    return f'{{"requests":[{",".join(items)}]}}'


def question(tenant: str, model: str = MODELS[0]) -> str:
    """The question that Sluice makes of `request(tenant, model)`, as the body of a call to OPA."""
    spec = load_models(MODELS_FILE)[model]
    sections = {
        "tenant": Tenant.of(tenant, parse_quota(quota(0)), 1).facts,
        "model": spec.facts(),
        "readings": _readings(spec),
        "subject": {},
        "request": {"action": "infer", "priority": "P1", "stream": False},
        "time": {"minute": 30, "hour": 10, "weekday": "monday"},
    }
    assert sections.keys() == set(Question.__dataclass_fields__)  # noqa: S101 - a section that is added here must be added there
    return orjson.dumps({"input": sections}).decode()


def _readings(spec: ModelSpec) -> dict[str, Any]:
    reading = Reading(kv_ratio=0.412, waiting=3, running=17, free_tokens=9630, iteration_ms=11.2)
    node = Node("engine-0", (spec.id,), readings={spec.id: reading}, age_ms=10.0)
    view = build_view(Snapshot(1, (node,)), {spec.id: spec}, stale_ms=1000)
    return dict(view.models[spec.id].readings)
