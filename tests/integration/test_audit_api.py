"""/audit over HTTP, down to PostgreSQL."""

import base64
from datetime import timedelta
from typing import Annotated, Any

import orjson
import pytest
from fastapi import FastAPI, Header
from uuid_utils.compat import uuid7

from app.api.audit import audit_router
from app.api.failures import install_failures
from app.audit.format.checkpoint import parse_note
from app.audit.format.leaf import leaf_hash, parse_leaf, sm3
from app.audit.format.merkle import is_consistent, root_by_inclusion
from app.audit.intake.pending import Pending
from app.audit.reading.export import Wanted
from app.audit.reading.lag import LEADER_LOCK, TENDING_LOCK
from app.audit.reading.refusals import Refusals
from app.audit.records.access import RequestFacts, sensitive_access
from app.audit.records.entry import Entry, Sealed
from app.audit.verification.verify import verify
from app.auth.keys import Principal
from app.database import DatabaseDown
from app.instants import rfc3339
from app.observability.metrics import Metrics
from app.signing.certificates import Certificate
from tests.fixtures.asgi import Reply, call
from tests.fixtures.log import GrownLog
from tests.fixtures.signing import MADE

READS = ["/audit/entries", "/audit/entries/0", "/audit/entries/0/proof", "/audit/export"]
UNRECORDED = ["/audit/checkpoint", "/audit/consistency?from=2"]

FILTERED = [
    ("kind=policy.refusal", [2]),
    ("kind=audit.purge", []),
    ("tenant=a", [0, 1]),
    ("tenant=b&kind=sensitive.access", [3]),
    ("model=m", [2, 3]),
    ("subject=p1:" + "ab" * 32, [3]),
    ("decision=0192AAAA-0000-7000-8000-000000000003", [3]),
    ("from=2026-01-02T00:00:00Z", [1, 2, 3]),
    ("from=2026-01-02T08:00:00%2B08:00&to=2026-01-03T00:00:00.000000Z", [1]),
    ("to=2026-01-01T00:00:00Z", []),
    ("", [0, 1, 2, 3]),
]
"""Queries, and the numbers of the entries that they leave of the four in the test."""
BAD_PARAMETERS = [
    ("/audit/entries?limit=0", "limit"),
    ("/audit/entries?limit=1001", "limit"),
    ("/audit/entries?cursor=-1", "cursor"),
    ("/audit/entries?cursor=99999999999999999999", "cursor"),
    ("/audit/entries?order=sideways", "order"),
    ("/audit/entries?kind=nonsense", "kind"),
    ("/audit/entries?kind=a%00b", "kind"),
    ("/audit/entries?tenant=a%00b", "tenant"),
    ("/audit/entries?model=%20", "model"),
    ("/audit/entries?subject=alice", "subject"),
    ("/audit/entries?subject_id=alice", "subject_id"),
    ("/audit/entries?tenant=a&subject_id=%20", "subject_id"),
    ("/audit/entries?tenant=a&subject_id=alice&subject=p1:" + "ab" * 32, "subject_id"),
    ("/audit/entries?decision=7", "decision"),
    ("/audit/entries?tenent=a", "tenent"),
    ("/audit/entries?begin=2026-01-01T00:00:00Z", "begin"),
    ("/audit/entries?tenant=a&tenant=b", "tenant"),
    ("/audit/entries/0?seq=1", "seq"),
    ("/audit/entries?from=yesterday", "from"),
    ("/audit/entries?to=2026-01-01T00:00:00", "to"),
    ("/audit/entries?from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z", "to"),
    ("/audit/entries?open=perhaps", "open"),
    ("/audit/entries/x", "seq"),
    ("/audit/entries/-1", "seq"),
    ("/audit/entries/0/proof?size=0", "size"),
    ("/audit/checkpoint?fresh=7", "fresh"),
    ("/audit/checkpoint?refresh=true", "refresh"),
    ("/audit/consistency?from=1&from=2", "from"),
    ("/audit/consistency", "from"),
    ("/audit/consistency?from=0", "from"),
    ("/audit/consistency?from=1&to=x", "to"),
    ("/audit/export?from=2026-01-01", "from"),
    ("/audit/export?anchor=x", "anchor"),
    ("/audit/export?anchor=0", "anchor"),
    ("/audit/export?anchor=9007199254740992", "anchor"),
    ("/audit/export?" + "anchor=1&" * 101, "anchor"),
]

