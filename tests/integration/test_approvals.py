"""/approvals down to PostgreSQL: who may take which step, each with its log entry, and how replicas hear of it."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import orjson
import psycopg
import pytest
from fastapi import FastAPI, Header
from sqlalchemy.ext.asyncio import AsyncEngine

from app.api.approvals import approval_router
from app.api.failures import install_failures
from app.api.readers import Readers
from app.approvals.approvals import MOST_ENDED, Approvals
from app.audit.intake.gaps import Gaps
from app.audit.intake.intake import Intake
from app.audit.intake.pending import Pending
from app.audit.people.people import People
from app.audit.reading.log import Log
from app.audit.reading.refusals import Refusals
from app.auth.keys import Principal
from app.catalog.models import ModelSpec
from app.clock import ManualClock
from app.database import DatabaseUrls, conninfo, create_engine
from app.instants import rfc3339
from app.observability.metrics import Metrics
from app.setting_sections import DatabaseSettings
from tests.fixtures.approvals import SPECS, approvals_of, caller
from tests.fixtures.asgi import Reply, call
from tests.fixtures.postgres import TIMEOUT_MS, rows_of
from tests.fixtures.registry import registry_of
from tests.fixtures.waiting import until

PERSON, REASON = "alice@example.org", "the quarterly training of alice's classifier"
REASONED = {"reason": "seen"}
QUICK_MS = 300


@dataclass
class Office:
    """One replica: its API, what it knows, and its clock."""

    api: FastAPI
    approvals: Approvals
    people: People
    clock: ManualClock
    urls: DatabaseUrls
    pending: Pending

    async def send(self, method: str, target: str, document: Any = None, *, role: str = "operator", name: str | None = None) -> Reply:
        """One call by a key of that role; two roles are written a+b, and a name makes it another key."""
        body = b"" if document is None else orjson.dumps(document)
        return await call(self.api, method, f"/approvals{target}", body, x_role=role, x_name=name or role)

    def wish(self, **changes: Any) -> dict[str, Any]:
        """What is asked for; what is None is left out."""
        expires = rfc3339(self.clock.utcnow() + timedelta(days=30))
        good = {"tenant": "a", "model": "m", "action": "train", "purpose": "model-training", "subject_id": PERSON, "reason": REASON}
        return {name: value for name, value in (good | {"expires": expires} | changes).items() if value is not None}

    async def ask(self, *, role: str = "operator", **changes: Any) -> str:
        """The id of a new approval."""
        reply = await self.send("POST", "", self.wish(**changes), role=role)
        assert reply.status == 201, reply.body
        return str(reply.json["id"])

    async def step(self, identity: str, verb: str, *, role: str = "approver", name: str | None = None) -> tuple[int, str]:
        """Status, and the state or the code of the problem."""
        reply = await self.send("POST", f"/{identity}/{verb}", REASONED, role=role, name=name)
        return reply.status, reply.json.get("code") or reply.json["state"]

    def stands(self, identity: str, state: str) -> bool:
        """Whether this replica knows the approval in that state."""
        known = self.approvals.find("a", identity)
        return known is not None and known.state == state

    async def entries(self) -> list[Any]:
        """What the log was handed of approvals, in order, with the retention class of each."""
        return [entry for entry in await self._told() if entry["kind"].startswith("approval.")]

    async def reads(self) -> list[tuple[str, str, Any]]:
        """What the log was handed of readings and refusals: by whom, how it ended, and what was asked for."""
        await self.pending.flush()
        told = [entry for entry in await self._told() if entry["kind"] == "log.read"]
        assert {entry["read"] for entry in told} <= {"approvals"}
        return [(entry["operator"], entry["outcome"], entry["query"]) for entry in told]

    async def _told(self) -> list[Any]:
        rows = await rows_of(self.urls.owner, "SELECT retention, body FROM audit.intake ORDER BY id")
        return [orjson.loads(bytes(body)) | {"retention": retention} for retention, body in rows]


async def principal(x_role: Annotated[str, Header()], x_name: Annotated[str, Header()]) -> Principal:
    return caller(x_name, *x_role.split("+"))


def replica(engine: AsyncEngine, urls: DatabaseUrls, folder: Path, clock: ManualClock, *, timeout_ms: int = TIMEOUT_MS) -> Office:
    people = People(engine, folder / "secrets", clock, Metrics(), timeout_ms=timeout_ms)
    approvals = approvals_of(engine, people, clock=clock, timeout_ms=timeout_ms)
    intake = Intake(engine, Metrics(), Gaps(clock), timeout_ms=timeout_ms)
    audit, pending = Log(engine, intake, clock, Metrics(), timeout_ms=timeout_ms), Pending(intake, clock, Metrics())
    readers = Readers(principal, Refusals(pending, clock))
    api = FastAPI()
    install_failures(api)
    api.include_router(approval_router(approvals, registry_of(engine, folder), audit, readers, clock))
    return Office(api, approvals, people, clock, urls, pending)


@pytest.fixture
async def engine(database_urls: DatabaseUrls) -> AsyncIterator[AsyncEngine]:
    made = create_engine(database_urls.registry, DatabaseSettings())
    yield made
    await made.dispose()


@pytest.fixture
async def office(engine: AsyncEngine, database_urls: DatabaseUrls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    """A replica with the tenants `a` and `b`, which has read what there is."""
    monkeypatch.setattr("app.quota.registry.Tenants.tenant", lambda _, tenant: tenant if tenant in ("a", "b") else None)
    made = replica(engine, database_urls, tmp_path, ManualClock(datetime.now(UTC)))
    await made.approvals.load()
    return made


async def test_from_the_question_to_its_end(office: Office):
    """Asked, approved by somebody else and revoked: each is answered, in force at once, and in the log for as long as accesses are."""
    identity = await office.ask()
    known = office.approvals.find("a", identity)
    assert known is not None
    assert (known.state, office.approvals.find("b", identity)) == ("asked", None)

    assert await office.step(identity, "approve") == (200, "approved")
    assert office.approvals.facts("a", identity, PERSON) == {
        "state": "approved",
        "model": "m",
        "action": "train",
        "purpose": "model-training",
        "subject": "same",
    }
    assert await office.step(identity, "revoke", role="operator") == (200, "revoked")
    assert office.approvals.find("a", identity).state == "revoked"

    told = await office.entries()
    assert [(entry["kind"], entry["operator"], entry["retention"]) for entry in told] == [
        ("approval.asked", "operator", "d730"),
        ("approval.approved", "approver", "d730"),
        ("approval.revoked", "operator", "d730"),
    ]
    assert {entry["approval_id"] for entry in told} == {identity, told[0]["id"]}
    assert {(entry["tenant"], entry["model"], entry["action"], entry["purpose"]) for entry in told} == {
        ("a", "m", "train", "model-training")
    }
    assert {entry["subject"] for entry in told} == {office.people.pseudonyms.subject("a", PERSON)}


async def test_a_person_stands_in_no_table_in_clear(office: Office):
    """The subject is a pseudonym and reasons are sealed, in the registry as in the log; both open with the person's own key."""
    identity = await office.ask()
    await office.step(identity, "approve")
    tables = ["registry.approval", "audit.intake", "registry.subject_key"]
    dump = str([await rows_of(office.urls.owner, f"SELECT * FROM {table}") for table in tables])  # noqa: S608 - constants
    asked, approved = await office.entries()
    keys = await office.people.keys.keyring([*asked["sealed"].values(), *approved["sealed"].values()])

    assert [word for word in (PERSON, REASON, PERSON.encode().hex(), REASON.encode().hex(), "seen") if word in dump] == []
    assert {name: keys.open(UUID(asked["id"]), name, text) for name, text in asked["sealed"].items()} == {
        "subject": PERSON,
        "reason": REASON,
    }
    assert keys.open(UUID(approved["id"]), "reason", approved["sealed"]["reason"]) == "seen"
    await rows_of(office.urls.owner, "DELETE FROM registry.subject_key")
    shown = (await office.send("GET", f"/{identity}?open=true", role="auditor")).json
    assert ("reason" in shown["asked"], "reason" in shown["answered"]) == (False, False)


