"""How serve follows the telemetry process: long polls of its snapshot, and a timer that lets silent nodes grow old.

When down: the ages of the last snapshot go on growing, so every node becomes stale after `stale_ms` and leaves the view.
"""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import aiohttp
import structlog

from app.catalog.models import ModelSpec
from app.clock import Clock
from app.errors import DependencyDown
from app.observability.metrics import Metrics
from app.telemetry.ages import aged, next_expiry_ms
from app.telemetry.build_view import build_view
from app.telemetry.contact import Contact
from app.telemetry.room import memories, with_room
from app.telemetry.scrape import place
from app.telemetry.snapshot import Loads, Snapshot
from app.telemetry.view import Own, View
from app.telemetry.wire import decode

WAIT_MS = 400
"""How long one poll asks to wait: under the 500 that the server grants, so the answer is always a fresh one."""
ANSWER_MS = 500
"""What the process may need on top of the wait before it counts as silent."""
RETRY_MS = 50
"""Pause after a failed poll: a telemetry process that comes back is seen at once, one that is gone costs 20 tries a second."""
TICK_MS = 25
"""How often ages are looked at between answers; a node leaves at most this much after it became stale."""

OnView = Callable[[View], None]
Models = Callable[[], Mapping[str, ModelSpec]]

log = structlog.get_logger()


class Judge(Protocol):
    """What this replica knows of nodes beside their pages (app/nodes)."""

    @property
    def version(self) -> int:
        """Grows when its judgement changes without a new snapshot."""
        ...

    def judge(self, snapshot: Snapshot, now_ms: float) -> Own:
        """What it adds to a snapshot whose ages are true at `now_ms`."""
        ...


class NoJudge:
    """Knows nothing beside what pages say."""

    version = 0

    def judge(self, snapshot: Snapshot, now_ms: float) -> Own:  # noqa: ARG002
        """Nothing."""
        return Own()


class Follower:
    """Turns snapshots and the passing of time into views. No I/O."""

    def __init__(
        self,
        readers: Sequence[OnView],
        clock: Clock,
        metrics: Metrics,
        models: Models,
        *,
        stale_ms: float,
        judge: Judge | None = None,
    ) -> None:
        self._readers = readers
        self._models = models
        self._stale_ms = stale_ms
        self._clock = clock
        self._metrics = metrics
        self._judge = judge or NoJudge()
        self._judged = 0
        self._loads: Loads | None = None
        self._snapshot = Snapshot(generation=0)
        self._received_ms = clock.monotonic_ms()
        self._expires_ms = math.inf
        self._specs: Mapping[str, ModelSpec] = {}
        self.view = View()

    @property
    def generation(self) -> int:
        """The generation to ask the telemetry process to go beyond."""
        return self._snapshot.generation

    def receive(self, snapshot: Snapshot) -> None:
        """Take a snapshot whose ages are true now, and publish its view."""
        self._count(snapshot.loads)
        self._snapshot = snapshot
        self._received_ms = self._clock.monotonic_ms()
        self._publish(self._received_ms)

    def tick(self) -> None:
        """Publish a view where a node became stale, or the models or the judgement of nodes changed, since the last one."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._expires_ms or self._models() != self._specs or self._judge.version != self._judged:
            self._publish(now_ms)

    def _count(self, loads: Loads) -> None:
        """Count what the process counted since its last answer, or since its start where it began anew."""
        before, self._loads = self._loads or loads, loads
        for result in ("ok", "refused"):
            grown, whole = getattr(loads, result) - getattr(before, result), getattr(loads, result)
            self._metrics.config_loads.labels("engines", result).inc(whole if grown < 0 else grown)

    def _publish(self, now_ms: float) -> None:
        snapshot = aged(self._snapshot, now_ms - self._received_ms)
        self._specs = self._models()
        self._expires_ms = now_ms + next_expiry_ms(snapshot, self._stale_ms)
        self._judged = self._judge.version
        memory = memories(snapshot, self._stale_ms)
        snapshot = with_room(snapshot, self._specs, memory)
        own = self._judge.judge(snapshot, now_ms)
        self.view = build_view(snapshot, self._specs, memory, stale_ms=self._stale_ms, taken_ms=now_ms, before=self.view, own=own)
        for reader in self._readers:
            reader(self.view)


async def follow(target: str, follower: Follower, clock: Clock, *, token: str | None = None) -> None:
    """Follow the telemetry process at `target` (unix:/path or http://host:port) until cancelled.

    A view is published with every answer and whenever a node becomes stale; equal generations have equal content.
    """
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_poll(target, follower, token, clock))
        tasks.create_task(_watch_time(follower))


async def _watch_time(follower: Follower) -> None:
    while True:
        follower.tick()
        await asyncio.sleep(TICK_MS / 1000)


async def _poll(target: str, follower: Follower, token: str | None, clock: Clock) -> None:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    unix = target.removeprefix("unix:") if target.startswith("unix:") else None
    connector = aiohttp.UnixConnector(unix) if unix else aiohttp.TCPConnector()
    timeout = aiohttp.ClientTimeout(total=(WAIT_MS + ANSWER_MS) / 1000)
    contact = Contact(clock)
    async with aiohttp.ClientSession(
        "http://telemetry" if unix else target, connector=connector, timeout=timeout, headers=headers
    ) as session:
        while True:
            try:
                follower.receive(await _ask(session, follower.generation))
                contact.heard()
            except (aiohttp.ClientError, TimeoutError, DependencyDown) as error:
                if contact.unheard("silent"):
                    log.warning("telemetry.silent", target=place(target), problem=str(error) or type(error).__name__)
                await asyncio.sleep(RETRY_MS / 1000)


async def _ask(session: aiohttp.ClientSession, after: int) -> Snapshot:
    async with session.get("/snapshot", params={"after": after, "wait_ms": WAIT_MS}, allow_redirects=False) as response:
        if response.status != 200:
            raise DependencyDown(f"the telemetry process answered {response.status}")
        return decode(await response.read())
