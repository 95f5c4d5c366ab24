"""The newest readings of all engines and GPUs, and the generation that grows when their content changes."""

import asyncio
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from app.clock import Clock
from app.telemetry.snapshot import Gpu, Loads, Node, Snapshot

PUBLISH_MS = 100
"""Least time between two generations. The first change after a quiet time is published at once; with 100 engines there would
otherwise be one at every millisecond. Each costs every reader some milliseconds, and a reading must be in force after 300 ms
(A1): 100 of them pass between two polls."""


class Board:
    """What pollers write and readers of snapshots wait for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._nodes: dict[str, Node] = {}
        self._taken_ms: dict[str, float] = {}
        self._gpus: tuple[Gpu, ...] = ()
        self._gpus_taken_ms: Mapping[str, float] = {}
        self._loads = Loads()
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._published_ms = -math.inf
        self.generation = 1

    def snapshot(self) -> Snapshot:
        """All nodes and GPUs with their ages now."""
        now_ms = self._clock.monotonic_ms()

        def age_ms(taken_ms: float | None) -> float | None:
            return None if taken_ms is None else now_ms - taken_ms

        nodes = tuple(replace(node, age_ms=age_ms(self._taken_ms.get(name))) for name, node in sorted(self._nodes.items()))
        gpus = tuple(replace(gpu, age_ms=age_ms(self._gpus_taken_ms.get(gpu.id))) for gpu in self._gpus)
        return Snapshot(self.generation, nodes, gpus, self._loads)

    def put(self, node: Node, taken_ms: float | None) -> None:
        """Take what a scrape said; `taken_ms` None: nothing new was read, so the age goes on growing."""
        if taken_ms is not None:
            self._taken_ms[node.name] = taken_ms
        before, self._nodes[node.name] = self._nodes.get(node.name), node  # kept even where equal: durations in it have grown
        if before != node:
            self._publish_soon()

    def put_gpus(self, gpus: Iterable[Gpu], taken_ms: Mapping[str, float]) -> None:
        """Take all GPUs anew, in the order of their ids; `taken_ms` by id: when its memory was read, absent where it never was."""
        newest = tuple(sorted(gpus, key=lambda gpu: gpu.id))
        self._gpus_taken_ms = taken_ms
        if newest != self._gpus:
            self._gpus = newest
            self._publish_soon()

    def report(self, loads: Loads) -> None:
        """Tell what became of the configuration files."""
        self._loads = loads
        self._publish_soon()

    def node(self, name: str) -> Node:
        """What is known of the node."""
        return self._nodes[name]

    def remove(self, name: str) -> None:
        """Forget a node that is no longer configured."""
        self._nodes.pop(name, None)
        self._taken_ms.pop(name, None)
        self._publish_soon()

    async def beyond(self, generation: int, wait_ms: float) -> Snapshot:
        """The snapshot as soon as its generation is another than `generation`, else the same one after `wait_ms`."""
        if self.generation == generation:
            try:
                async with asyncio.timeout(wait_ms / 1000):
                    await self._changed.wait()
            except TimeoutError:
                pass  # the same content with fresh ages: that, too, is an answer
        return self.snapshot()

    def _publish_soon(self) -> None:
        if self._timer is None:
            wait_ms = max(0.0, self._published_ms + PUBLISH_MS - self._clock.monotonic_ms())
            self._timer = asyncio.get_running_loop().call_later(wait_ms / 1000, self._publish)

    def _publish(self) -> None:
        self._timer = None
        self._published_ms = self._clock.monotonic_ms()
        self.generation += 1
        self._changed.set()
        self._changed = asyncio.Event()