async def test_what_is_answered(office: Office):
    """An approval is shown with its steps, with reasons only to whoever asks for them, and with the pseudonym in place of the person."""
    asked = await office.send("POST", "", office.wish())
    shown = asked.json
    approved = await office.send("POST", f"/{shown['id']}/approve", REASONED, role="approver")

    assert (asked.status, shown["state"], shown["asked"]["by"], "reason" in shown["asked"]) == (201, "asked", "operator", False)
    assert shown["subject"].startswith("p1:")
    assert PERSON.encode() not in asked.body
    assert approved.json["answered"] == {"by": "approver", "at": rfc3339(office.clock.utcnow())}
    assert (await office.send("GET", f"/{shown['id']}", role="auditor")).json == approved.json
    opened = (await office.send("GET", f"/{shown['id']}?open=true", role="auditor")).json
    assert (opened["asked"]["reason"], opened["answered"]["reason"]) == (REASON, "seen")


async def test_one_that_changes_nothing_says_so(office: Office, monkeypatch: pytest.MonkeyPatch):
    """An approval of a model whose spec asks for none, or is no sensitive one by now, is told so with a warning for as long as it is open."""
    asked = (await office.send("POST", "", office.wish(model="without"))).json
    needed = await office.ask()
    listed = {one["id"]: one for one in (await office.send("GET", "?state=asked", role="approver")).json["approvals"]}
    approved = (await office.send("POST", f"/{asked['id']}/approve", REASONED, role="approver")).json
    revoked = (await office.send("POST", f"/{asked['id']}/revoke", REASONED)).json

    assert asked["warning"].startswith("models.yaml asks for no approval of without: ")
    assert listed[asked["id"]]["warning"] == approved["warning"] == asked["warning"]
    assert (listed[needed]["warning"], "warning" in revoked) == (None, False)

    monkeypatch.setitem(SPECS, "m", ModelSpec(id="m"))
    opened = (await office.send("GET", f"/{needed}", role="auditor")).json["warning"]
    assert opened == (
        "models.yaml asks for no approval of m: requests are decided without this one, unless a rule of yours reads it. "
        "To close m without one, give it a sensitive section with approval: true there."
    )