NOT_THERE = [
    ("/audit/entries/3", "not_in_log"),
    ("/audit/entries/3/proof", "not_in_log"),
    ("/audit/entries/2/proof", "no_checkpoint"),
    ("/audit/entries/0/proof?size=1", "no_checkpoint"),
    ("/audit/consistency?from=1", "no_checkpoint"),
    ("/audit/consistency?from=2&to=3", "no_checkpoint"),
    ("/audit/export?from=2030-01-01T00:00:00Z", "nothing_recorded"),
]


@pytest.fixture
def pending(grown_log: GrownLog) -> Pending:
    return Pending(grown_log.intake, grown_log.clock, Metrics())


@pytest.fixture
def api(grown_log: GrownLog, pending: Pending) -> FastAPI:
    built = FastAPI()

    async def principal(x_role: Annotated[str, Header()] = "auditor") -> Principal:
        return Principal("id", f"{x_role}1", frozenset({x_role}), frozenset())

    install_failures(built)
    built.include_router(audit_router(grown_log.log, grown_log.people, Refusals(pending, grown_log.clock), principal))
    return built


async def get(api: FastAPI, target: str, **headers: str) -> Reply:
    return await call(api, "GET", target, **headers)


async def numbers(api: FastAPI, query: str) -> list[int]:
    """Numbers of the entries of one page."""
    reply = await get(api, f"/audit/entries?{query}")
    assert reply.status == 200, reply.body
    return [entry["seq"] for entry in reply.json["entries"]]


async def last_read(grown_log: GrownLog, outcome: str = "done") -> dict[str, Any]:
    """The newest `log.read` entry, which ended so, without what every entry has."""
    await grown_log.add()
    ((body,),) = await grown_log.rows("SELECT body FROM audit.body WHERE kind = 'log.read' ORDER BY seq DESC LIMIT 1")
    envelope = orjson.loads(body)
    assert envelope["outcome"] == outcome
    return {name: value for name, value in envelope.items() if name not in ("v", "id", "kind", "recorded", "outcome")}


async def test_an_entry_is_told_with_what_is_hashed_of_it(grown_log: GrownLog, api: FastAPI):
    """An answer has the canonical envelope, number, leaf hash and shelf."""
    await grown_log.grow(3)
    reply = await get(api, "/audit/entries/1")

    told = reply.json
    ((body, leaf),) = await grown_log.rows("SELECT body, leaf_hash FROM audit.body JOIN audit.leaf USING (seq) WHERE seq = 1")
    assert (reply.status, told["seq"], told["shelf"], told["state"]) == (200, 1, "d365-2026-01", "kept")
    rebuilt = (
        f'{{"body":"{sm3(body).hex()}","id":"{told["body"]["id"]}","recorded":"{told["body"]["recorded"]}","retention":"d365","seq":1}}'
    )
    assert told["leaf_hash"] == leaf.hex() == leaf_hash(rebuilt.encode()).hex()
    assert (told["body"]["kind"], told["body"]["operator"]) == ("decisions.minute", "op")


async def test_what_is_gone_or_changed_is_told_as_such(grown_log: GrownLog, api: FastAPI):
    """A purged body is absent and said to be purged, a changed one is said to be altered, whether it is JSON or not."""
    await grown_log.grow(4)
    await grown_log.damage("DELETE FROM audit.body WHERE seq = 1")
    await grown_log.damage("UPDATE audit.body SET body = '{}' WHERE seq = 2")
    await grown_log.damage("UPDATE audit.body SET body = '{' WHERE seq = 3")
    entries = (await get(api, "/audit/entries?order=oldest")).json["entries"]

    assert [(entry["state"], "body" in entry) for entry in entries] == [
        ("kept", True),
        ("purged", False),
        ("altered", True),
        ("altered", False),
    ]


