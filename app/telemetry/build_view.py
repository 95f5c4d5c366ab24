"""From a snapshot to a view: which nodes are live for each model, and their aggregates as rules read them.

Pure: ages are durations that the caller has brought up to date. A node is live for a model when its page is younger than
`stale_ms`, tells every signal that the model's spec declares (A2), and nothing this replica knows speaks against it.
"""

import math
from collections.abc import Mapping
from typing import Any

from app.catalog.models import ModelSpec
from app.telemetry.pools import Pool, pools
from app.telemetry.room import NOT_LOOKED_AT, RATIO_DIGITS
from app.telemetry.snapshot import Node, Reading, Snapshot
from app.telemetry.unknown import all_known
from app.telemetry.view import DEAD, NOTHING_KNOWN, Choice, Memory, ModelView, NodeState, Own, Standing, View, missing_signal

TOKENS_DIGITS = 3
"""Tokens are cut to this many leading digits: for the same reason, and never a larger promise."""
MS_DIGITS = 1
"""Times are rounded to 0.1 ms."""


def build_view(
    snapshot: Snapshot,
    models: Mapping[str, ModelSpec],
    memory: Mapping[str, Memory] | None = None,
    *,
    stale_ms: float,
    taken_ms: float = 0.0,
    before: View | None = None,
    own: Own | None = None,
) -> View:
    """The view of `snapshot`, whose room is filled in (room.py), with the `memory` under its nodes.

    What has not changed since `before` keeps its object and its generation.
    """
    before, own, memory = before or View(), own or Own(), memory or {}
    states = tuple(
        _state(node, models[model], stale_ms, memory.get(node.name, NOT_LOOKED_AT), own.standings.get((node.name, model), NOTHING_KNOWN))
        for node in snapshot.nodes
        for model in node.models
        if model in models
    )
    by_model: dict[str, list[NodeState]] = {model: [] for model in models}
    for state in states:
        by_model[state.model].append(state)
    shared = pools(by_model, own)
    views = {model: _model_view(models[model], of, before.models.get(model), shared[model]) for model, of in by_model.items()}
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
    return NodeState(
        node.name, spec.id, reading or Reading(), node.age_ms, why, node.kind, node.max_num_seqs, node.control_url, memory, standing
    )


def _model_view(spec: ModelSpec, states: list[NodeState], before: ModelView | None, pool: Pool) -> ModelView:
    live = [state for state in states if not state.why]
    readings = {
        "live": len(live),
        "known": len(states),
        "frozen": sum(state.why in DEAD for state in states),
        "avoided": sum(state.standing.avoid for state in live),
        **_engines(live),
        **_tokens(spec, live, states, pool),
        **_controllers(live, pool),
    }
    if before is not None and before.readings == readings:
        readings = before.readings  # type: ignore[assignment]  # equal, and the same object is known to be unchanged
    choices = sorted((_choice(spec, state) for state in live if not state.standing.avoid), key=lambda one: one.page)
    ages = [state.age_ms for state in live if state.age_ms is not None]
    return ModelView(readings, tuple(one.node for one in choices), min(ages, default=None), tuple(choices), pool.name)


def _choice(spec: ModelSpec, state: NodeState) -> Choice:
    reading, standing = state.reading, state.standing
    capacity = reading.capacity_tokens or spec.kv_tokens
    return Choice(
        state.node,
        _or_most(reading.kv_ratio),
        _or_most(reading.waiting),
        per_request=0.0 if capacity else 1 / max(1, state.max_num_seqs),
        per_token=1 / capacity if capacity else 0.0,
        shown_requests=standing.shown_requests,
        shown_tokens=standing.shown_tokens,
        free_tokens=_or_most(reading.free_tokens),
        most_tokens=_or_most(reading.rank_tokens or spec.kv_tokens),
    )


def _engines(live: list[NodeState]) -> dict[str, Any]:
    """Aggregates over live nodes. One is absent unless every live node tells it: the silent one could be the worst."""
    section: dict[str, Any] = {}
    if kv := all_known(state.reading.kv_ratio for state in live):
        section["kv_max"] = round(max(kv), RATIO_DIGITS)
        section["kv_mean"] = round(_mean(kv), RATIO_DIGITS)
    for name in ("waiting", "running"):
        if counts := all_known(getattr(state.reading, name) for state in live):
            section[name] = sum(counts)
    for name in ("iteration_ms", "ttft_ms"):
        if times := all_known(getattr(state.reading, name) for state in live):
            section[name] = round(_mean(times), MS_DIGITS)
    shares = {
        "kv_floor": [state.reading.kv_floor for state in live],
        "memory": [state.memory.ratio for state in live],
        "memory_floor": [state.memory.floor for state in live],
    }
    return section | {name: round(_mean(known), RATIO_DIGITS) for name, ratios in shares.items() if (known := all_known(ratios))}


def _tokens(spec: ModelSpec, live: list[NodeState], known: list[NodeState], pool: Pool) -> dict[str, Any]:
    """Room of the caches (B6): free on all live nodes, what of the rest is ours, and the most that one node can hold.

    A cache keeps its size while its node is silent, so where none is live the sizes last told stand.
    """
    section: dict[str, Any] = {}
    sizes = [state.reading.rank_tokens or spec.kv_tokens for state in live or known]
    if largest := [size for size in sizes if size is not None] if not live else all_known(sizes):
        section["capacity_tokens_max"] = int(max(largest))
    if free := all_known(state.reading.free_tokens for state in live):
        section["free_tokens"] = _cut(int(sum(free)))
        section["held_tokens"] = _cut(pool.tokens_beside(live))
    return section


def _controllers(live: list[NodeState], pool: Pool) -> dict[str, Any]:
    """What the controllers of this replica say, over all live nodes (A3). The limit also counts what runs elsewhere."""
    section: dict[str, Any] = {}
    if most := all_known(state.standing.max_in_flight for state in live):
        section["max_in_flight"] = int(sum(most)) + pool.requests_elsewhere(live)
    if admission := all_known(state.standing.admission for state in live):
        section["admission"] = round(_mean(admission), RATIO_DIGITS)
    return section


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _cut(count: int) -> int:
    step: int = 10 ** max(0, len(str(count)) - TOKENS_DIGITS)
    return count // step * step


def _or_most(value: float | None) -> float:
    return math.inf if value is None else value