async def test_who_reads_reasons_is_recorded_first(office: Office):
    """Reading with reasons is an entry with what was asked for, committed before the answer; without them it is none."""
    identity = await office.ask()
    await office.send("GET", "?state=asked", role="approver")
    await office.send("GET", f"/{identity}", role="approver")
    assert await office.reads() == []

    await office.send("GET", "?state=asked&open=true", role="approver")
    await office.send("GET", f"/{identity}?open=true", role="auditor")

    assert await office.reads() == [
        ("approver", "done", {"state": "asked", "open": True}),
        ("auditor", "done", {"approval_id": identity, "tenant": "a", "open": True}),
    ]


async def test_no_reason_leaves_unrecorded(office: Office, engine: AsyncEngine, tmp_path: Path, superuser_url: str):
    """Where the reading cannot be recorded nothing is shown: 503; what needs no record is answered."""
    identity = await office.ask()
    hurried = replica(engine, office.urls, tmp_path, office.clock, timeout_ms=QUICK_MS)
    async with await psycopg.AsyncConnection.connect(conninfo(superuser_url)) as blocker:
        await blocker.execute("LOCK TABLE audit.intake IN ACCESS EXCLUSIVE MODE")
        refused = [await hurried.send("GET", target, role="auditor") for target in ("?open=true", f"/{identity}?open=true")]
        plain = await hurried.send("GET", f"/{identity}", role="auditor")

    assert [(reply.status, reply.json["code"], REASON.encode() in reply.body) for reply in refused] == [
        (503, "audit_unavailable", False)
    ] * 2
    assert plain.status == 200


async def test_who_is_refused_is_told_to_the_log(office: Office):
    """By role, by having asked, by another's tenant: each attempt is an entry that names the step; an id that is none is not repeated."""
    identity = await office.ask(role="operator+approver")
    await office.step(identity, "approve", role="operator+approver")
    await office.step(identity, "refuse", role="auditor")
    await office.step("no id at all", "revoke", role="gateway")
    await office.send("GET", "?tenant=a&open=true", role="gateway")
    await office.send("POST", "", office.wish(tenant="b"), role="gateway")
    await office.send("POST", "", office.wish(), role="auditor")

    assert await office.reads() == [
        ("operator+approver", "refused", {"step": "approve", "approval_id": identity}),
        ("auditor", "refused", {"step": "refuse", "approval_id": identity}),
        ("gateway", "refused", {"step": "revoke"}),
        ("gateway", "refused", {"tenant": "a"}),
        ("gateway", "refused", {"step": "ask", "tenant": "b"}),
        ("auditor", "refused", {"step": "ask"}),
    ]