async def test_filters_leave_what_they_name(grown_log: GrownLog, api: FastAPI):
    """Each filter leaves the entries that it names, several leave what all of them do."""
    days = [MADE + timedelta(days=day) for day in range(4)]
    await grown_log.grow(1, recorded=days[0])
    await grown_log.grow(1, recorded=days[1])
    await grown_log.grow(1, kind="policy.refusal", recorded=days[2], tenant="c")
    await grown_log.damage("UPDATE audit.body SET model = 'm' WHERE seq = 2")
    decision, subject = "0192aaaa-0000-7000-8000-000000000003", "p1:" + "ab" * 32
    who = RequestFacts(operator="gw", tenant="b", model="m", decision_id=decision, policy_revision="r1", subject=subject)
    await grown_log.add(sensitive_access(who, "allowed", recorded=days[3], retention_days=365))

    for query, found in FILTERED:
        assert (query, [number for number in await numbers(api, f"order=oldest&{query}") if number < 4]) == (query, found)
        assert (query, await numbers(api, f"cursor=4&{query}")) == (query, found[::-1])


async def test_pages_hold_still_while_the_log_grows(grown_log: GrownLog, api: FastAPI):
    """Followed by its cursor, each entry that was there at the beginning comes once, in either direction."""
    await grown_log.grow(10)
    for order, wanted in (("newest", list(range(9, -1, -1))), ("oldest", list(range(10)))):
        seen: list[int] = []
        cursor = "cursor=10&" if order == "newest" else ""
        while len(seen) < 10:
            page = (await get(api, f"/audit/entries?{cursor}order={order}&limit=3")).json
            seen += [entry["seq"] for entry in page["entries"]]
            cursor = f"cursor={page['next']}&"
            await grown_log.grow(2)
        assert seen[:10] == wanted


@pytest.mark.parametrize(
    ("query", "found", "follows"),
    [
        ("cursor=4&limit=2", [3, 2], 2),
        ("cursor=2&limit=2", [1, 0], None),
        ("cursor=2&limit=3", [1, 0], None),
        ("order=oldest&tenant=a&limit=4", [0, 1, 2, 3], None),
        ("tenant=nobody", [], None),
    ],
)
async def test_an_answer_says_whether_anything_follows(
    grown_log: GrownLog, api: FastAPI, query: str, found: list[int], follows: int | None
):
    """`next` is there on every page: the cursor of the next one, null where nothing follows, also after a full page."""
    await grown_log.grow(4, tenant="a")
    page = (await get(api, f"/audit/entries?{query}")).json

    assert ([entry["seq"] for entry in page["entries"]], page["next"]) == (found, follows)


async def test_a_subject_is_found_by_its_id_which_goes_no_further(grown_log: GrownLog, api: FastAPI, capfd: pytest.CaptureFixture[str]):
    """With subject_id and tenant the entries of that subject are found; the record of the read has the pseudonym alone."""
    pseudonym = grown_log.people.pseudonyms.subject("b", "m\u00fcller")
    await grown_log.add(access(Sealed()), access(Sealed(), tenant="b", subject=pseudonym), access(Sealed(), tenant="c"))
    reply = await get(api, "/audit/entries?tenant=b&subject_id=mu%CC%88ller")
    refused = await get(api, "/audit/entries?tenant=b&subject_id=mu%CC%88ller%07")

    assert [(entry["seq"], entry["body"]["subject"]) for entry in reply.json["entries"]] == [(1, pseudonym)]
    assert (await last_read(grown_log))["subject"] == pseudonym
    stored = [body for (body,) in await grown_log.rows("SELECT body FROM audit.body")]
    said = [reply.body, refused.body, *stored, *(stream.encode() for stream in capfd.readouterr())]
    assert refused.status == 400
    assert not any(b"ller" in each for each in said)


async def test_a_bad_parameter_is_named(grown_log: GrownLog, api: FastAPI):
    """Each answers 400 with the parameter, reads nothing, and leaves no record."""
    await grown_log.grow(1)
    await grown_log.sign()
    for target, field in BAD_PARAMETERS:
        reply = await get(api, target)
        assert (target, reply.status, reply.json["field"].partition("[")[0]) == (target, 400, field)

    assert "log.read" not in await grown_log.kinds()


