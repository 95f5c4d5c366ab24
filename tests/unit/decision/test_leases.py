"""Settling an access that the gateway must confirm."""

import asyncio
from types import SimpleNamespace

import pytest

from app.audit.records.access import RequestFacts
from app.auth.keys import Principal
from app.clock import ManualClock
from app.decision.confirmation import Confirmation
from app.decision.leases import Leases
from app.decision.request import SettleRequest
from app.limiter.charge import Bucket, Charge
from app.limiter.memory import MemoryLimiter
from app.observability.metrics import Metrics

CALLER = Principal("k-1", "gw", frozenset(("gateway",)), frozenset(("a",)))
OWED = Confirmation(
    RequestFacts(operator="gw", tenant="a", model="m", decision_id="d-1", policy_revision="r1", quota_version=3), 365, ("log", "mask")
)


class Desk:
    """Leases over a limiter that has one admitted, unconfirmed access, `d-1`; `confirmed` is what was written."""

    def __init__(self):
        self.metrics = Metrics()
        self.limiter = MemoryLimiter(ManualClock(), keep_ms=60_000, records_bytes=1_000_000, metrics=self.metrics)
        self.confirmed = []
        self.leases = Leases(self.limiter, SimpleNamespace(confirm=self._confirm), 30_000, self.metrics)

    async def _confirm(self, confirmation):
        await asyncio.sleep(0)
        self.confirmed.append(confirmation)

    async def admit(self):
        bucket = Bucket("tenant", ("tenant", "a"), "tpm", 1000.0)
        assert (await self.limiter.spend(Charge("d-1", (bucket,), 10, 20, scope="k-1", tenant="a", model="m"))).admitted
        await self.limiter.keep_note("d-1", OWED.pack())

    async def settle(self, **report):
        return await self.leases.settle("d-1", CALLER, SettleRequest(**report))


@pytest.fixture
async def desk():
    made = Desk()
    await made.admit()
    return made


async def test_an_access_is_confirmed_when_everything_was_met(desk):
    """The first report that covers all obligations confirms; the same again confirms nothing more."""
    first = await desk.settle(obligations_met=["mask", "log", "other"])
    again = await desk.settle(obligations_met=["mask", "log", "other"])

    assert desk.confirmed == [OWED]
    assert (first["obligations_owed"], first["repeated"]) == ([], False)
    assert again == first | {"repeated": True}


@pytest.mark.parametrize(
    ("met", "flags"),
    [
        (None, []),
        ([], []),
        (["mask"], []),
        (["mask", "audit"], []),
        (["MASK", "LOG"], ["unknown_obligation"]),
        (["mask", "logging"], ["unknown_obligation"]),
    ],
)
async def test_less_than_everything_leaves_it_unconfirmed(desk, met, flags):
    """A settlement without all codes is taken as any other, confirms nothing and says so; a code that was never asked for is flagged."""
    settled = await desk.settle(prompt_tokens=1, completion_tokens=1, obligations_met=met)
    again = await desk.settle(prompt_tokens=1, completion_tokens=1, obligations_met=met)

    assert desk.confirmed == []
    assert (settled["freed"], settled["flags"], settled["obligations_owed"]) == (True, flags, ["log", "mask"])
    assert again == settled | {"repeated": True}
    assert desk.metrics.registry.get_sample_value("sluice_settle_flags_total", {"flag": "unknown_obligation"}) == (2 if flags else None)


async def test_a_wrong_code_is_counted_whichever_report_brings_it(desk):
    """A report that adds nothing but a wrong code counts as flagged, though its tokens were told before."""
    first = await desk.settle(prompt_tokens=1, completion_tokens=1)
    second = await desk.settle(prompt_tokens=1, completion_tokens=1, obligations_met=["masking"])

    assert (first["flags"], second["flags"], second["repeated"]) == ([], ["unknown_obligation"], True)
    assert desk.metrics.registry.get_sample_value("sluice_settle_flags_total", {"flag": "unknown_obligation"}) == 1


async def test_a_late_repeat_hears_what_is_owed_by_then(desk):
    """A report of a part that comes again after all was confirmed owes nothing any more; the one that confirmed gets its own answer."""
    part, whole = {"obligations_met": ["mask", "no-log"]}, {"obligations_met": ["mask", "log", "other"]}
    early, confirming = await desk.settle(**part), await desk.settle(**whole)
    late, again = await desk.settle(**part), await desk.settle(**whole)

    assert (early["obligations_owed"], early["flags"]) == (["log", "mask"], ["estimated", "unknown_obligation"])
    assert late == early | {"repeated": True, "obligations_owed": [], "flags": ["estimated"]}
    assert again == confirming
    assert desk.confirmed == [OWED]


async def test_an_access_that_owes_nothing_is_settled_as_any_other(desk):
    """Codes that nobody asked for are of no matter where nothing is owed."""
    await desk.limiter.take_note("d-1")

    settled = await desk.settle(prompt_tokens=1, completion_tokens=1, obligations_met=["mask"])

    assert (settled["flags"], settled["obligations_owed"], desk.confirmed) == ([], [], [])


async def test_a_later_report_can_still_confirm(desk):
    """What the first report left out a second one may bring, with the same tokens or others, once."""
    await desk.settle(prompt_tokens=1)
    await desk.settle(prompt_tokens=1, obligations_met=["log", "mask"])
    await desk.settle(prompt_tokens=2, obligations_met=["log", "mask"])

    assert desk.confirmed == [OWED]


async def test_reports_at_the_same_moment_confirm_once(desk):
    """Of several that settle at once one writes the entry."""
    await asyncio.gather(*(desk.settle(prompt_tokens=count, obligations_met=["log", "mask"]) for count in range(5)))

    assert desk.confirmed == [OWED]
