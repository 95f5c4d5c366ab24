"""What the rules that come with Sluice make together of the engines' readings, on a real OPA."""

from pathlib import Path
from typing import Any

import pytest

from app.policy.examples import EXAMPLES, QUIET
from app.policy.terms import Terms
from tests.fixtures.policy import DIMENSIONS, question, running_policy

CAPACITY = {"free_tokens": 100_000, "capacity_tokens_max": 100_000}
IDLE = {"live": 1, "known": 1, "frozen": 0, "avoided": 0, "kv_max": 0, "kv_mean": 0, "kv_floor": 0, "waiting": 0, "running": 0, **CAPACITY}
BUSY = {**IDLE, "waiting": 2, "free_tokens": 50_000, "held_tokens": 40_000}

READINGS: dict[str, dict[str, Any]] = {
    "idle": IDLE,
    "half full": {**BUSY, "kv_mean": 0.5, "kv_floor": 0.5},
    "full for a moment": {**BUSY, "kv_mean": 0.86, "kv_floor": 0.5},
    "fairly full for long": {**BUSY, "kv_mean": 0.8, "kv_floor": 0.8},
    "full for long": {**BUSY, "kv_mean": 0.95, "kv_floor": 0.95},
    "long queue": {**BUSY, "kv_mean": 0.5, "kv_floor": 0.5, "waiting": 21},
    "held back": {**IDLE, "max_in_flight": 12, "admission": 0.75},
    "late": {**IDLE, "ttft_ms": 60_000},
    "all stale": {"live": 0, "known": 2, "frozen": 0},
    "every engine avoided": {**IDLE, "avoided": 1},
    "frozen": {"live": 0, "known": 2, "frozen": 1},
    "one frozen of two": {**IDLE, "known": 2, "frozen": 1},
    "unknown": {},
}
"""What a model's engines tell, by what one would call it."""

TERMS = {
    # (factor of requests, factor of tokens, share shed, tokens in flight, requests in flight)
    "idle": (1, 1, 0, 85_000, None),  # 0.85 x 100 000
    "half full": (0.62, 1, 0, 82_500, None),  # 1 - 0.6 x 0.5 - 0.4 x 0.2; 40 000 + 0.85 x 50 000
    "full for a moment": (0.404, 1, 0.5, 82_500, None),  # 1 - 0.6 x 0.86 - 0.08; (0.86 - 0.80) / 0.12
    "fairly full for long": (0.308, 0.7, 0.1, 82_500, None),  # (1 - 0.48 - 0.08) x 0.7
    "full for long": (0.105, 0.3, 1, 82_500, None),  # (1 - 0.57 - 0.08) x 0.3
    "long queue": (0.3, 1, 1, 82_500, None),  # 1 - 0.3 - 0.4
    "held back": (1, 1, 0.25, 85_000, 12),
    "late": (1, 1, 0, 85_000, None),  # standard, the class of the example, has no target
    "all stale": (1, 1, 0.5, 111_411, None),  # 0.85 x 65 536 x 2
    "every engine avoided": (1, 1, 1, 85_000, None),
    "frozen": (1, 1, 1, 111_411, None),
    "one frozen of two": (1, 1, 0, 85_000, None),
    "unknown": (1, 1, 0.5, 55_705, None),  # 0.85 x 65 536
}


def told(terms: Terms) -> tuple[float, ...]:
    """What the table above has of terms."""
    limits = {(limit.bucket, limit.dimension): limit.limit for limit in terms.limits}
    factors = dict(terms.factors)
    return (
        pytest.approx(factors.get("qps", 1)),
        pytest.approx(factors.get("tpm", 1)),
        pytest.approx(terms.shed),
        limits["model", "tokens_in_flight"],
        limits.get(("model", "concurrency")),
    )


async def test_readings_move_rates_sheds_and_limits_together(rego_folder: Path, opa_binary: Path, sockets: Path) -> None:
    """Each state of the engines slows, sheds and limits as the rules say together; idle ones leave a quota what it is."""
    async with running_policy(rego_folder, opa_binary, sockets) as running:
        terms = {name: told(await running.terms(question(readings=readings), dimensions=DIMENSIONS)) for name, readings in READINGS.items()}

    assert terms == TERMS


async def test_approvals_are_asked_about_where_a_model_needs_one_and_nowhere_else(
    rego_folder: Path, opa_binary: Path, sockets: Path
) -> None:
    """Whatever approvals requests of an ordinary model name, it has one answer in memory; a sensitive one is answered by each state."""
    approvals = [{**QUIET["subject"]["approval"], "state": state} for state in ("asked", "approved", "refused", "revoked", "expired")]
    subjects = [{**QUIET["subject"], "approval": approval} for approval in approvals]
    async with running_policy(rego_folder, opa_binary, sockets) as running:
        ordinary = [await running.terms(question(subject=subject)) for subject in subjects]
        sensitive = [await running.terms(question(**{**EXAMPLES["sensitive"], "subject": subject})) for subject in subjects]

    assert all(terms is ordinary[0] for terms in ordinary)
    assert [[deny.code for deny in terms.denies] for terms in sensitive] == [
        ["approval_pending"],
        [],
        ["approval_refused"],
        ["approval_revoked"],
        ["approval_expired"],
    ]
