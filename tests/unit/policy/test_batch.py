"""Collecting questions into calls."""

import asyncio

from app.clock import ManualClock
from app.observability.metrics import Metrics
from app.policy.batch import Batcher, Reply
from app.policy.opa import Down, Slow
from app.policy.unanswered import PolicyConflict, PolicyTimeout, PolicyUnavailable, Unanswered
from tests.unit.policy.opa_in_python import OpaInPython, conflict, rule


def as_it_is(reply: Reply | Unanswered) -> Reply | Unanswered:
    return reply


def opa_that(answer: object) -> OpaInPython:
    """One rule over tenants, which answers by `answer(tenant id)`."""
    return OpaInPython({"mine": lambda shown: answer(shown["tenant"]["id"])}, [rule("mine", ("tenant",))])


def batcher_on(opa: OpaInPython, clock: ManualClock | None = None, calls: int = 2) -> Batcher:
    return Batcher(opa, clock or ManualClock(), Metrics(), timeout_ms=50, calls=calls)


def ask(batcher: Batcher, opa: OpaInPython, tenant: str) -> asyncio.Future[Reply | Unanswered]:
    return batcher.ask(("r1", tenant), opa.groups[0], {"tenant": {"id": tenant}}, as_it_is)


async def test_at_most_eight_travel_together_and_each_gets_its_own_answer() -> None:
    """Twenty questions are three calls, of 8, 8 and 4, and no answer is another's."""
    opa = opa_that(lambda tenant: {"deny": [tenant]})
    batcher = batcher_on(opa)

    replies = await asyncio.gather(*(ask(batcher, opa, f"t{number}") for number in range(20)))

    assert [len(call) for call in opa.calls] == [8, 8, 4]
    assert [reply.outputs["mine"]["deny"] for reply in replies] == [[f"t{number}"] for number in range(20)]


async def test_an_undefined_answer_shifts_nobody_elses() -> None:
    """The third of four is undefined; the fourth still gets the fourth answer."""
    opa = opa_that(lambda tenant: None if tenant == "t2" else {"deny": [tenant]})
    batcher = batcher_on(opa)

    replies = await asyncio.gather(*(ask(batcher, opa, f"t{number}") for number in range(4)))

    assert [reply.outputs and reply.outputs["mine"]["deny"] for reply in replies] == [["t0"], ["t1"], None, ["t3"]]


async def test_one_key_is_one_flight() -> None:
    """Three callers with one key share one question of one call."""
    opa = opa_that(lambda tenant: {"deny": [tenant]})
    batcher = batcher_on(opa)

    await asyncio.gather(*(asyncio.wait([ask(batcher, opa, "same")]) for _ in range(3)))

    assert [len(call) for call in opa.calls] == [1]


async def test_no_more_calls_than_cores_are_under_way() -> None:
    """With two cores and OPA busy, forty questions wait as two calls of eight and the rest in the queue."""
    opa = opa_that(lambda tenant: {"deny": [tenant]})
    opa.gate = asyncio.Event()
    batcher = batcher_on(opa)
    flights = [ask(batcher, opa, f"t{number}") for number in range(40)]
    for _ in range(10):
        await asyncio.sleep(0)

    assert len(opa.calls) == 2
    opa.gate.set()
    await asyncio.wait(flights)
    assert len(opa.calls) == 5


async def test_beside_the_traffic_more_travel_in_a_call_and_one_call_at_a_time() -> None:
    """Forty questions that nobody waits for are calls of 32 and 8, the second after the first."""
    opa = opa_that(lambda tenant: {"deny": [tenant]})
    opa.gate = asyncio.Event()
    batcher = batcher_on(opa).beside()
    flights = [ask(batcher, opa, f"t{number}") for number in range(40)]
    for _ in range(10):
        await asyncio.sleep(0)

    assert [len(call) for call in opa.calls] == [32]
    opa.gate.set()
    await asyncio.wait(flights)
    assert [len(call) for call in opa.calls] == [32, 8]


async def test_beside_the_traffic_time_begins_with_the_call() -> None:
    """What waited for its turn longer than an answer may take is still answered, though its call fails and each is asked alone."""
    clock = ManualClock()
    opa = opa_that(lambda tenant: conflict("mine") if tenant == "t35" else {"deny": [tenant]})
    opa.gate = asyncio.Event()
    batcher = batcher_on(opa, clock).beside()
    flights = [ask(batcher, opa, f"t{number}") for number in range(40)]
    for _ in range(10):
        await asyncio.sleep(0)
    clock.advance(1000)
    opa.gate.set()
    await asyncio.wait(flights)

    assert [type(flight.result()) for flight in flights] == [Reply] * 35 + [PolicyConflict] + [Reply] * 4


async def test_only_the_culprit_of_a_failed_call_fails() -> None:
    """One conflict among eight: seven answers, one policy_conflict with the rule's name."""
    opa = opa_that(lambda tenant: conflict("mine") if tenant == "t5" else {"deny": [tenant]})
    batcher = batcher_on(opa)

    replies = await asyncio.gather(*(ask(batcher, opa, f"t{number}") for number in range(8)))

    assert isinstance(replies[5], PolicyConflict)
    assert replies[5].rule == "mine"
    assert [number for number, reply in enumerate(replies) if isinstance(reply, Unanswered)] == [5]