@pytest.mark.parametrize("verb", ["approve", "refuse"])
async def test_whoever_asked_cannot_answer(office: Office, verb: str):
    """A key with both roles answers nothing that it asked for itself; what somebody else asked it does."""
    identity = await office.ask(role="operator+approver")

    assert await office.step(identity, verb, role="operator+approver") == (403, "same_asker")
    assert (await office.step(identity, verb, role="operator+approver", name="another"))[0] == 200
    assert len(await office.entries()) == 2


async def test_of_two_who_answer_at_once_one_wins(office: Office, engine: AsyncEngine, tmp_path: Path):
    """One answer counts, the other is told that it came too late; on two replicas, and one entry says which."""
    elsewhere = replica(engine, office.urls, tmp_path, office.clock)
    identity = await office.ask()

    answers = await asyncio.gather(
        office.step(identity, "approve", name="one"),
        elsewhere.step(identity, "refuse", name="two"),
        office.step(identity, "approve", name="three"),
    )

    assert sorted(status for status, _ in answers) == [200, 409, 409]
    assert {code for status, code in answers if status == 409} == {"approval_ended"}
    assert len(await office.entries()) == 2


async def test_nothing_follows_what_is_over(office: Office):
    """Expired, refused and revoked ones stay so; to revoke again answers the same and writes nothing more."""
    refused, revoked, open_one = await office.ask(), await office.ask(), await office.ask()
    await office.step(refused, "refuse")
    await office.step(revoked, "approve")
    first = await office.send("POST", f"/{revoked}/revoke", REASONED, role="admin")
    told = len(await office.entries())

    assert (await office.send("POST", f"/{revoked}/revoke", REASONED, role="approver")).json == first.json
    assert await office.step(refused, "approve") == (409, "approval_ended")
    assert await office.step(refused, "revoke") == (409, "approval_ended")
    assert await office.step(revoked, "approve") == (409, "approval_ended")
    assert await office.step(open_one, "revoke") == (409, "approval_ended")
    office.clock.advance(30 * 24 * 3600 * 1000)
    assert await office.step(open_one, "approve") == (409, "approval_ended")
    assert (await office.send("GET", f"/{open_one}", role="auditor")).json["state"] == "expired"
    assert len(await office.entries()) == told


STEPS: tuple[tuple[str, str, set[str]], ...] = (
    ("POST", "", {"operator", "admin", "gateway"}),
    ("GET", "", {"operator", "approver", "auditor", "admin"}),
    ("GET", "/{id}", {"operator", "approver", "auditor", "admin"}),
    ("POST", "/{id}/approve", {"approver"}),
    ("POST", "/{id}/refuse", {"approver"}),
    ("POST", "/{id}/revoke", {"operator", "approver", "admin"}),
)
"""Method, target and the roles that may."""


async def test_who_may_what(office: Office):
    """Each step is for its roles and no other; only the role approver answers."""
    for (method, target, allowed), role in itertools.product(STEPS, ("gateway", "operator", "approver", "auditor", "admin")):
        identity = await office.ask(role="operator")
        if target.endswith("revoke"):
            await office.step(identity, "approve", name="first")
        document = None if method == "GET" else office.wish() if target == "" else REASONED
        reply = await office.send(method, target.format(id=identity), document, role=role)
        assert (reply.status == 403) == (role not in allowed), (method, target, role, reply.body)
        assert reply.status in (200, 201, 403)


async def test_a_gateway_asks_for_its_own_tenants_alone(office: Office):
    """Tenant `b` is not its own; an operator may ask for it, and nobody for a tenant without a quota."""
    assert (await office.send("POST", "", office.wish(), role="gateway")).status == 201
    assert (await office.send("POST", "", office.wish(tenant="b"), role="gateway")).json["code"] == "forbidden"
    assert (await office.send("POST", "", office.wish(tenant="b"))).status == 201
    assert (await office.send("POST", "", office.wish(tenant="c"))).status == 404


