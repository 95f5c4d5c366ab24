"""The stand-in engine: steps the scheduler in real or handed-in time and hands each request its tokens as they come."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from app.simulator.device import Device
from app.simulator.exposition import family
from app.simulator.faults import STILL, Fault, FaultSwitch, Load, spoil
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
    device: Device | None = None
    """The card it runs on; None: one whose memory nobody looks at and that never runs out of it."""
    restart_ms: float = 30_000.0
    """How long it is down after it ran out of memory: about what loading the weights takes."""
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
        if self.restart_ms < 0:
            raise ValueError("restart_ms: must not be negative")
        if self.device and self.device.preallocates and not self.device.holds(self.blocks * self.block_size):
            needed_mib = self.device.engine_mib(self.blocks * self.block_size)
            raise ValueError(f"blocks: with the whole cache the engine takes {needed_mib:.0f} MiB, more than its card has; give it fewer")
        if self.kind != "vllm" and self.names != "v1":
            raise ValueError(f"names: only vLLM's page has names of before, not that of {self.kind}")


class EngineRestarted(Exception):
    """The engine lost a request: it restarted under it, dropped it, or is down."""


async def real_sleep(ms: float) -> None:
    """The tick of real time."""
    await asyncio.sleep(ms / 1000)


class Engine:
    """Requests in, tokens out. `run` must be running, or `add` and `step` are called by hand; an engine at rest costs nothing."""

    def __init__(self, config: EngineConfig, clock: Clock, sleep: Callable[[float], Awaitable[None]] = real_sleep) -> None:
        self.config = config
        self.faults = FaultSwitch()
        self.load = Load()
        self.out_of_memory = 0
        """How often it ran out of device memory; restarts keep it."""
        self._clock = clock
        self._sleep = sleep
        self._work = asyncio.Event()
        self._ids = 0
        self._requests: dict[str, Request] = {}
        self._up_at_ms = clock.monotonic_ms()
        self._boot()

    @property
    def down(self) -> bool:
        """Whether it ran out of memory and has not come back yet."""
        return self._clock.monotonic_ms() < self._up_at_ms

    def _boot(self) -> None:
        config = self.config
        prefill_steps = max(1, round(config.ttft_ms / config.itl_ms))
        self._aborted: set[str] = set()
        self._kept: Gauges | None = None
        """What the page goes on showing while no step sets its gauges."""
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
            self._restart(down_ms=0)
            fault = Fault()
        self._kept = self._gauges() if fault.mode in ("dead", "stuck") else None
        if fault.mode == "stuck":
            self.load = Load()
            self.scheduler.abort(self._lose_all())
            self._aborted.clear()
        self.faults.set(fault)

    def _restart(self, down_ms: float) -> tuple[str, ...]:
        """Begin anew, once the engine is up again; answers the ids that were lost."""
        lost = self._lose_all()
        self._up_at_ms = self._clock.monotonic_ms() + down_ms
        self._boot()
        return lost

    def _lose_all(self) -> tuple[str, ...]:
        lost = tuple(self._requests)
        for request in self._requests.values():
            request.lose()
        self._requests.clear()
        return lost

    def set_max_num_seqs(self, most: int) -> None:
        """Put another size of the batch in force from the next step on; a restart puts the configured one back."""
        self.scheduler.max_num_seqs = most

    def render(self) -> bytes:
        """The page, with the stand-in's own series after those of the engine it plays."""
        own = family("sluice_engine_max_num_seqs", "gauge", {}, self.scheduler.max_num_seqs)
        own += family("sluice_engine_out_of_memory_total", "counter", {}, self.out_of_memory)
        return self.page.render() + own.encode()

    def used_mib(self, device: Device) -> float:
        """Memory of its card that the engine holds; an engine that is down holds none."""
        scheduler = self.scheduler
        held_blocks = scheduler.total_blocks if device.preallocates else scheduler.used_blocks
        return 0.0 if self.down else device.engine_mib(held_blocks * scheduler.block_size)

    def check(self, prompt_tokens: int, max_tokens: int) -> None:
        """Raises ValueError where a request of this length could never fit the cache."""
        self.scheduler.check(prompt_tokens, max_tokens)

    def add(self, prompt_tokens: int, max_tokens: int) -> Request:
        """Queue a request. Raises ValueError where it could never fit the cache, EngineRestarted while the engine is down."""
        if self.down:
            raise EngineRestarted("the engine is starting")
        self._ids += 1
        request = Request(Sequence(f"seq-{self._ids}", prompt_tokens, max_tokens), self._clock.monotonic_ms())
        self.scheduler.add(request.sequence)
        self._requests[request.sequence.id] = request
        self._work.set()
        return request

    def abort(self, request: Request) -> None:
        """Drop a request in the next step, which frees its blocks; nothing where it has ended or was lost."""
        if request.sequence.id in self._requests:
            self._aborted.add(request.sequence.id)
            self._work.set()

    async def generate(self, prompt_tokens: int, max_tokens: int) -> AsyncGenerator[int, None]:
        """Yields the number of each token, from 0; closing it early aborts the request.

        Raises ValueError where the request could never fit the cache, EngineRestarted where it was lost.
        """
        request = self.add(prompt_tokens, max_tokens)
        try:
            for number in range(max_tokens):
                if not await request.tokens.get():
                    raise EngineRestarted("the engine lost this request: it restarted or dropped it")
                yield number
        finally:
            self.abort(request)

    async def run(self) -> None:
        """Step while there is work; for ever, until cancelled."""
        while True:
            await self._work.wait()
            self._work.clear()
            while self._requests:
                await self._sleep(self.config.itl_ms)
                await self.faults.left(*STILL)
                self.step()

    def step(self) -> Step:
        """Drop what was aborted, then one iteration of the model at the time now; none where there is no request or a fault forbids it.

        Where the blocks in use exceed what the card holds, the engine dies instead, and all requests are lost.
        """
        if not self._requests or self.faults.current.mode in STILL:
            return Step()
        if self.faults.current.mode == "stuck":
            self.set_fault(Fault())
        aborted = self.scheduler.abort(self._aborted)
        for gone in aborted:
            del self._requests[gone]
        self._aborted.clear()
        step = self.scheduler.step()
        if self.config.device and not self.config.device.holds(step.used_blocks * self.scheduler.block_size):
            self.out_of_memory += 1
            return Step(lost=self._restart(self.config.restart_ms))
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
        return spoil(self._kept or self.load.over(measured), self.faults.current)