class Sluggish(OpaInPython):
    """Every call takes as long as it may, and ends without an answer for tenants called as `slow` says."""

    slow = "loop"

    def __init__(self, clock: ManualClock) -> None:
        super().__init__({"mine": lambda shown: {"deny": [shown["tenant"]["id"]]}}, [rule("mine", ("tenant",))])
        self.clock = clock

    async def ask(self, items: dict, timeout_ms: float) -> tuple[str, dict]:
        answer = await super().ask(items, timeout_ms)
        if any(question["tenant"]["id"].startswith(self.slow) for questions in items.values() for question in questions.values()):
            self.clock.advance(timeout_ms)
            raise Slow("no answer in time")
        return answer


async def test_a_rule_that_does_not_end_times_out_alone_within_its_time() -> None:
    """Beside one loop seven are answered; the loop is policy_timeout once its 50 ms are over, since OPA itself is well."""
    clock = ManualClock()
    opa = Sluggish(clock)
    batcher = batcher_on(opa, clock)

    replies = await asyncio.gather(*(ask(batcher, opa, name) for name in ["loop", *(f"t{number}" for number in range(7))]))

    assert isinstance(replies[0], PolicyTimeout)
    assert replies[0].rule == "mine"
    assert [reply.outputs["mine"]["deny"] for reply in replies[1:]] == [[f"t{number}"] for number in range(7)]
    assert clock.monotonic_ms() <= 100


async def test_a_question_that_timed_out_is_left_alone_for_longer_each_time() -> None:
    """After 50 ms in vain it is not asked for 100 ms, then for 200 and so on up to a second; others are, and an answer starts it over."""
    clock, metrics = ManualClock(), Metrics()
    opa = Sluggish(clock)
    batcher = Batcher(opa, clock, metrics, timeout_ms=50, calls=2)

    async def held_for(hold_ms: float) -> None:
        assert isinstance(await ask(batcher, opa, "loop"), PolicyTimeout)
        calls = len(opa.calls)
        clock.advance(hold_ms - 1)
        assert isinstance(await ask(batcher, opa, "loop"), PolicyTimeout)
        assert len(opa.calls) == calls
        assert isinstance(await ask(batcher, opa, "t1"), Reply)
        clock.advance(1)

    for hold_ms in (100, 200, 400, 800, 1000, 1000):
        await held_for(hold_ms)
    assert metrics.registry.get_sample_value("sluice_policy_held_total") == 6

    opa.slow = "nobody"
    assert isinstance(await ask(batcher, opa, "loop"), Reply)
    opa.slow = "loop"
    await held_for(100)


async def test_a_silent_opa_is_an_outage_and_later_questions_do_not_wait_for_it() -> None:
    """Without any answer and without health it is policy_unavailable; for 250 ms more questions fail without a call."""
    clock = ManualClock()
    opa = Sluggish(clock)
    opa.healthy = False
    batcher = batcher_on(opa, clock)

    assert isinstance(await ask(batcher, opa, "loop"), PolicyUnavailable)
    calls = len(opa.calls)
    assert isinstance(await ask(batcher, opa, "t1"), PolicyUnavailable)
    assert len(opa.calls) == calls

    clock.advance(250)
    assert isinstance(await ask(batcher, opa, "t1"), Reply)


async def test_a_refused_connection_fails_all_at_once() -> None:
    """Nobody is asked alone when there is nobody to ask."""
    opa = opa_that(lambda tenant: {"deny": [tenant]})
    opa.down = Down("refused")
    batcher = batcher_on(opa)

    replies = await asyncio.gather(*(ask(batcher, opa, f"t{number}") for number in range(8)))

    assert [type(reply) for reply in replies] == [PolicyUnavailable] * 8
    assert len(opa.calls) == 1


async def test_closing_lands_what_is_under_way() -> None:
    """A flight that OPA never answers ends as unavailable when the batcher closes."""
    opa = opa_that(lambda tenant: {"deny": [tenant]})
    opa.gate = asyncio.Event()
    batcher = batcher_on(opa)
    flight = ask(batcher, opa, "t0")
    await asyncio.sleep(0)

    await batcher.close()

    assert isinstance(flight.result(), PolicyUnavailable)


async def test_an_answer_that_breaks_its_reader_leaves_nobody_waiting() -> None:
    """Whatever a stray answer provokes, all who asked are told that there is none, and the next question is asked anew."""
    opa = opa_that(lambda tenant: {"deny": [tenant]})
    batcher, sound = batcher_on(opa), opa.ask

    async def broken(items: object, timeout_ms: float) -> object:
        raise AttributeError("'list' object has no attribute 'get'")

    opa.ask = broken  # type: ignore[method-assign,assignment]
    replies = await asyncio.wait_for(asyncio.gather(ask(batcher, opa, "a"), ask(batcher, opa, "b")), 5)
    opa.ask = sound  # type: ignore[method-assign]

    assert [type(reply) for reply in replies] == [PolicyUnavailable, PolicyUnavailable]
    assert isinstance(await asyncio.wait_for(ask(batcher, opa, "a"), 5), Reply)
