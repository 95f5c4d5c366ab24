"""The stand-in engine: steps the scheduler in real or handed-in time and hands each request its tokens as they come."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from app.simulator.control import Control
from app.simulator.exposition import family
from app.simulator.faults import Fault, FaultSwitch, Load, spoil
from app.simulator.kinds import OtherKind, TablePage
from app.simulator.page import Names, VllmPage
from app.simulator.readings import Gauges, Outcome
from app.simulator.request import Request
from app.simulator.scheduler import Scheduler, Sequence, Step

Kind = Literal["vllm"] | OtherKind


class Clock(Protocol):
    """Milliseconds since some start, never stepping back."""

    def monotonic_ms(self) -> float:
        """The reading."""
        ...


class Page(Protocol):
    """The metrics page of one engine, from its start to its end."""

    def stepped(self, outcome: Outcome) -> None:
        """Count one step."""
        ...

    def render(self) -> bytes:
        """The page as text 0.0.4."""
        ...


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What the engine serves and how fast; the defaults are those of a small model on one busy card."""

    model: str
    blocks: int = 32_768
    """524 288 tokens: what a card of 80 GB holds beside a model of 8 billion parameters."""
    block_size: int = 16
    max_num_seqs: int = 64
    ttft_ms: float = 50.0
    """From admission to the first token (less for prompts shorter than ttft_ms / itl_ms tokens); preemption costs it again."""
    itl_ms: float = 10.0
    """One step, thus the time between two tokens of a request."""
    kind: Kind = "vllm"
    """Whose page it has; batching is the same for all."""
    names: Names = "v1"
    """Of vLLM's page."""
    aliases: tuple[str, ...] = ()
    """Further names of the model; the page knows it by the first alone, as vLLM's does."""

    @property
    def served(self) -> tuple[str, ...]:
        """All names that a call may use."""
        return (self.model, *self.aliases)

    def __post_init__(self) -> None:
        for name in ("blocks", "block_size", "max_num_seqs", "ttft_ms", "itl_ms"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: must be greater than 0")
        if self.kind != "vllm" and self.names != "v1":
            raise ValueError(f"names: only vLLM's page has names of before, not that of {self.kind}")


class EngineRestarted(Exception):
    """The engine restarted under a running request; its tokens are lost."""


async def real_sleep(ms: float) -> None:
    """The tick of real time."""
    await asyncio.sleep(ms / 1000)


class Engine:
    """Requests in, tokens out. `run` must be running; while nothing is to do it costs nothing."""

    def __init__(self, config: EngineConfig, clock: Clock, sleep: Callable[[float], Awaitable[None]] = real_sleep) -> None:
        self.config = config
        self.faults = FaultSwitch()
        self.load = Load()
        self._clock = clock
        self._sleep = sleep
        self._work = asyncio.Event()
        self._ids = 0
        self._boot()

    def _boot(self) -> None:
        config = self.config
        prefill_steps = max(1, round(config.ttft_ms / config.itl_ms))
        self._requests: dict[str, Request] = {}
        self._aborted: set[str] = set()
        self.scheduler = Scheduler(config.blocks, config.block_size, config.max_num_seqs, prefill_steps)
        self.page = self._new_page()

    def _new_page(self) -> Page:
        config = self.config
        if config.kind == "vllm":
            return VllmPage(config.model, blocks=config.blocks, block_size=config.block_size, names=config.names, gauges=self._gauges)
        return TablePage(config.kind, config.model, capacity_tokens=self.scheduler.capacity_tokens, gauges=self._gauges)

    def set_fault(self, fault: Fault) -> None:
        """Put a fault in force; `restart` happens at once and leaves none behind."""
        if fault.mode == "restart":
            for request in self._requests.values():
                request.lose()
            self._boot()
            fault = Fault()
        self.faults.set(fault)

    def set_control(self, control: Control) -> None:
        """Put another size of the batch in force from the next step on; a restart puts the configured one back."""
        self.scheduler.max_num_seqs = control.max_num_seqs

    def render(self) -> bytes:
        """The page, with the stand-in's own series after those of the engine it plays."""
        return self.page.render() + family("sluice_engine_max_num_seqs", "gauge", {}, self.scheduler.max_num_seqs).encode()

    def check(self, prompt_tokens: int, max_tokens: int) -> None:
        """Raises ValueError where a request of this length could never fit the cache."""
        self.scheduler.check(prompt_tokens, max_tokens)

    async def generate(self, prompt_tokens: int, max_tokens: int) -> AsyncGenerator[int, None]:
        """Yields the number of each token, from 0; closing it early aborts the request, which frees its blocks in the next step.

        Raises ValueError where the request could never fit the cache, EngineRestarted where it was lost.
        """
        self._ids += 1
        sequence = Sequence(f"seq-{self._ids}", prompt_tokens, max_tokens)
        request = Request(sequence, self._clock.monotonic_ms())
        requests, scheduler = self._requests, self.scheduler
        scheduler.add(sequence)
        requests[sequence.id] = request
        self._work.set()
        try:
            for number in range(max_tokens):
                if not await request.tokens.get():
                    raise EngineRestarted("the engine restarted")
                yield number
        finally:
            if requests is self._requests and sequence.id in requests:
                self._aborted.add(sequence.id)
                self._work.set()

    async def run(self) -> None:
        """Step while there is work; for ever, until cancelled."""
        while True:
            await self._work.wait()
            self._work.clear()
            while self._requests:
                await self._sleep(self.config.itl_ms)
                await self.faults.thawed()
                self.step()

    def step(self) -> Step:
        """Drop what was aborted, then one iteration of the model at the time now."""
        aborted = self.scheduler.abort(self._aborted)
        for gone in aborted:
            del self._requests[gone]
        self._aborted.clear()
        step = self.scheduler.step()
        self.page.stepped(self._outcome(step, len(aborted)))
        return step

    def _outcome(self, step: Step, aborted: int) -> Outcome:
        now_ms = self._clock.monotonic_ms()
        outcome = Outcome(step.computed_tokens, self.scheduler.running + len(step.finished), len(step.preempted), aborted)
        for admitted in step.admitted:
            self._requests[admitted].admit(now_ms)
        for emitted in step.emitted:
            self._requests[emitted].emit(now_ms, outcome)
        outcome.finished = [self._requests.pop(finished).finished() for finished in step.finished]
        return outcome

    def _gauges(self) -> Gauges:
        scheduler = self.scheduler
        measured = Gauges(scheduler.kv_ratio, scheduler.waiting, scheduler.running, scheduler.longest_tokens)
        return spoil(self.load.over(measured), self.faults.current)