WRONG_CALLS: tuple[tuple[str, str, Any, int, str], ...] = (
    ("GET", "?state=open", None, 400, "state"),
    ("GET", "?subject=p1", None, 400, "subject"),
    ("GET", "?limit=0", None, 400, "limit"),
    ("GET", "?cursor=1", None, 400, "cursor"),
    ("GET", "?tenant=%00", None, 400, "tenant"),
    ("GET", "/not-an-id", None, 404, "approval_id"),
    ("GET", "/01890000-0000-7000-8000-000000000001", None, 404, "approval_id"),
    ("POST", "/01890000-0000-7000-8000-000000000001/revoke", REASONED, 404, "approval_id"),
    ("POST", "/01890000-0000-7000-8000-000000000001/revoke", {}, 400, "reason"),
    ("POST", "", {"tenant": "a"}, 400, "model"),
    ("POST", "", [], 400, "body"),
)
"""Method, target, body, and what is answered: status and field."""


async def test_a_wrong_call_names_the_field(office: Office):
    """What is misspelt, missing or unknown is a problem that names it, and nothing is kept."""
    for method, target, document, status, field in WRONG_CALLS:
        reply = await office.send(method, target, document)
        assert (reply.status, reply.json["field"], reply.headers["content-type"]) == (status, field, "application/problem+json")

    assert await office.entries() == []


async def test_a_damaged_key_keeps_nobody_from_closing(engine: AsyncEngine, office: Office, tmp_path: Path, superuser_url: str):
    """One person's damaged key hides their reasons and nothing else: lists are answered, and what was approved can be revoked."""
    await office.ask(everyone=True, subject_id=None)  # by which the master key is known to be the right one
    identity = await office.ask()
    await office.step(identity, "approve")
    async with await psycopg.AsyncConnection.connect(conninfo(superuser_url)) as connection:
        await connection.execute(
            "UPDATE registry.subject_key SET wrapped = set_byte(wrapped, 20, get_byte(wrapped, 20) # 1)"
            " WHERE subject = (SELECT subject FROM registry.approval WHERE id = %s)",
            (identity,),
        )
    fresh = replica(engine, office.urls, tmp_path, office.clock)
    listed = (await fresh.send("GET", "?open=true")).json["approvals"]

    assert [one["asked"].get("reason") for one in listed] == [None, REASON]
    assert (listed[0]["asked"]["unreadable"], listed[0]["answered"]["unreadable"]) == (True, True)
    assert await fresh.step(identity, "revoke") == (200, "revoked")
    assert (await fresh.send("GET", f"/{identity}?open=true")).json["revoked"]["reason"] == REASONED["reason"]


async def test_a_list_is_filtered_and_paged(office: Office):
    """Newest first; by tenant, model and how they stand now; page after page each stands once."""
    first, second, third = [await office.ask(tenant=tenant) for tenant in ("a", "b", "a")]
    await office.step(first, "approve")
    await office.step(second, "refuse")

    async def ids(query: str) -> list[str]:
        return [one["id"] for one in (await office.send("GET", query, role="auditor")).json["approvals"]]

    assert await ids("") == [third, second, first]
    assert await ids("?tenant=a") == [third, first]
    assert await ids("?model=other") == []
    assert [await ids(f"?state={state}") for state in ("asked", "approved", "refused", "revoked")] == [[third], [first], [second], []]
    page = (await office.send("GET", "?limit=2", role="auditor")).json
    rest = (await office.send("GET", f"?limit=2&cursor={page['next']}", role="auditor")).json
    assert [one["id"] for one in page["approvals"] + rest["approvals"]] == [third, second, first]
    assert rest["next"] is None
    office.clock.advance(31 * 24 * 3600 * 1000)
    assert await ids("?state=expired&tenant=a") == [third, first]


