"""Request ids: one decision for one request, whatever comes in between."""

import asyncio
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from app.auth.keys import Principal
from app.clock import ManualClock
from app.decision.decision import Decision, Facts
from app.decision.once import Given, Once
from app.decision.request import Asking, DecideRequest
from app.limiter.charge import Charge
from app.limiter.errors import RequestIdReused
from app.limiter.memory import MemoryLimiter
from app.observability.metrics import Metrics

CALLER = Principal("k-1", "gw", frozenset({"gateway"}), frozenset({"*"}))
OTHER = Principal("k-2", "gw2", frozenset({"gateway"}), frozenset({"*"}))


class Bench:
    """A decider that admits or refuses as it is told, on a real limiter; `hold` keeps decisions open until it is set."""

    def __init__(self) -> None:
        self.clock, self.metrics = ManualClock(), Metrics()
        self.limiter = MemoryLimiter(self.clock, keep_ms=60_000, records_bytes=1 << 20, metrics=self.metrics)
        self.allow, self.made = True, 0
        self.hold = asyncio.Event()
        self.hold.set()
        self.failures: list[Exception] = []
        self.once = Once(SimpleNamespace(decide=self._decide, prefetch=self._prefetch), self.limiter, self.metrics)  # type: ignore[arg-type]

    async def _prefetch(self, _: Any) -> None:
        return

    async def _decide(self, asking: Asking, *, explain: bool) -> Decision:
        await self.hold.wait()
        if self.failures:
            raise self.failures.pop()
        self.made += 1
        facts = Facts(f"d-{self.made}", "r1", 1, 1, 1, degraded=False, explain={} if explain else None)
        if not self.allow:
            return Decision(facts, allow=False, status=429, outcome="quota")
        charge = Charge(facts.id, (), 1, 1, scope=asking.caller.key_id, request_key=asking.key, request_digest=asking.digest)
        await self.limiter.spend(charge)
        return Decision(facts, allow=True, status=200, outcome="allow")

    async def ask(self, caller: Principal = CALLER, **fields: Any) -> Given:
        document = {"tenant": "a", "model": "m", "request_id": "r1", **fields}
        return await self.once.answer(DecideRequest.model_validate(document), document, caller)


def told(given: Given) -> tuple[str, bool]:
    document = orjson.loads(given.body)
    return document["decision_id"], document["replayed"]


async def test_the_second_of_two_at_once_is_a_replay():
    """While the first is being decided the second waits, and gets the same decision."""
    bench = Bench()
    bench.hold.clear()
    calls = [asyncio.create_task(bench.ask()) for _ in range(5)]
    await asyncio.sleep(0)
    bench.hold.set()

    answers = [told(given) for given in await asyncio.gather(*calls)]

    assert sorted(answers, key=lambda answer: answer[1]) == [("d-1", False), *[("d-1", True)] * 4]
    assert bench.made == 1


async def test_a_failure_of_the_first_does_not_answer_the_second():
    """Where the first call ends in a fault of ours, one that waited for it is decided by itself."""
    bench = Bench()
    bench.hold.clear()
    bench.failures = [RuntimeError("a bug")]
    first = asyncio.create_task(bench.ask())
    await asyncio.sleep(0)
    second = asyncio.create_task(bench.ask())
    await asyncio.sleep(0)
    bench.hold.set()
    with pytest.raises(RuntimeError):
        await first

    assert told(await second) == ("d-1", False)


async def test_only_the_call_that_was_admitted_can_be_given_back():
    """A replay whose caller hangs up cancels nothing; the admission whose caller hangs up is undone."""
    bench = Bench()
    admitted, replay = await bench.ask(), await bench.ask()

    await bench.once.give_back(replay, CALLER)
    assert len(await bench.limiter.leases()) == 1
    await bench.once.give_back(admitted, CALLER)
    assert await bench.limiter.leases() == ()
    assert told(await bench.ask()) == ("d-2", False)


async def test_whoever_waited_for_a_caller_that_hung_up_is_decided_anew():
    """The retry of a request whose first caller is gone is not told that somebody else runs it."""
    bench = Bench()
    bench.hold.clear()

    async def hang_up() -> None:
        await bench.once.give_back(await bench.ask(), CALLER)

    first, retry = asyncio.create_task(hang_up()), asyncio.create_task(bench.ask())
    await asyncio.sleep(0)
    bench.hold.set()
    await first

    assert told(await retry) == ("d-2", False)


async def test_a_refusal_leaves_the_id_free():
    """A refused id is decided anew, and is then kept."""
    bench = Bench()
    bench.allow = False
    assert told(await bench.ask()) == ("d-1", False)
    bench.allow = True
    assert [told(await bench.ask()), told(await bench.ask())] == [("d-2", False), ("d-2", True)]


async def test_another_body_is_refused_and_the_same_in_another_order_is_not():
    """The digest is of the whole body, unknown fields too, in whatever order its fields stand."""
    bench = Bench()
    await bench.ask(max_tokens=1, extra={"a": 1, "b": 2})

    assert told(await bench.ask(extra={"b": 2, "a": 1}, max_tokens=1)) == ("d-1", True)
    with pytest.raises(RequestIdReused):
        await bench.ask(max_tokens=2, extra={"a": 1, "b": 2})
    with pytest.raises(RequestIdReused):
        await bench.ask(max_tokens=1)


async def test_ids_of_other_credentials_and_tenants_are_others():
    """The same id means nothing to another key or for another tenant."""
    bench = Bench()
    answers = [await bench.ask(), await bench.ask(OTHER), await bench.ask(tenant="b")]

    assert [told(given) for given in answers] == [("d-1", False), ("d-2", False), ("d-3", False)]


async def test_without_an_id_every_call_is_its_own():
    """Nothing is remembered of a call that names no id."""
    bench = Bench()

    assert [told(await bench.ask(request_id=None)) for _ in range(2)] == [("d-1", False), ("d-2", False)]


async def test_the_record_ends_a_while_after_its_lease():
    """A cancelled or forgotten lease answers no id; an expired one does until 60 s after its end."""
    bench = Bench()
    await bench.ask()
    bench.clock.advance(30_000 + 59_999)
    assert told(await bench.ask()) == ("d-1", True)
    bench.clock.advance(1)
    assert told(await bench.ask()) == ("d-2", False)


async def test_an_explanation_is_of_the_first_decision_alone():
    """What was asked for with an explanation is replayed with the one that was given."""
    bench = Bench()
    document = {"tenant": "a", "model": "m", "request_id": "r1"}
    request = DecideRequest.model_validate(document)
    first = await bench.once.answer(request, document, CALLER, explain=True)

    assert "explain" in orjson.loads(first.body)
    assert bench.metrics.registry.get_sample_value("sluice_replays_total") == 0


async def test_a_batch_with_a_contradiction_gives_back_what_came_before_it():
    """The third item repeats a request id with another body: the batch is a Conflict, and no slot stays taken."""
    bench = Bench()
    documents = [{"tenant": "a", "model": "m", "request_id": name, "n": n} for name, n in (("r1", 1), ("r2", 1), ("r1", 2))]
    requests = [DecideRequest.model_validate(document) for document in documents]

    with pytest.raises(RequestIdReused):
        await bench.once.answers(requests, documents, CALLER)

    assert await bench.limiter.leases() == ()
