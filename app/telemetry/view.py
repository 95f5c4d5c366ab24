"""What the snapshot says about each model: its live nodes, their aggregates as rules read them, and the best node.

Pure: ages are durations that the caller has brought up to date. A node is live for a model when its page is younger than
`stale_ms` and tells every signal that the model's spec declares (A2).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.catalog.models import ModelSpec, Signal
from app.telemetry.snapshot import Loads, Node, Reading, Snapshot

RATIO_DIGITS = 3
"""Ratios are rounded to 0.001, so that noise below what any watermark names does not make a new question."""
FREE_TOKENS_DIGITS = 3
"""Free tokens are cut to this many leading digits: for the same reason, and never a larger promise."""
ITERATION_DIGITS = 1
"""Step times are rounded to 0.1 ms."""
SIGNAL_FIELDS: dict[Signal, str] = {"kv": "kv_ratio", "waiting": "waiting", "running": "running"}
"""The reading that carries each signal a spec can declare."""


@dataclass(frozen=True, slots=True)
class NodeState:
    """One model on one node it is configured for. `why` is empty where it is live. Equal content is equal, whatever its age."""

    node: str
    model: str
    reading: Reading
    age_ms: float | None = field(compare=False)
    why: str = ""
    """no_page, stale, timeout, connect, status, parse, missing:<signal>."""


@dataclass(frozen=True, slots=True)
class ModelView:
    """One model over its live nodes."""

    readings: Mapping[str, Any]
    """The question's section: live, known, and what every live node tells: kv_max, kv_mean, waiting, running,
    free_tokens, iteration_ms. The same object as before while the content is the same."""
    nodes: tuple[str, ...] = ()
    """Live nodes, lowest KV first, then fewest waiting, then by name."""
    age_ms: float | None = field(default=None, compare=False)
    """Age of the freshest live page; None: no live node."""

    def best_node(self) -> str | None:
        """The first live node."""
        return next(iter(self.nodes), None)


@dataclass(frozen=True, slots=True)
class View:
    """All models at one moment. `generation` grows by one with each change of content; ages alone do not change it."""

    generation: int = 0
    models: Mapping[str, ModelView] = field(default_factory=dict)
    nodes: tuple[NodeState, ...] = ()
    taken_ms: float = 0.0
    """The reader's monotonic clock when the ages were true."""
    loads: Loads = field(default_factory=Loads)
    """What became of changes of the engines' configuration."""


def build_view(
    snapshot: Snapshot, models: Mapping[str, ModelSpec], *, stale_ms: float, taken_ms: float = 0.0, before: View | None = None
) -> View:
    """The view of `snapshot`; what has not changed since `before` keeps its object and its generation."""
    before = before or View()
    states = tuple(_state(node, models[model], stale_ms) for node in snapshot.nodes for model in node.models if model in models)
    by_model: dict[str, list[NodeState]] = {model: [] for model in models}
    for state in states:
        by_model[state.model].append(state)
    views = {model: _model_view(own, before.models.get(model)) for model, own in by_model.items()}
    changed = (views, states) != (before.models, before.nodes)
    return View(before.generation + changed, views, states, taken_ms, snapshot.loads)


def next_expiry_ms(snapshot: Snapshot, stale_ms: float) -> float:
    """How long until the next node that is still fresh becomes stale; infinite where none is."""
    return min((stale_ms - node.age_ms for node in snapshot.nodes if node.age_ms is not None and node.age_ms < stale_ms), default=math.inf)


def aged(snapshot: Snapshot, elapsed_ms: float) -> Snapshot:
    """The snapshot `elapsed_ms` later."""
    nodes = tuple(replace(node, age_ms=None if node.age_ms is None else node.age_ms + elapsed_ms) for node in snapshot.nodes)
    return replace(snapshot, nodes=nodes)


def missing_signal(reading: Reading | None, spec: ModelSpec) -> Signal | None:
    """The first declared signal that the reading does not tell."""
    return next((signal for signal in spec.signals if reading is None or getattr(reading, SIGNAL_FIELDS[signal]) is None), None)


def describe(view: View) -> dict[str, Any]:
    """The view as GET /telemetry answers it: per model the aggregates, per node and model what it tells or why not."""
    return {
        "generation": view.generation,
        "models": {model: {**one.readings, "nodes": list(one.nodes)} for model, one in view.models.items()},
        "nodes": [_describe_state(state) for state in view.nodes],
    }


def _state(node: Node, spec: ModelSpec, stale_ms: float) -> NodeState:
    reading = node.readings.get(spec.id)
    if node.age_ms is None:
        why = node.problem or "no_page"
    elif node.age_ms >= stale_ms:
        why = node.problem or "stale"
    elif signal := missing_signal(reading, spec):
        why = f"missing:{signal}"
    else:
        why = ""
    return NodeState(node.name, spec.id, reading or Reading(), node.age_ms, why)


def _model_view(states: list[NodeState], before: ModelView | None) -> ModelView:
    live = [state for state in states if not state.why]
    readings = _aggregate([state.reading for state in live], known=len(states))
    if before is not None and before.readings == readings:
        readings = before.readings
    order = sorted(live, key=lambda state: (_or_last(state.reading.kv_ratio), _or_last(state.reading.waiting), state.node))
    ages = [state.age_ms for state in live if state.age_ms is not None]
    return ModelView(readings, tuple(state.node for state in order), min(ages, default=None))


def _aggregate(live: list[Reading], known: int) -> Mapping[str, Any]:
    """Aggregates over live nodes. One is absent unless every live node tells it: the silent one could be the worst."""
    section: dict[str, Any] = {"live": len(live), "known": known}
    if kv := _all(reading.kv_ratio for reading in live):
        section["kv_max"] = round(max(kv), RATIO_DIGITS)
        section["kv_mean"] = round(sum(kv) / len(kv), RATIO_DIGITS)
    for name in ("waiting", "running"):
        if counts := _all(getattr(reading, name) for reading in live):
            section[name] = sum(counts)
    if free := _all(reading.free_tokens for reading in live):
        # The largest on one node, not the sum: a request's tokens must fit where it runs.
        section["free_tokens"] = _cut(int(max(free)))
    if iterations := _all(reading.iteration_ms for reading in live):
        section["iteration_ms"] = round(sum(iterations) / len(iterations), ITERATION_DIGITS)
    return section


def _all(values: Iterable[float | None]) -> list[float]:
    every = list(values)
    told = [value for value in every if value is not None]
    return told if len(told) == len(every) else []


def _cut(count: int) -> int:
    step: int = 10 ** max(0, len(str(count)) - FREE_TOKENS_DIGITS)
    return count // step * step


def _or_last(value: float | None) -> float:
    return math.inf if value is None else value


def _describe_state(state: NodeState) -> dict[str, Any]:
    told = {
        "kv_usage": state.reading.kv_ratio,
        "waiting": state.reading.waiting,
        "running": state.reading.running,
        "age_ms": None if state.age_ms is None else round(state.age_ms, 1),
        "why": state.why or None,
    }
    known = {name: value for name, value in told.items() if value is not None}
    return {"node": state.node, "model": state.model, "fresh": not state.why, **known}