@pytest.mark.parametrize(("role", "status"), [("auditor", 200), ("admin", 200), ("operator", 403), ("gateway", 403), ("approver", 403)])
async def test_only_auditors_and_admins_read(grown_log: GrownLog, api: FastAPI, role: str, status: int):
    """Every route answers the two roles and refuses all others at once."""
    await grown_log.grow(2)
    await grown_log.sign()
    for target in [*UNRECORDED, *READS]:
        assert (target, (await get(api, target, x_role=role)).status) == (target, status)

    assert (await grown_log.kinds()).count("log.read") == (len(READS) if status == 200 else 0)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (
            "/audit/entries?tenant=a&kind=decisions.minute&subject_id=alice&open=true",
            {"read": "entries", "tenant": "a", "query": {"kind": "decisions.minute", "tenant": "a"}},
        ),
        ("/audit/entries/7?open=true", {"read": "entry", "tenant": None, "first": 7, "end": 8}),
        ("/audit/entries/0/proof?size=3", {"read": "proof", "tenant": None, "first": 0, "end": 1}),
        ("/audit/export?anchor=1", {"read": "export", "tenant": None, "query": {"anchors": [1]}}),
    ],
)
async def test_a_refused_read_is_recorded(grown_log: GrownLog, api: FastAPI, pending: Pending, target: str, said: dict[str, Any]):
    """Who may not read gets 403 at once, and the log says soon after who wanted what; a subject stands there as a pseudonym."""
    assert (await get(api, target, x_role="gateway")).status == 403
    assert "log.read" not in await grown_log.kinds()
    await pending.flush()

    told = await last_read(grown_log, outcome="refused")
    subject = {"subject": grown_log.people.pseudonyms.subject("a", "alice")} if "subject_id" in target else {}
    assert told == {"operator": "gateway1", **said, **subject}


@pytest.mark.parametrize("target", [*UNRECORDED, "/audit/entries?kind=nonsense", "/audit/entries/x", "/audit/export?anchor=0"])
async def test_what_asks_for_no_entry_leaves_no_record(grown_log: GrownLog, api: FastAPI, pending: Pending, target: str):
    """Neither a checkpoint that is refused nor a call that no reader could make is in the log."""
    assert (await get(api, target, x_role="gateway")).status in (400, 403)
    await pending.flush()

    assert await grown_log.kinds() == []


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (
            "/audit/entries?kind=decisions.minute&tenant=a&from=2026-01-01T00:00:00Z&limit=2",
            {
                "read": "entries",
                "tenant": "a",
                "query": {"from": "2026-01-01T00:00:00.000000Z", "kind": "decisions.minute", "tenant": "a"},
                "first": 1,
                "end": 3,
                "count": 2,
            },
        ),
        (
            "/audit/entries?subject=p1:" + "00" * 32,
            {"read": "entries", "tenant": None, "query": {}, "count": 0, "subject": "p1:" + "00" * 32},
        ),
        ("/audit/entries/2?open=true", {"read": "entry", "tenant": None, "query": {"open": True}, "first": 2, "end": 3, "count": 1}),
        ("/audit/entries/2/proof?size=3", {"read": "proof", "tenant": None, "query": {"size": 3}, "first": 2, "end": 3, "count": 1}),
        ("/audit/export?anchor=1", {"read": "export", "tenant": None, "query": {"anchors": [1]}, "first": 0, "end": 3, "count": 3}),
    ],
)
async def test_a_read_is_recorded(grown_log: GrownLog, api: FastAPI, target: str, said: dict[str, Any]):
    """The log says who read which entries by which question."""
    await grown_log.grow(3)
    await grown_log.sign()
    assert (await get(api, target)).status == 200

    assert await last_read(grown_log) == {"operator": "auditor1", **said}


async def test_what_cannot_be_recorded_is_not_read(grown_log: GrownLog, api: FastAPI):
    """Where the record of a read cannot be committed the answer is 503 audit_unavailable, and nothing of the log is in it."""
    await grown_log.grow(1)
    await grown_log.sign()
    await grown_log.superuser.execute("ALTER ROLE sluice_intake NOLOGIN")
    await grown_log.superuser.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'sluice_intake'")
    try:
        replies = [await get(api, target) for target in READS]
    finally:
        await grown_log.superuser.execute("ALTER ROLE sluice_intake LOGIN")

    assert [(reply.status, reply.json["code"]) for reply in replies] == [(503, "audit_unavailable")] * len(READS)
    assert not any(b"decisions.minute" in reply.body for reply in replies)


async def test_a_log_that_cannot_be_read_is_503(grown_log: GrownLog, api: FastAPI):
    """Without the database every route says database_down."""
    targets = [*READS, *UNRECORDED]
    await grown_log.superuser.execute("ALTER ROLE sluice_log NOLOGIN")
    try:
        replies = [await get(api, target) for target in targets]
    finally:
        await grown_log.superuser.execute("ALTER ROLE sluice_log LOGIN")

    assert [(reply.status, reply.json["code"]) for reply in replies] == [(503, "database_down")] * len(targets)


