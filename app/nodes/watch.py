"""What this replica knows of nodes beside their pages: who is frozen or failing, how much may be in flight, what rules say.

Fed with every snapshot; everything here is in memory and in step with the pages, so no request waits for it.

When down: without answers of the rules the last ones stay; without pages nodes leave by their age (view.py), and what
was known of them is forgotten with their configuration.
"""

from collections.abc import Mapping

from app.clock import Clock
from app.estimators.liveness import Evidence, Liveness
from app.estimators.own_share import OwnShare
from app.limiter.in_flight import Held
from app.limiter.memory import MemoryLimiter
from app.nodes.controllers import Controllers
from app.nodes.sequences import BatchSizes
from app.nodes.shown import Shown
from app.observability.metrics import Metrics
from app.policy.node_answer import NodeAnswer
from app.telemetry.snapshot import Node, Reading, Snapshot
from app.telemetry.view import Holding, NodeModel, Own, Standing

ADMISSION_DIGITS = 2
"""Each new share is a new question for the rules."""
UNANSWERED = NodeAnswer()
"""Before the rules have spoken: nothing is avoided, no batch is smaller, and no controller has an aim."""
SILENT = Reading()


class NodeWatch:
    """Judges nodes (telemetry.follow.Judge) and hands out probes (decision.route.Probes)."""

    def __init__(self, limiter: MemoryLimiter, clock: Clock, metrics: Metrics, *, stale_ms: float) -> None:
        self._limiter = limiter
        self._clock = clock
        self._metrics = metrics
        self._stale_ms = stale_ms
        self._liveness = Liveness()
        self._controllers = Controllers()
        self._batch_sizes = BatchSizes()
        self._answers: Mapping[NodeModel, NodeAnswer] = {}
        self._shown = Shown()
        self._own_shares: dict[NodeModel, OwnShare] = {}
        self._due: dict[str, str] = {}
        self._probed: set[str] = set()
        self.version = 0

    def judge(self, snapshot: Snapshot, now_ms: float) -> Own:
        """What this replica adds to a snapshot whose ages are true at `now_ms`."""
        known = {(node.name, model): node for node in snapshot.nodes for model in node.models}
        self._forget_metrics({node.name for node in snapshot.nodes})
        self._liveness.keep(known.keys())
        self._controllers.keep(known.keys())
        self._shown.keep(known.keys())
        self._own_shares = {key: share for key, share in self._own_shares.items() if key in known}
        self._learn(known, now_ms)
        sizes = self._batch_sizes.of(snapshot.nodes, self._answers)
        standings = {key: self._standing(key, node, sizes.get(node.name), now_ms) for key, node in known.items()}
        self._due = {model: node for node, model in known if self._liveness.due((node, model), now_ms)}
        return Own(standings, {model: Holding(held.requests, held.tokens) for model, held in self._limiter.by_model().items()})

    def _forget_metrics(self, nodes: set[str]) -> None:
        """Counts of nodes that are not configured any more would stay for ever."""
        for gone in self._probed - nodes:
            self._metrics.probes.remove_by_labels({"node": gone})
        self._probed &= nodes

    def answered(self, answers: Mapping[NodeModel, NodeAnswer]) -> None:
        """Take what the rules say of nodes from now on."""
        if answers != self._answers:
            self._answers = answers
            self.version += 1

    def due(self, model: str) -> str | None:
        """A node of the model that needs a probe now, or None."""
        return self._due.get(model)

    def take(self, node: str, model: str) -> bool:
        """Whether the caller is the one that probes the node."""
        taken = self._liveness.take((node, model), self._clock.monotonic_ms())
        self._due.pop(model, None)
        if taken:
            self._metrics.probes.labels(node).inc()
            self._probed.add(node)
        return taken

    def give_back(self, node: str, model: str) -> None:
        """The probe was not sent after all: the next caller may."""
        self._liveness.give_back((node, model))
        self._due[model] = node

    def _standing(self, key: NodeModel, node: Node, batch: int | None, now_ms: float) -> Standing:
        """Of a node whose page is stale nothing is said but what rules said last: its age speaks for itself."""
        fresh = node.age_ms is not None and node.age_ms < self._stale_ms
        reading = node.readings.get(key[1], SILENT) if fresh else SILENT
        answer, there = self._answers.get(key, UNANSWERED), self._limiter.on_node(node.name)
        why = self._liveness.judge(key, Evidence(reading.still_ms, _busy(reading) and node.steps, there.requests), now_ms)
        limits = self._controllers.update(
            key,
            SILENT if why else reading,  # the gauges of a frozen page would wind the controller down
            set_points=answer.set_points,
            in_flight=there.requests,
            max_num_seqs=node.max_num_seqs,
            now_ms=now_ms,
        )
        shown = self._shown.of(key, reading, there, now_ms)
        return Standing(
            why,
            avoided_by=tuple({"rule": one.rule, "code": one.code, "message": one.message} for one in answer.avoid),
            max_in_flight=limits.max_in_flight if limits else None,
            admission=round(limits.admission, ADMISSION_DIGITS) if limits else None,
            max_num_seqs=batch,
            holding=self._holding(key, reading, there, now_ms),
            shown_requests=shown.requests,
            shown_tokens=shown.tokens,
        )

    def _holding(self, key: NodeModel, reading: Reading, there: Held, now_ms: float) -> Holding:
        """What this model's leases hold there, and how much of it is in the cache: of all models there, its share by tokens."""
        held = self._limiter.in_flight(*key)
        share = self._own_shares.setdefault(key, OwnShare())
        cached = share.push(reading.free_tokens, there.tokens, now_ms, capacity_tokens=reading.capacity_tokens)
        return Holding(held.requests, held.tokens, cached * held.tokens / there.tokens if there.tokens else 0.0)

    def _learn(self, known: Mapping[NodeModel, Node], now_ms: float) -> None:
        """How calls ended since the last snapshot, and how long the page had stood still by then."""
        for report in self._limiter.take_reports():
            key = (report.node, report.model)
            self._controllers.lasted(key, report.lasted_ms, now_ms)
            reading = known[key].readings.get(report.model, SILENT) if key in known else SILENT
            self._liveness.ended(key, report.outcome, report.lasted_ms, reading.still_ms, now_ms)


def _busy(reading: Reading) -> bool:
    """Whether its gauges say that it works. Caches keep what may be used again, so KV says it only where nothing else does."""
    if reading.waiting is None and reading.running is None:
        return bool(reading.kv_ratio)
    return bool(reading.waiting or reading.running)
