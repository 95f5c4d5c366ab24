"""How replicas hear of approvals, and what they remember."""

import asyncio
from datetime import timedelta
from functools import partial
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.approvals.approvals import MOST_ENDED
from app.database import conninfo
from app.instants import rfc3339
from tests.fixtures.office import PERSON, Office, replica
from tests.fixtures.waiting import until


async def test_replicas_follow_and_remember_no_more_than_matters(registry_engine: AsyncEngine, office: Office, tmp_path: Path):
    """A replica learns of each step within a moment; one that starts reads those that matter, and lets go of what is long over."""
    elsewhere = replica(registry_engine, office.urls, tmp_path, office.clock)
    follower = asyncio.create_task(elsewhere.approvals.follow())
    try:
        identity = await office.ask()
        for verb, state in (("approve", "approved"), ("revoke", "revoked")):
            await office.step(identity, verb)
            await until(partial(elsewhere.stands, identity, state), within_s=2)
    finally:
        follower.cancel()
        await asyncio.gather(follower, return_exceptions=True)
    await office.ask(expires=rfc3339(office.clock.utcnow() + timedelta(hours=1)))
    office.clock.advance(25 * 3600 * 1000 + 1)
    fresh = replica(registry_engine, office.urls, tmp_path, office.clock)
    await fresh.approvals.load()

    assert [one.state for one in fresh.approvals._known.values()] == ["revoked"]  # what a replica holds is no part of its contract


async def test_the_first_of_very_many_ended_ones_are_forgotten(office: Office, monkeypatch: pytest.MonkeyPatch):
    """Memory holds the newest that were refused or revoked, and all that are open."""
    assert MOST_ENDED >= 1000
    monkeypatch.setattr("app.approvals.approvals.MOST_ENDED", 2)
    identities = [await office.ask() for _ in range(4)]
    for identity in identities[:3]:
        await office.step(identity, "refuse")

    assert [office.approvals.find("a", identity) is not None for identity in identities] == [False, True, True, True]


async def test_what_expired_gives_way_where_many_are_known(office: Office, monkeypatch: pytest.MonkeyPatch):
    """Those that were asked for a moment each are let go before their day is over; what is open stays."""
    monkeypatch.setattr("app.approvals.approvals.MOST_KNOWN", 2)
    soon = rfc3339(office.clock.utcnow() + timedelta(hours=1))
    identities = [await office.ask(expires=soon) for _ in range(3)] + [await office.ask()]
    office.clock.advance(2 * 3600 * 1000)
    identities.append(await office.ask())

    assert [office.approvals.find("a", identity) is not None for identity in identities] == [False, False, False, True, True]


async def test_nobody_gets_in_on_an_approval_that_is_being_revoked(office: Office, superuser_url: str):
    """From before the time that the revocation bears it opens nothing, so that no access is later than it; every other one stands."""
    identity, other = await office.ask(), await office.ask()
    for one in (identity, other):
        await office.step(one, "approve")
    state = lambda one: office.approvals.facts("a", one, PERSON)["state"]  # noqa: E731
    async with await psycopg.AsyncConnection.connect(conninfo(superuser_url)) as blocker:
        await blocker.execute("SELECT FROM registry.approval WHERE id = %s FOR UPDATE", (identity,))
        revoking = asyncio.create_task(office.step(identity, "revoke"))
        await until(lambda: state(identity) == "revoked", within_s=2)
        office.clock.advance(10)
        assert (state(other), revoking.done()) == ("approved", False)

    assert await revoking == (200, "revoked")
    assert (state(identity), state(other)) == ("revoked", "approved")


async def test_what_may_be_revoked_unheard_opens_nothing(office: Office):
    """15 s after the newest complete reading of the table every approval counts as unknown; after the next one they count again."""
    identity = await office.ask()
    await office.step(identity, "approve")
    state = lambda: (office.approvals.facts("a", identity, PERSON) or {}).get("state")  # noqa: E731
    office.clock.advance(15_000)
    still = state()
    office.clock.advance(1)

    assert (still, state()) == ("approved", None)
    await office.approvals.load()
    assert state() == "approved"


async def test_a_tenant_has_no_more_open_ones_than_replicas_can_hold(office: Office, monkeypatch: pytest.MonkeyPatch):
    """One more than the bound is a conflict; what has ended makes room."""
    monkeypatch.setattr("app.approvals.approvals.MOST_OPEN", 2)
    first, _ = await office.ask(), await office.ask()

    assert (await office.send("POST", "", office.wish())).status == 409
    await office.step(first, "refuse")
    assert (await office.send("POST", "", office.wish())).status == 201