async def test_what_is_not_there_is_404_with_the_remedy(grown_log: GrownLog, api: FastAPI):
    """A number beyond the log or its newest checkpoint says what to do."""
    await grown_log.grow(2)
    await grown_log.sign()
    await grown_log.grow(1)
    for target, code in NOT_THERE:
        reply = await get(api, target)
        assert (target, reply.status, reply.json["code"]) == (target, 404, code)
        assert reply.json["hint"]


async def test_a_proof_is_checked_with_what_it_says(grown_log: GrownLog, api: FastAPI):
    """The fields of a proof lead from the entry's bytes to the root that the note signs, and the text has the same."""
    await grown_log.grow(5)
    await grown_log.sign()
    proof = (await get(api, "/audit/entries/3/proof")).json
    text_reply = await get(api, "/audit/entries/3/proof", accept="text/plain")

    leaf = base64.b64decode(proof["leaf"])
    assert parse_leaf(leaf).body_hash == sm3(base64.b64decode(proof["entry"]))
    said, _ = parse_note(proof["note"])
    path = [bytes.fromhex(step) for step in proof["path"]]
    assert root_by_inclusion(leaf_hash(leaf), proof["index"], said.size, path) == said.root
    assert Certificate.load_pem(proof["certificate"].encode()) == grown_log.keys.certificate
    steps = "".join(f"{base64.b64encode(step).decode()}\n" for step in path)
    assert text_reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert text_reply.body.decode() == (
        f"sluice-audit-proof 1\nentry {proof['entry']}\nleaf {proof['leaf']}\nindex 3\n{steps}\n{proof['note']}\n{proof['certificate']}"
    )


async def test_a_purged_entry_is_proven_by_its_leaf(grown_log: GrownLog, api: FastAPI):
    """The proof of a purged entry has its leaf, with its retention, and no body."""
    await grown_log.grow(2)
    await grown_log.sign()
    await grown_log.damage("DELETE FROM audit.body WHERE seq = 1")
    proof = (await get(api, "/audit/entries/1/proof")).json
    as_text = await get(api, "/audit/entries/1/proof", accept="text/plain")

    said, _ = parse_note(proof["note"])
    leaf = base64.b64decode(proof["leaf"])
    assert root_by_inclusion(leaf_hash(leaf), 1, 2, [bytes.fromhex(step) for step in proof["path"]]) == said.root
    assert (leaf_hash(leaf).hex(), parse_leaf(leaf).retention, "entry" in proof) == (proof["leaf_hash"], "d365", False)
    assert as_text.body.startswith(b"sluice-audit-proof 1\nleaf %b\nindex 1\n" % proof["leaf"].encode())


async def test_the_newest_checkpoint_is_told(grown_log: GrownLog, api: FastAPI):
    """Note, size, root, time and certificates as JSON; as text the bare note; and a proof between two of them."""
    await grown_log.grow(1)
    await grown_log.sign()
    old = (await get(api, "/audit/checkpoint")).json
    await grown_log.grow(4)
    await grown_log.sign()
    new = (await get(api, "/audit/checkpoint?fresh=true")).json
    note = await get(api, "/audit/checkpoint", accept="text/plain, application/json;q=0.5")
    proof = (await get(api, "/audit/consistency?from=1")).json

    said, _ = parse_note(new["note"])
    assert (new["log"], new["size"], new["root"], new["signed"]) == (said.origin, 5, said.root.hex(), rfc3339(MADE))
    assert [Certificate.load_pem(pem.encode()) for pem in new["certificates"]] == [grown_log.keys.root, grown_log.keys.certificate]
    assert note.body.decode() == new["note"] == proof["new_note"]
    assert is_consistent(1, 5, bytes.fromhex(old["root"]), said.root, [bytes.fromhex(step) for step in proof["path"]])


async def test_an_export_is_a_file_that_the_verifier_takes(grown_log: GrownLog, api: FastAPI):
    """The route answers an attachment of JSON Lines that is whole by the root certificate alone."""
    await grown_log.grow(300)
    await grown_log.sign()
    reply = await get(api, "/audit/export")

    assert reply.headers["content-type"] == "application/x-ndjson"
    assert reply.headers["content-disposition"] == 'attachment; filename="sluice-audit-0-300.jsonl"'
    assert verify(reply.body.splitlines(keepends=True), grown_log.keys.root).verdict == "whole"


