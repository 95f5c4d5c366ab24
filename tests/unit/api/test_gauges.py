"""Gauges that are computed when somebody looks."""

from types import SimpleNamespace
from typing import Any

from app.api.readiness import Parts
from app.clock import ManualClock
from app.limiter.charge import Charge, Usage
from app.limiter.memory import MemoryLimiter
from app.observability.metrics import Metrics
from app.telemetry.snapshot import Reading
from app.telemetry.view import ModelView, NodeState, Standing, View


class Bench:
    """A replica with one model on two nodes, a limiter, and nothing else to tell."""

    def __init__(self) -> None:
        self.metrics, clock = Metrics(), ManualClock()
        self.limiter = MemoryLimiter(clock, keep_ms=60_000, records_bytes=1 << 20, metrics=self.metrics)
        states = tuple(NodeState(node, "m", Reading(), 40.0) for node in ("vllm-0", "vllm-1"))
        self.readings = SimpleNamespace(view=View(models={"m": ModelView({"live": 2}, ("vllm-0", "vllm-1"), 40.0)}, nodes=states))
        none: Any = None
        rooms: Any = SimpleNamespace(
            clock=clock, limiter=self.limiter, readings=self.readings, registry=SimpleNamespace(tenant=lambda _: None)
        )
        self.health = Parts(rooms, none, none, none, none, SimpleNamespace(newest=None), own_log_process=False).health(self.metrics)

    async def spend(self, lease_id: str, node: str | None) -> None:
        await self.limiter.spend(Charge(lease_id, (), 10, 50, scope="k", tenant="a", model="m", node=node))

    def look(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Requests and tokens in flight by node and model, as a scrape shows them."""
        for before in self.health.before_scrape:
            before()
        shown: dict[str, dict[tuple[str, str], float]] = {"requests": {}, "tokens": {}}
        for name, values in shown.items():
            for family in self.metrics.registry.collect():
                if family.name == f"sluice_in_flight_{name}":
                    values.update({(sample.labels["node"], sample.labels["model"]): sample.value for sample in family.samples})
        return {place: (requests, shown["tokens"][place]) for place, requests in shown["requests"].items()}


async def test_requests_and_tokens_in_flight_are_shown_by_node_and_model():
    """Configured nodes are there at 0 too, and requests without a node under an empty one; together they are all of the model's."""
    bench = Bench()
    assert bench.look() == {("vllm-0", "m"): (0, 0), ("vllm-1", "m"): (0, 0)}
    await bench.spend("l-1", "vllm-0")
    await bench.spend("l-2", "vllm-0")
    await bench.spend("l-3", None)
    assert bench.look() == {("vllm-0", "m"): (2, 120), ("vllm-1", "m"): (0, 0), ("", "m"): (1, 60)}


async def test_a_node_that_is_gone_is_shown_while_it_holds_something():
    """What still runs on a node that the settings have dropped counts until it ends."""
    bench = Bench()
    await bench.spend("l-1", "vllm-0")
    bench.readings.view = View()
    assert bench.look() == {("vllm-0", "m"): (1, 60)}
    await bench.limiter.settle("l-1", "k", Usage(10, 10))
    assert bench.look() == {}


def gauge(bench: Bench, name: str) -> dict[tuple[str, ...], float]:
    """A gauge by its label values, as a scrape shows it."""
    bench.look()
    return {
        tuple(sample.labels.values()): sample.value
        for family in bench.metrics.registry.collect()
        if family.name == name
        for sample in family.samples
    }


BY = ({"rule": "r", "code": "c", "message": "m"},)


def state(model: str, why: str = "", **standing: Any) -> NodeState:
    return NodeState("a", model, Reading(kv_ratio=0.5), 40.0, why, standing=Standing(**standing))


def test_a_node_is_live_where_all_of_its_models_are():
    """One of its two models lacks a declared signal: the node is not live, in whatever order they are configured."""
    bench = Bench()
    for states in ((state("m"), state("n", "missing:kv")), (state("n", "missing:kv"), state("m"))):
        bench.readings.view = View(nodes=states)
        assert gauge(bench, "sluice_engine_live") == {("a",): 0}


def test_why_a_node_gets_no_requests_is_told():
    """Frozen, failing and avoided are each its own series; a node that is stale is none of them."""
    bench = Bench()
    bench.readings.view = View(nodes=(state("f", "frozen"), state("v", avoided_by=BY), state("s", "stale", avoided_by=BY)))

    told = gauge(bench, "sluice_engine_shut_out")
    assert {place for place, value in told.items() if value} == {("a", "f", "frozen"), ("a", "v", "avoided")}
    assert len(told) == 9


def test_a_blind_model_has_no_age():
    """Its last age would look like that of a live one; a model that is gone leaves nothing at all."""
    bench = Bench()
    assert gauge(bench, "sluice_snapshot_age_seconds") == {("m",): 0.04}
    bench.readings.view = View(models={"m": ModelView({"live": 0})})
    assert gauge(bench, "sluice_snapshot_age_seconds") == {}
    assert gauge(bench, "sluice_model_blind") == {("m",): 1}
    bench.readings.view = View()
    assert gauge(bench, "sluice_model_blind") == {}