async def test_without_the_log_nothing_changes(engine: AsyncEngine, office: Office, tmp_path: Path, superuser_url: str):
    """While no entry can be written every step is a 503, what was approved stays, and afterwards the same call works."""
    hurried = replica(engine, office.urls, tmp_path, office.clock, timeout_ms=QUICK_MS)
    approved, asked = await office.ask(), await office.ask()
    await office.step(approved, "approve")
    await hurried.approvals.load()
    async with await psycopg.AsyncConnection.connect(conninfo(superuser_url)) as blocker:
        await blocker.execute("LOCK TABLE audit.intake IN ACCESS EXCLUSIVE MODE")
        assert (await hurried.send("POST", "", hurried.wish())).status == 503
        assert (await hurried.step(asked, "approve"))[0] == 503
        assert (await hurried.step(approved, "revoke"))[0] == 503
        assert hurried.approvals.find("a", approved).state == "approved"
        assert hurried.approvals.find("a", asked).state == "asked"
        assert hurried.approvals.facts("a", approved, PERSON)["state"] == "approved"

    assert len(await office.entries()) == 3
    assert await hurried.step(asked, "approve") == (200, "approved")
    assert await hurried.step(approved, "revoke") == (200, "revoked")
    assert len(await rows_of(office.urls.owner, "SELECT id FROM registry.approval")) == 2


async def test_replicas_follow_and_remember_no_more_than_matters(engine: AsyncEngine, office: Office, tmp_path: Path):
    """A replica learns of each step within a moment; one that starts reads those that matter, and lets go of what is long over."""
    elsewhere = replica(engine, office.urls, tmp_path, office.clock)
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
    fresh = replica(engine, office.urls, tmp_path, office.clock)
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


INSERT = (
    "INSERT INTO registry.approval (id, tenant, model, action, subject, expires, asked, asked_by, asked_key, asked_reason) "
    "VALUES (gen_random_uuid(), 'a', 'm', 'train', NULL, now() + interval '1 day', now(), 'asker', 'k-1', 's1:x')"
)
ANSWER = "UPDATE registry.approval SET state = '{state}', answered = now(), answered_by = '{by}', answered_key = '{key}', answered_reason = 's1:y'"
REVOKE = "UPDATE registry.approval SET state = 'revoked', revoked = now(), revoked_by = 'x', revoked_key = 'k-3', revoked_reason = 's1:z'"
APPROVE = ANSWER.format(state="approved", by="other", key="k-2")


AGAINST_THE_RULES: tuple[tuple[str, ...], ...] = (
    (ANSWER.format(state="approved", by="asker", key="k-2"),),
    (ANSWER.format(state="approved", by="other", key="k-1"),),
    ("UPDATE registry.approval SET state = 'approved'",),
    (REVOKE,),
    (ANSWER.format(state="refused", by="other", key="k-2"), APPROVE),
    (APPROVE, APPROVE),
    (APPROVE, REVOKE, APPROVE),
    (APPROVE, f"{REVOKE}, answered_by = 'somebody'"),
    (APPROVE.replace("now()", "now() + interval '2 days'"),),
    ("DELETE FROM registry.approval",),
    ("TRUNCATE registry.approval",),
    (INSERT.replace("NULL", "'alice'"),),
    (INSERT.replace("'1 day'", "'367 days'"),),
    (INSERT.replace("asked_reason)", "asked_reason, state)").replace("'s1:x'", "'s1:x', 'refused'"),),
)
"""Statements after a fresh INSERT, of which the last is refused."""


async def test_the_table_holds_the_rules_itself(superuser_url: str):
    """Even a superuser under replication, which skips ordinary triggers, gets no other order of states and no answer by who asked."""
    refused = (psycopg.errors.InsufficientPrivilege, psycopg.errors.CheckViolation)
    async with await psycopg.AsyncConnection.connect(conninfo(superuser_url)) as connection:
        for *before, last in AGAINST_THE_RULES:
            await connection.execute("SET LOCAL session_replication_role = replica")
            for statement in (INSERT, *before):
                await connection.execute(statement)
            with pytest.raises(refused):
                await connection.execute(last)
            await connection.rollback()


async def test_what_was_asked_never_changes(database_urls: DatabaseUrls):
    """The service's own role may move an approval, and change nothing of what was asked."""
    await rows_of(database_urls.registry, INSERT)
    for column in ("tenant", "model", "action", "purpose", "subject", "expires", "asked", "asked_by", "asked_key", "asked_reason", "id"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await rows_of(database_urls.registry, f"UPDATE registry.approval SET {column} = {column}")  # noqa: S608 - constants