async def test_an_export_that_fails_has_no_end(grown_log: GrownLog):
    """A database that goes while a file is made ends the file before its last line, with the error of an outage."""
    await grown_log.grow(600)
    await grown_log.sign()
    exported = await grown_log.log.export(Wanted(), operator="auditor")
    pieces = [(await anext(exported.lines)).lines, (await anext(exported.lines)).lines]
    await grown_log.superuser.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'sluice_log'")
    with pytest.raises(DatabaseDown):
        await anext(exported.lines)

    assert verify(b"".join(pieces).splitlines(keepends=True), grown_log.keys.root).verdict == "tampered"


async def test_sealed_members_are_opened_for_whoever_asks(grown_log: GrownLog, api: FastAPI):
    """With open=true what is sealed is told in clear, as erased once its key is gone, as unreadable where it stands in another entry."""
    key, other = [await grown_log.people.keys.key("p1:" + pair * 32) for pair in ("cd", "ef")]
    sealed = key.seal({"address": "192.0.2.1", "purpose": "fraud check"})
    await grown_log.add(access(sealed), access(other.seal({"address": "192.0.2.2"})), access(Sealed(uuid7(), sealed.texts)))
    await grown_log.superuser.execute("DELETE FROM registry.subject_key WHERE id = %s", [other.id])
    closed = (await get(api, "/audit/entries/0")).json
    entries = (await get(api, "/audit/entries?open=true&order=oldest&limit=3")).json["entries"]

    assert (set(closed["body"]["sealed"]), "opened" in closed) == ({"address", "purpose"}, False)
    assert [(entry["opened"], entry.get("erased"), entry.get("unreadable")) for entry in entries] == [
        ({"address": "192.0.2.1", "purpose": "fraud check"}, None, None),
        ({}, ["address"], None),
        ({}, None, ["address", "purpose"]),
    ]
    assert (await last_read(grown_log))["query"] == {"open": True}


def access(sealed: Sealed, *, tenant: str = "a", subject: str | None = None) -> Entry:
    """An access about which something is sealed."""
    asked = RequestFacts(
        operator="gw", tenant=tenant, model="m", decision_id=str(uuid7()), policy_revision="r1", action="infer", subject=subject
    )
    return sensitive_access(asked, "allowed", recorded=MADE, retention_days=365, sealed=sealed)


async def test_it_is_seen_whether_anybody_leads_the_log(grown_log: GrownLog):
    """The lag of the log says who waits, what is signed, and whether a process holds the lead in this very database and gets on."""
    await grown_log.grow(3)
    await grown_log.sign()
    await grown_log.intake.write(access(Sealed()))
    watch = grown_log.log.lag
    await watch.look()
    alone = watch.newest
    async with grown_log.connection.transaction():
        await grown_log.connection.execute("SELECT pg_advisory_xact_lock(%s)", [LEADER_LOCK])
        await watch.look()
        led = watch.newest
        await grown_log.connection.execute("SELECT pg_advisory_xact_lock_shared(%s)", [TENDING_LOCK])
        await watch.look()
    tended = watch.newest

    assert alone is not None
    assert led is not None
    assert tended is not None
    assert [(one.led, one.tended) for one in (alone, led, tended)] == [(False, False), (True, False), (True, True)]
    assert (alone.size, alone.backlog, alone.oldest, alone.signed_size, alone.signed_at) == (3, 1, MADE, 3, MADE)


@pytest.mark.parametrize("instant", ["-infinity", "0044-03-15 BC", "10000-01-01", "infinity"])
async def test_a_writer_with_wrong_ideas_of_time_hides_no_standstill(grown_log: GrownLog, instant: str):
    """What waits beside a row whose instant no calendar has is told as ever."""
    await grown_log.intake.write(access(Sealed()))
    await grown_log.superuser.execute("INSERT INTO audit.intake VALUES (gen_random_uuid(), 'd400', %s, 'x')", [instant])
    grown_log.clock.advance(60_000)
    await grown_log.log.lag.look()
    watch = grown_log.log.lag

    assert watch.newest is not None
    assert watch.newest.backlog == 2
    assert watch.late
