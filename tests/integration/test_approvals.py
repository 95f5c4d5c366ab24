"""/approvals down to PostgreSQL: who may take which step, each with its log entry."""

import asyncio
import itertools
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.catalog.models import ModelSpec
from app.database import conninfo
from app.instants import rfc3339
from tests.fixtures.approvals import SPECS
from tests.fixtures.office import PERSON, QUICK_MS, REASON, REASONED, Office, replica
from tests.fixtures.postgres import rows_of


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


async def test_no_reason_leaves_unrecorded(office: Office, registry_engine: AsyncEngine, tmp_path: Path, superuser_url: str):
    """Where the reading cannot be recorded nothing is shown: 503; what needs no record is answered."""
    identity = await office.ask()
    hurried = replica(registry_engine, office.urls, tmp_path, office.clock, timeout_ms=QUICK_MS)
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


async def test_of_two_who_answer_at_once_one_wins(office: Office, registry_engine: AsyncEngine, tmp_path: Path):
    """One answer counts, the other is told that it came too late; on two replicas, and one entry says which."""
    elsewhere = replica(registry_engine, office.urls, tmp_path, office.clock)
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


async def test_a_damaged_key_keeps_nobody_from_closing(registry_engine: AsyncEngine, office: Office, tmp_path: Path, superuser_url: str):
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
    fresh = replica(registry_engine, office.urls, tmp_path, office.clock)
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


async def test_without_the_log_nothing_changes(registry_engine: AsyncEngine, office: Office, tmp_path: Path, superuser_url: str):
    """While no entry can be written every step is a 503, what was approved stays, and afterwards the same call works."""
    hurried = replica(registry_engine, office.urls, tmp_path, office.clock, timeout_ms=QUICK_MS)
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
