"""Asking OPA for what the memo lacks: one flight per key, up to eight questions a call, as many calls at once as OPA has cores.

A flight is a task of its own, so a caller that goes away cancels nobody. When a call fails, each of its questions is asked
alone, with an equal share of the time that is left, so only the culprit gets the failure.
When down: flights end at once with PolicyUnavailable; after a silence, further ones do so without a call for a moment.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import structlog

from app.clock import Clock
from app.observability.metrics import Metrics
from app.policy.bundle import Group
from app.policy.opa import CallFailed, Down, Failed, Slow, Undefined
from app.policy.plan import Key
from app.policy.unanswered import PolicyConflict, PolicyTimeout, PolicyUnavailable, Unanswered

T = TypeVar("T")

log = structlog.get_logger()

MOST_PER_CALL = 8
"""Larger calls gain little, and each question waits for all of them."""

MOST_BESIDE = 32
"""Where nobody waits, cost counts: all about one of 100 nodes takes OPA 120 µs of CPU in calls of 8 and 80 in calls of 32, little
less in larger ones; and such a call has one of OPA's cores for 2 ms at most."""

TOGETHER_SHARE = 0.5
"""Share of a question's time that a joint call may take; a joint answer takes a tenth of it, the rest is for asking alone."""

ALONE_LEAST_MS = 2.0
"""Several times what one answer takes."""

SILENCE_MS = 250.0
"""How long OPA counts as silent after it answered nothing at all in time."""

HOLD_MOST_MS = 1000.0
"""A question that timed out is not asked again for twice its time, doubled with each time-out up to this: a busy moment
costs little, and at 50 ms a question that never ends takes a twentieth of one of OPA's cores."""

MOST_HELD = 256
"""Questions that timed out and are remembered; the oldest leave first."""


class Asking(Protocol):
    """What is needed of OPA."""

    async def ask(self, items: dict[str, dict[str, Any]], timeout_ms: float) -> tuple[str, dict[str, Any]]:
        """Revision and answers to questions, both by group and index."""
        ...

    async def alive(self, timeout_ms: float) -> bool:
        """Whether OPA answers at all."""
        ...


@dataclass(frozen=True, slots=True)
class Reply:
    """What OPA answered: `outputs` by rule, None where the group was undefined."""

    revision: str
    outputs: dict[str, dict[str, Any]] | None


@dataclass(slots=True, eq=False)
class Flight:
    """One question on its way; `landed` holds the reply, or why there is none."""

    key: Key
    group: Group
    question: dict[str, Any]
    asked_ms: float
    receive: Callable[[Reply | Unanswered], Any]
    """Makes what `landed` holds of the reply, once, whether or not anybody still waits."""
    landed: asyncio.Future[Any]


@dataclass(frozen=True, slots=True)
class _Held:
    """A question that is not asked before `until_ms`, since it timed out and took its time in vain."""

    failure: PolicyTimeout
    hold_ms: float
    until_ms: float


