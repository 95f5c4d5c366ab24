"""Arms of a proof: for each a stand-in engine, a Sluice of its own before it, and traffic through a gateway, from start to end."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bench.arrivals import Arrival
from bench.report import Finding
from bench.rules import SHIPPED
from bench.servers import Server, Sluice, ask, repeated, samples, stand_in
from bench.stage import Stage
from bench.traffic import Report, Running, Traffic

NODE, TENANT = "engine-0", "tenant-a"
SAMPLE_S = 0.25
SETTLE_S = 2.0
"""From the servers' being idle to the first arrival: a page has been read, and the gateway has started."""
BACK_S = 15.0
"""An engine that is down in the end is waited for so long."""
READY_S = 120.0
"""An arm that takes longer to get ready holds up the others no more."""
QUOTAS_ALONE = {
    folder.name: "off"
    for group in ("rules", "nodes")
    for folder in sorted((SHIPPED / group).iterdir())
    if folder.name not in ("known", "quota", "sensitive_models")
}
"""All rules off that look at engines."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What all arms of a proof have in common."""

    engine: tuple[str, ...]
    """Options of `sluice engine`."""
    quota: Mapping[str, Any]
    arrivals: tuple[Arrival, ...]
    seconds: float
    """Until the last arrival; what is in flight then may end."""
    patience_s: float
    model: Mapping[str, Any]
    """Its spec in models.yaml."""
    entry: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the engine's entry in the settings."""
    has_card: bool = False
    """Whether the memory of the engine's card is read."""
    changes: tuple[tuple[float, int], ...] = ()
    """Moments at which the engine itself gets another size of the batch, and the size."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An arm to be played: a scene under some rules."""

    name: str
    scene: Scene
    rules: Mapping[str, str]
    """As the setting policy.rules says."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A page of the engine, by series; empty while it was down."""

    at_s: float
    page: Mapping[str, float]

    def value(self, name: str) -> float | None:
        """The sum of all series of this name; None where there is none."""
        found = [value for series, value in self.page.items() if series.partition("{")[0] == name]
        return sum(found) if found else None


@dataclass(frozen=True, slots=True)
class Arm:
    """What came of it."""

    name: str
    report: Report
    samples: tuple[Sample, ...]

    def series(self, name: str) -> list[tuple[float, float]]:
        """One gauge over time; a moment at which it was not told is left out."""
        return [(sample.at_s, value) for sample in self.samples if (value := sample.value(name)) is not None]

    def grown(self, name: str) -> float:
        """What a counter grew by in all; one that fell began anew."""
        total = before = 0.0
        for _, value in self.series(name):
            total += value - before if value >= before else value
            before = value
        return total


@dataclass(frozen=True, slots=True)
class Pair:
    """Two arms of a proof: with what is to be proved, and without it."""

    row: str
    arm: Arm
    against: Arm

    def finding(self, what: str, unit: str, of: Callable[[Arm], float], note: str = "") -> Finding:
        """One figure of both."""
        value, peer = of(self.arm), of(self.against)
        return Finding(self.row, what, value, unit, self.against.name, peer, value / peer if peer else None, note=note)


def play(stage: Stage, *plans: Plan) -> list[Arm]:
    """Play arms side by side, so that the noise of the machine meets all of them. Raises RuntimeError where one could not be played."""
    ready = threading.Barrier(len(plans), timeout=READY_S)
    with ThreadPoolExecutor(len(plans)) as pool:
        playing = [pool.submit(_play, stage, plan, ready) for plan in plans]
    errors = [error for future in playing if (error := future.exception())]
    if errors:
        raise min(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError))  # the others only waited for that one
    return [future.result() for future in playing]


def _play(stage: Stage, plan: Plan, ready: threading.Barrier) -> Arm:
    """Start everything, let the traffic through once all arms are ready, end everything."""
    scene, folder = plan.scene, stage.new_folder()
    try:
        with stand_in(scene.model["id"], folder / "engine.log", *scene.engine) as engine:
            entry = {"name": NODE, "url": f"http://127.0.0.1:{engine.port}", "models": [scene.model["id"]], **scene.entry}
            settings = {"models": str(_models(folder, scene)), "policy": {"rules": dict(plan.rules)}, "gpus": _gpus(scene, engine)}
            with stage.new_sluice(plan.name, hot=0, settings=settings, engines=[entry]) as sluice:
                sluice.call("PUT", f"/quotas/{TENANT}", scene.quota)
                _ask_once(sluice, scene)
                sluice.wait_until_idle()
                ready.wait()
                return _let_through(folder, plan, engine, sluice)
    finally:
        ready.abort()  # where it is not broken by now, an arm failed before it was ready: nobody is to wait for it


def _models(folder: Path, scene: Scene) -> Path:
    path = folder / "models.yaml"
    path.write_text(yaml.safe_dump([dict(scene.model)]), "utf-8")
    return path


def _gpus(scene: Scene, engine: Server) -> dict[str, Any]:
    exporters = [f"http://127.0.0.1:{engine.port}/dcgm"] if scene.has_card else []
    return {"nvml": "off", "nvidia_smi": "off", "dcgm": exporters}


def _ask_once(sluice: Sluice, scene: Scene) -> None:
    """The first decision of all waits for OPA; it is no part of the traffic."""
    request = {"tenant": TENANT, "model": scene.model["id"], "prompt_tokens": 1, "max_tokens": 1}
    credential = sluice.credential()
    decision = sluice.call("POST", "/decide", request, **credential)
    if decision["allow"]:
        sluice.call("POST", f"/leases/{decision['decision_id']}/cancel", {}, **credential)


def _let_through(folder: Path, plan: Plan, engine: Server, sluice: Sluice) -> Arm:
    scene, start = plan.scene, time.perf_counter() + SETTLE_S
    found: list[Sample] = []

    def sample() -> None:
        card = samples(engine.port, "/dcgm/metrics") if scene.has_card else {}
        found.append(Sample(time.perf_counter() - start, card | samples(engine.port)))

    with Running(_traffic(scene, start, engine, sluice), folder) as running, repeated(sample, SAMPLE_S):
        for at_s, size in scene.changes:
            time.sleep(max(0.0, start + at_s - time.perf_counter()))
            ask(engine.port, "POST", "/control", {"max_num_seqs": size})
        report = running.report()
    deadline = time.perf_counter() + BACK_S
    while not samples(engine.port) and time.perf_counter() < deadline:  # down: what it counted can be read once it is back
        time.sleep(SAMPLE_S)
    sample()
    return Arm(plan.name, report, tuple(found))


def _traffic(scene: Scene, start: float, engine: Server, sluice: Sluice) -> Traffic:
    return Traffic(
        start=start,
        sluice_port=sluice.port,
        headers=sluice.credential(),
        tenant=TENANT,
        model=scene.model["id"],
        engines={NODE: engine.port},
        patience_s=scene.patience_s,
        arrivals=scene.arrivals,
    )
