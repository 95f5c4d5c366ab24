"""Leases that end with something owed: each is told of once, by how it ended, unless it was confirmed before."""

from types import SimpleNamespace

import pytest

from app.audit.records.access import RequestFacts
from app.clock import ManualClock
from app.decision.confirmation import Confirmation
from app.decision.incidents import Incidents
from app.limiter.charge import Charge, Usage
from app.limiter.memory import MemoryLimiter
from app.observability.metrics import Metrics

USED = Usage(1, 1)
ENDINGS = {
    "settled": lambda limiter: limiter.settle("d-1", "k-1", USED),
    "released": lambda limiter: limiter.release("d-1"),
    "cancelled": lambda limiter: limiter.cancel("d-1", "k-1"),
}


def owed(decision_id="d-1"):
    return Confirmation(RequestFacts("gate", "a", "m", decision_id), 365, ("mask",))


class Desk:
    """A limiter with leases that owe something, and what was told of them."""

    def __init__(self):
        self.clock = ManualClock()
        self.limiter = MemoryLimiter(self.clock, keep_ms=60_000, records_bytes=1_000_000, metrics=Metrics())
        self.told = []
        records = SimpleNamespace(
            unmet=lambda owed, reason: self.told.append((owed, reason)),
            cancelled=lambda owed: self.told.append((owed, "cancelled")),
        )
        self.incidents = Incidents(self.limiter, records)

    async def admit(self, decision_id="d-1", *, noted=True):
        assert (await self.limiter.spend(Charge(decision_id, (), 10, 20, ttl_ms=30_000, scope="k-1", tenant="a", model="m"))).admitted
        if noted:
            await self.limiter.keep_note(decision_id, owed(decision_id).pack())


@pytest.fixture
def desk():
    return Desk()


@pytest.mark.parametrize("ending", ENDINGS)
async def test_each_end_is_told_once(desk, ending):
    """How a lease ended is told at the next look, and never again."""
    await desk.admit()
    await ENDINGS[ending](desk.limiter)
    for _ in range(2):
        await desk.incidents.look()

    assert desk.told == [(owed(), ending)]


async def test_a_lease_that_expires_is_an_incident(desk):
    """At the end of its life, not before; a report that comes later changes nothing of that."""
    await desk.admit()
    desk.clock.advance(29_999)
    await desk.incidents.look()
    assert desk.told == []
    desk.clock.advance(1)
    await desk.incidents.look()
    await desk.limiter.settle("d-1", "k-1", USED)
    await desk.incidents.look()

    assert desk.told == [(owed(), "expired")]


async def test_what_was_confirmed_or_owes_nothing_is_none(desk):
    """A note that was taken by the next look is met; leases without one are nobody's business."""
    await desk.admit()
    await desk.admit("d-2", noted=False)
    for decision_id in ("d-1", "d-2"):
        await desk.limiter.settle(decision_id, "k-1", USED)
    await desk.limiter.take_note("d-1")
    await desk.incidents.stop()

    assert desk.told == []


async def test_an_incident_can_still_be_confirmed(desk):
    """The note stays with the lease: a later report takes it, once."""
    await desk.admit()
    await desk.limiter.settle("d-1", "k-1", USED)
    await desk.incidents.look()

    assert await desk.limiter.take_note("d-1") == owed().pack()
    assert await desk.limiter.take_note("d-1") is None


async def test_a_lease_that_ended_before_it_was_noted_is_told(desk):
    """The log was slower than the lease is long: what it owes is an incident all the same."""
    await desk.admit(noted=False)
    desk.clock.advance(30_000)
    await desk.limiter.keep_note("d-1", owed().pack())
    await desk.incidents.look()

    assert desk.told == [(owed(), "expired")]


async def test_an_orderly_end_tells_what_is_owed(desk):
    """What runs when serve ends can be confirmed to nobody; what ended within the last second is told as it ended."""
    for decision_id in ("d-1", "d-2", "d-3"):
        await desk.admit(decision_id)
    await desk.limiter.settle("d-2", "k-1", USED)
    await desk.limiter.cancel("d-3", "k-1")
    await desk.incidents.stop()

    assert desk.told == [(owed("d-2"), "settled"), (owed("d-3"), "cancelled"), (owed(), "stopped")]