class Batcher:
    """Collects questions and asks them. `calls` is how many calls may be under way in each of its two lanes.

    `beside`: nobody waits, so more questions travel in a call, and a question's time begins with it, not while it queues.
    """

    def __init__(self, opa: Asking, clock: Clock, metrics: Metrics, *, timeout_ms: float, calls: int, beside: bool = False) -> None:
        self._opa = opa
        self._clock = clock
        self._metrics = metrics
        self._timeout_ms = timeout_ms
        self._together = _Lane(self._take_together, self._landing(self._ask_together), calls)
        self._alone = _Lane(self._take_alone, self._landing(self._ask_alone), calls)
        self._calls = calls
        self._beside = beside
        self._flights: dict[Key, Flight] = {}
        self._waiting: deque[Flight] = deque()
        self._suspects: deque[Flight] = deque()
        self._heard_ms = float("-inf")
        self._silent_until_ms = float("-inf")
        self._probe: asyncio.Task[None] | None = None
        self._held: dict[Key, _Held] = {}

    def ask(self, key: Key, group: Group, question: dict[str, Any], receive: Callable[[Reply | Unanswered], T]) -> asyncio.Future[T]:
        """What `receive` makes of the reply, shared by all who ask for `key` meanwhile.

        Wait for it with asyncio.wait, which does not cancel it.
        """
        flight = self._flights.get(key)
        if flight is None:
            landed: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            flight = Flight(key, group, question, self._clock.monotonic_ms(), receive, landed)
            at_once = self._known_to_fail(key, flight.asked_ms)
            if at_once is not None:
                self._land(flight, at_once)
                return landed
            self._flights[key] = flight
            self._waiting.append(flight)
            self._together.wake()
        return flight.landed

    def _known_to_fail(self, key: Key, now_ms: float) -> Unanswered | None:
        """Why a question has no answer without being asked: OPA is silent, or this very question timed out a moment ago."""
        if now_ms < self._silent_until_ms:
            return PolicyUnavailable("OPA is silent")
        held = self._held.get(key)
        if held is None or now_ms >= held.until_ms:
            return None
        self._metrics.policy_held.inc()
        return held.failure

    def _hold(self, key: Key, failure: PolicyTimeout) -> None:
        """Remember a question that timed out, for twice as long as the last time."""
        last = self._held.pop(key, None)
        hold_ms = min(HOLD_MOST_MS, 2 * (last.hold_ms if last else self._timeout_ms))
        self._held[key] = _Held(failure, hold_ms, self._clock.monotonic_ms() + hold_ms)
        while len(self._held) > MOST_HELD:
            del self._held[next(iter(self._held))]

    def beside(self) -> "Batcher":
        """Another batcher on the same OPA, one call at a time, for questions that nobody waits for."""
        return Batcher(self._opa, self._clock, self._metrics, timeout_ms=self._timeout_ms, calls=1, beside=True)

    async def close(self) -> None:
        """End all calls; flights under way land as unavailable."""
        tasks = [*self._together.tasks, *self._alone.tasks, *([self._probe] if self._probe else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for flight in list(self._flights.values()):
            self._land(flight, PolicyUnavailable("closing"))

    def _land(self, flight: Flight, reply: Reply | Unanswered) -> None:
        self._flights.pop(flight.key, None)
        if not flight.landed.done():
            flight.landed.set_result(flight.receive(reply))

    def _landing(self, ask: Callable[[list[Flight]], Coroutine[Any, Any, None]]) -> Callable[[list[Flight]], Coroutine[Any, Any, None]]:
        """`ask`, and whatever goes wrong in it, its flights land: nobody waits for ever for what a stray answer provoked."""

        async def landing(flights: list[Flight]) -> None:
            try:
                await ask(flights)
            except Exception:
                log.exception("policy_call_failed", questions=len(flights))
                for flight in flights:
                    self._land(flight, PolicyUnavailable("an answer that could not be used"))

        return landing

    def _take_together(self) -> list[Flight]:
        most = MOST_BESIDE if self._beside else MOST_PER_CALL
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    async def _ask_together(self, flights: list[Flight]) -> None:
        for flight in flights if self._beside else ():
            flight.asked_ms = self._clock.monotonic_ms()
        try:
            await self._call(flights, self._timeout_ms * TOGETHER_SHARE)
        except (Down, Undefined) as failure:
            for flight in flights:
                self._land(flight, PolicyUnavailable(failure.detail))
        except CallFailed as failure:
            if isinstance(failure, Slow):
                self._probe_health()
            self._suspects.extend(flights)
            self._alone.wake()

    def _take_alone(self) -> list[Flight]:
        return [self._suspects.popleft()] if self._suspects else []

    async def _ask_alone(self, flights: list[Flight]) -> None:
        (flight,) = flights
        left_ms = flight.asked_ms + self._timeout_ms - self._clock.monotonic_ms()
        if left_ms <= 0:
            late = await self._too_late(flight)
            if isinstance(late, PolicyTimeout):
                self._hold(flight.key, late)
            self._land(flight, late)
            return
        share_ms = min(left_ms, max(ALONE_LEAST_MS, left_ms * self._calls / (len(self._suspects) + 1)))
        try:
            await self._call(flights, share_ms)
        except Slow:
            self._suspects.append(flight)  # behind the others, for whatever time is left then
        except Failed as failure:
            self._land(flight, PolicyConflict(failure.detail, failure.rule or _names(flight.group)))
        except CallFailed as failure:
            self._land(flight, PolicyUnavailable(failure.detail))

    async def _too_late(self, flight: Flight) -> Unanswered:
        """A rule that does not end, or an OPA that says nothing at all to anybody: its health tells, asked while the rule ran."""
        if self._heard_ms < flight.asked_ms and self._clock.monotonic_ms() >= self._silent_until_ms:
            await asyncio.wait([self._probe_health()])
        if self._heard_ms >= flight.asked_ms:
            return PolicyTimeout(f"no answer within {self._timeout_ms:g} ms", _names(flight.group))
        self._silent_until_ms = self._clock.monotonic_ms() + SILENCE_MS
        return PolicyUnavailable("OPA is silent")

    async def _call(self, flights: list[Flight], timeout_ms: float) -> None:
        items: dict[str, dict[str, Any]] = {}
        for index, flight in enumerate(flights):
            items.setdefault(flight.group.name, {})[str(index)] = flight.question
        self._metrics.opa_batch.observe(len(flights))
        try:
            revision, answers = await self._opa.ask(items, timeout_ms)
        except Failed:
            self._heard_ms = self._clock.monotonic_ms()
            raise
        self._heard_ms = self._clock.monotonic_ms()
        for index, flight in enumerate(flights):
            self._held.pop(flight.key, None)
            self._land(flight, Reply(revision, answers.get(flight.group.name, {}).get(str(index))))

    def _probe_health(self) -> asyncio.Task[None]:
        if self._probe is None or self._probe.done():
            self._probe = asyncio.create_task(self._listen())
        return self._probe

    async def _listen(self) -> None:
        if await self._opa.alive(self._timeout_ms):
            self._heard_ms = self._clock.monotonic_ms()


def _names(group: Group) -> str:
    return ",".join(rule.name for rule in group.rules)


class _Lane:
    """Runs `work` on what `take` gives, `width` at a time, until `take` gives nothing."""

    def __init__(self, take: Callable[[], list[Flight]], work: Callable[[list[Flight]], Any], width: int) -> None:
        self._take = take
        self._work = work
        self._width = width
        self._woken = False
        self.tasks: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """Start work in the next turn of the loop, so that questions asked in this turn travel together."""
        if not self._woken and len(self.tasks) < self._width:
            self._woken = True
            asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        self._woken = False
        while len(self.tasks) < self._width and (flights := self._take()):
            task = asyncio.create_task(self._work(flights))
            self.tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled():
            task.result()
            self._start()
