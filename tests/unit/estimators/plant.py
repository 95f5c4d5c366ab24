"""A node in closed loop with its controller: the stand-in engine's scheduler under open-loop arrivals, by a clock of its own."""

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from app.estimators.controller import Controller, Levels, Load, Output
from app.estimators.smoothing import Smoothed
from app.simulator.scheduler import Scheduler, Sequence

POLL_MS = 100
SET_POINTS = Levels(kv_ratio=0.80, waiting=8, iteration_ms=30)


@dataclass(frozen=True)
class Tick:
    """One poll: what was read, what came out, and what the engine finished since the last."""

    at_s: float
    kv_ratio: float
    waiting: int
    iteration_ms: float | None
    in_flight: int
    output: Output
    finished_tokens: int
    preempted: int


@dataclass
class Plant:
    """An engine of 1024 blocks of 16 tokens, 64 sequences, 10 ms a step and 0.2 ms more for each sequence in it.

    Requests have 150 to 250 prompt tokens and ask for 50 to 150, so about 54 of them fill the cache, and one lasts 2 s.
    """

    rate_per_s: Callable[[float], float]
    slowness: Callable[[float], float] = lambda _: 1.0
    noise: float = 0.0
    unsettled: Callable[[float], int] = lambda _: 0
    blind: Callable[[float], bool] = lambda _: False
    controlled: bool = True
    outputs: tuple[int, int] = (50, 150)
    blocks: int = 1024
    set_points: Levels = SET_POINTS
    signals: Collection[str] = ("kv_ratio", "waiting", "iteration_ms")
    floor: int = 2
    ceiling: int = 64
    seed: int = 1
    ticks: list[Tick] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.engine = Scheduler(blocks=self.blocks, block_size=16, max_num_seqs=64, prefill_steps=5)
        self.controller = Controller()
        self.output = Output(self.ceiling, 1.0)
        self.now_ms = 0.0
        self.ids = 0
        self.next_ms = 0.0
        self.requests: dict[str, tuple[float, int]] = {}
        self.lasts = Smoothed(half_life_ms=5_000, forget_ms=60_000)
        self.lasts_ms: float | None = None

    def run(self, seconds: float) -> "Plant":
        """Step the engine and poll it until `seconds` have passed."""
        steps_ms: list[float] = []
        finished_tokens = preempted = 0
        poll_ms = self.now_ms + POLL_MS
        while self.now_ms < seconds * 1000:
            self._arrive()
            step_ms = (10 + 0.2 * self.engine.running) * self.slowness(self.now_ms / 1000)
            step = self.engine.step()
            self.now_ms += step_ms
            steps_ms += [step_ms] * bool(step.emitted)
            finished = [self.requests.pop(id_) for id_ in step.finished]
            for began_ms, _ in finished:
                self.lasts_ms = self.lasts.push(self.now_ms - began_ms, self.now_ms)
            finished_tokens += sum(tokens for _, tokens in finished)
            preempted += len(step.preempted)
            if self.now_ms >= poll_ms:
                self._poll(sum(steps_ms) / len(steps_ms) if steps_ms else None, finished_tokens, preempted)
                steps_ms, finished_tokens, preempted = [], 0, 0
                poll_ms += POLL_MS
        return self

    @property
    def in_flight(self) -> int:
        return len(self.requests) + self.unsettled(self.now_ms / 1000)

    def _arrive(self) -> None:
        while self.next_ms <= self.now_ms:
            rate = self.rate_per_s(self.next_ms / 1000)
            self.next_ms += self.random.expovariate(rate) * 1000 if rate else POLL_MS
            if rate and self.in_flight < self.output.max_in_flight and self.random.random() < self.output.admission:
                self.ids += 1
                prompt, output = self.random.randint(150, 250), self.random.randint(*self.outputs)
                self.engine.add(Sequence(str(self.ids), prompt, output))
                self.requests[str(self.ids)] = (self.now_ms, output)

    def _poll(self, iteration_ms: float | None, finished_tokens: int, preempted: int) -> None:
        at_s, noisy = self.now_ms / 1000, lambda value: max(0.0, value * (1 + self.random.gauss(0, self.noise)))
        measured = Levels(
            min(1.0, noisy(self.engine.kv_ratio)), noisy(self.engine.waiting), None if iteration_ms is None else noisy(iteration_ms)
        )
        known = () if self.blind(at_s) else self.signals
        measured = Levels(**{name: getattr(measured, name) for name in known})
        if self.controlled:
            load = Load(self.in_flight, self.engine.running + self.engine.waiting, self.lasts_ms)
            self.output = self.controller.update(
                measured, self.set_points, load, floor=self.floor, ceiling=self.ceiling, now_ms=self.now_ms
            )
        tick = Tick(at_s, self.engine.kv_ratio, self.engine.waiting, iteration_ms, self.in_flight, self.output, finished_tokens, preempted)
        self.ticks.append(tick)
