"""What people are told of themselves, on a log and a registry in PostgreSQL."""

import csv
import io
import re
import stat
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine

from app.audit.format.checkpoint import key_id, open_note
from app.audit.format.leaf import leaf_hash, sm3
from app.audit.format.merkle import root_by_inclusion
from app.audit.intake.gaps import Gaps
from app.audit.intake.intake import Intake
from app.audit.people.people import People
from app.audit.reading import proven
from app.audit.reading.caught_up import LogBehind
from app.audit.reading.hashes import LogDamaged
from app.audit.reading.log import AuditUnavailable
from app.audit.records.entry import Entry
from app.audit.records.key import key_created
from app.audit.records.log import log_read
from app.audit.records.quota import quota_in_force
from app.audit.records.subject import subject_erasure
from app.database import DatabaseDown, DatabaseUrls, create_engine
from app.errors import BadRequest, ConfigError
from app.observability.metrics import Metrics
from app.reports.checking.check import check
from app.reports.sealing.sealer import Sealer
from app.reports.subjects.answering import Answering
from app.reports.subjects.person import Person
from app.reports.subjects.requests import RequestClosed, UnknownRequest
from app.reports.subjects.signing import Signing
from app.setting_sections import DatabaseSettings
from app.signing.certificates import Certificate
from app.signing.keys import KeyFolder
from app.signing.sm2 import PublicKey
from app.signing.uses import REPORTS
from tests.fixtures.log import GrownLog
from tests.fixtures.postgres import TIMEOUT_MS
from tests.fixtures.signing import MADE, PASSPHRASE
from tests.fixtures.subjects import Desk, desk_on, file_of, said_in, text_of

TENANT, BEA, ADDRESS, ANNA = "acme", "bea@example.org", "192.0.2.7", "anna"
SUBJECT, OPERATOR, TRADER = Person.of(TENANT, BEA, None), Person.of(None, None, ANNA), Person.of(BEA, None, None)


@pytest.fixture
async def down(database_urls: DatabaseUrls) -> AsyncIterator[AsyncEngine]:
    """A database that does not answer."""
    engine = create_engine(make_url(database_urls.log).set(host="127.0.0.1", port=1, query={}).render_as_string(False), DatabaseSettings())
    yield engine
    await engine.dispose()


async def given(desk: Desk, person: Person, folder: Path, **of: str) -> Sequence[Path]:
    files = (await desk.reports.give(person, folder, operator="cli:root", **of)).files
    await desk.settle()
    return files


def kinds_in(files: Sequence[Path]) -> set[str]:
    """Kinds of the entries that a report tells."""
    return {entry["kind"] for entry in said_in(files)["entries"]}


async def told_by_anna(desk: Desk) -> list[Entry]:
    """What an operator did that is about Bea: changed a quota, looked for her, wrote down what she asked, made a key."""
    people, now = desk.log.people, desk.log.clock.utcnow()
    reason = (await people.operator_key(ANNA)).seal({"reason": f"{BEA} asked for more"})
    subject = people.pseudonyms.subject(TENANT, BEA)
    await desk.requests.open(SUBJECT, 15, None, operator=ANNA)
    changed = quota_in_force(
        recorded=now,
        operator=ANNA,
        tenant=BEA,
        version=2,
        before={"qps": "1"},
        after={"qps": "4"},
        diff=[{"path": "/qps", "before": "1", "after": "4"}],
        sealed=reason,
    )
    looked = log_read(recorded=now, operator=ANNA, read="entries", query={"tenant": TENANT, "subject": subject, "model": "m"}, count=1)
    made = key_created(recorded=now, operator="cli:root", key_id="k1", name=ANNA, roles=["operator"], tenants=[BEA], expires=None)
    return [changed, looked, made]


async def test_nobody_is_told_of_another(grown_log: GrownLog, tmp_path: Path):
    """An operator's report has no trace of whom they acted on, in any byte of any file; that person's reports have the deeds."""
    desk = desk_on(grown_log)
    await desk.settle(*await told_by_anna(desk), *await desk.accesses(SUBJECT, address=ADDRESS, purpose="credit check"))
    pseudonyms = grown_log.people.pseudonyms
    traces = [BEA, ADDRESS, pseudonyms.subject(TENANT, BEA), pseudonyms.tenant(BEA), pseudonyms.address(TENANT, ADDRESS), TENANT]

    about_anna = await given(desk, OPERATOR, tmp_path / "anna")
    about_bea = await given(desk, SUBJECT, tmp_path / "bea")
    about_trader = await given(desk, TRADER, tmp_path / "trader")

    everything = [path.read_bytes() for path in about_anna] + [text_of(file_of(about_anna, ".pdf")).encode()]
    assert [trace for trace in traces for content in everything if trace.encode() in content] == []
    assert kinds_in(about_anna) == {"subject.request", "quota.in_force", "log.read", "key.created"}
    for files, kinds in ((about_bea, {"subject.request", "log.read", "sensitive.access"}), (about_trader, {"quota.in_force"})):
        told = [path.read_bytes().decode("latin-1") for path in files] + [text_of(file_of(files, ".pdf"))]
        assert kinds_in(files) == kinds
        assert not [content for content in told if ANNA in content]
    assert said_in(about_trader)["entries"][0]["diff"] == [{"path": "/qps", "before": "1", "after": "4"}]
    assert said_in(about_trader)["entries"][0]["withheld"] == ["reason"]


async def test_an_entry_is_told_with_all_that_the_law_asks(grown_log: GrownLog, tmp_path: Path):
    """Date, model, purpose, outcome, reasons, revision, retention and who, masked; in JSON, CSV and PDF."""
    desk = desk_on(grown_log)
    await desk.settle(*await desk.accesses(SUBJECT, address=ADDRESS, purpose="credit check"))
    files = await given(desk, SUBJECT, tmp_path)
    said = said_in(files)
    [entry] = said["entries"]

    assert entry["texts"] == {"subject": BEA, "address": ADDRESS, "purpose": "credit check"}
    assert (entry["model"], entry["outcome"], entry["policy_revision"]) == ("mdl-pii-classifier", "refused", "rules-1")
    assert (entry["by"], entry["retention"], entry["kept_until"]) == ("operator #1", "d730", "2028-01-01")
    assert entry["reasons"] == [{"code": "sensitive_role", "rule": "sensitive_models"}]
    assert {"purposes", "categories", "recipients", "retention", "rights", "source", "automated_decisions"} < said["told"].keys()
    [head, line] = csv.reader(io.StringIO(file_of(files, ".csv").read_text("utf-8-sig")))
    assert dict(zip(head, line, strict=True))["purpose"] == "credit check"
    assert all(word in text_of(file_of(files, ".pdf")) for word in (BEA, "creditcheck", "sensitive_role", "operator#1", "2028-01-01"))


async def test_every_entry_is_proven(desk: Desk, tmp_path: Path):
    """Each path leads from the leaf of the entry to the root that the log's signer signed."""
    await desk.log.grow(300)
    await desk.settle(*await desk.accesses(SUBJECT, 3))
    await desk.log.grow(5)
    await desk.settle()
    said = said_in(await given(desk, SUBJECT, tmp_path))
    log, spki = said["log"], desk.log.keys.certificate.spki

    checkpoint, _ = open_note(log["note"], log["origin"], {key_id(log["origin"], spki): PublicKey(spki)})
    assert [entry["number"] for entry in said["entries"]] == [300, 301, 302]
    for entry in said["entries"]:
        proof = entry["proof"]
        root = root_by_inclusion(leaf_hash(proof["leaf"].encode()), entry["number"], log["size"], list(map(bytes.fromhex, proof["path"])))
        assert root == checkpoint.root == bytes.fromhex(log["root"])


async def test_who_nobody_knows_is_told_so(grown_log: GrownLog, tmp_path: Path):
    """A report that nothing is held is a report: files, an entry of the log, and no key is made for it."""
    desk = desk_on(grown_log)
    await desk.settle(*await desk.accesses(SUBJECT))
    stranger = Person.of(TENANT, BEA.capitalize(), None)
    files = await given(desk, stranger, tmp_path)
    [access] = await entries_of(desk, "subject.access")

    assert (said_in(files)["count"], said_in(files)["entries"]) == (0, [])
    assert said_in(files)["outside_the_log"]["subject_key"]["state"] == "none"
    assert said_in(files)["outside_the_log"]["registry"] == {"registry.approval": 0}
    assert "Nothingisheldaboutthisperson" in text_of(file_of(files, ".pdf"))
    assert file_of(files, ".csv").read_bytes().count(b"\r\n") == 1
    assert (access["count"], access["subject"]) == (0, grown_log.people.pseudonyms.subject(TENANT, stranger.name))
    assert await grown_log.people.keys.kept(access["subject"]) is None


async def test_ten_thousand_rows_and_one(grown_log: GrownLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """10 001 entries are 10 001 rows in JSON and CSV, and none of whose id differs only in case; the PDF lists the first and says how many."""
    monkeypatch.setattr("app.reports.subjects.reports.MOST_LISTED", 100)
    desk = desk_on(grown_log)
    await desk.settle(*await desk.accesses(SUBJECT, 10_001), *await desk.accesses(Person.of(TENANT, BEA.upper(), None), 3))
    files = await given(desk, SUBJECT, tmp_path)
    said, text = said_in(files), text_of(file_of(files, ".pdf"))
    lines = list(csv.reader(io.StringIO(file_of(files, ".csv").read_text("utf-8-sig"))))[1:]

    numbers = range(10_001)
    assert [entry["number"] for entry in said["entries"]] == list(numbers)
    assert [int(line[0]) for line in lines] == list(numbers)
    assert sorted(map(int, re.findall(r"decision-(\d+);policy", text))) == list(range(100))
    assert re.search(r"10,?001", text)
    assert not [path for path in files if BEA.upper().encode() in path.read_bytes()]
    assert BEA.upper() not in text


async def test_the_log_has_what_was_given(desk: Desk, tmp_path: Path):
    """The entry names the files by SM3, how many entries they tell, and on what the person can rely; files are for their owner alone."""
    await desk.settle(*await desk.accesses(SUBJECT, 2))
    report = await desk.reports.give(SUBJECT, tmp_path / "new", operator="cli:root")
    [access] = await entries_of(desk, "subject.access")

    assert (access["id"], access["count"], access["legal_basis"], access["operator"]) == (report.id, 2, "GDPR Art. 15", "cli:root")
    assert access["files"] == [{"name": path.name, "sm3": sm3(path.read_bytes()).hex()} for path in report.files]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [path.name for path in report.files]
    assert {stat.S_IMODE(path.stat().st_mode) for path in report.files} == {0o600}


async def test_with_report_keys_all_is_signed(grown_log: GrownLog, quick_encryption: None, tmp_path: Path):
    """PDF, JSON and CSV check under the root that lies beside; the log has who signs, once, before what they signed."""
    keys = KeyFolder(tmp_path / "report-keys", PASSPHRASE, REPORTS)
    keys.open_or_make(MADE)
    desk = desk_on(grown_log, signing=Signing(keys, Sealer(keys)))
    await desk.settle(*await desk.accesses(SUBJECT))
    files = await given(desk, SUBJECT, tmp_path / "one")
    await given(desk, SUBJECT, tmp_path / "two")

    assert [path.name.removeprefix(stem_of(files)) for path in files] == ["-root.pem", ".csv", ".csv.p7s", ".json", ".json.p7s", ".pdf"]
    root = Certificate.load_pem(file_of(files, "-root.pem").read_bytes())
    assert {check(file_of(files, suffix), root).verdict for suffix in (".pdf", ".csv", ".json")} == {"valid"}
    assert root.fingerprint.hex() in text_of(file_of(files, ".pdf"))
    [introduced] = await entries_of(desk, "key.created")
    assert (introduced["use"], introduced["key"]) == ("report", keys.certificate.fingerprint.hex())
    accesses = await entries_of(desk, "subject.access")
    assert [len(access["files"]) for access in accesses] == [6, 6]


def stem_of(files: Sequence[Path]) -> str:
    """The name that all files of a report begin with."""
    return file_of(files, ".pdf").name.removesuffix(".pdf")


async def test_what_the_registry_has_is_counted(desk: Desk, tmp_path: Path):
    """Rows of a person beside the log, by table: keys of who operates, quotas of a tenant, nobody else's."""
    async with desk.log.superuser.transaction():
        await desk.log.superuser.execute(
            "INSERT INTO registry.api_key (id, name, digest, roles, tenants, created)"
            " SELECT gen_random_uuid(), one, sha256(one::bytea), '{auditor}', '{}', now() FROM unnest(ARRAY['anna', 'Anna']) AS one"
        )
    await desk.settle(*await desk.accesses(SUBJECT))

    held = [said_in(await given(desk, person, tmp_path))["outside_the_log"]["registry"] for person in (OPERATOR, TRADER)]

    assert held[0] == {"registry.api_key": 1, "registry.quota_history": 0, "registry.approval": 0}
    assert held[1] == {"registry.tenant_quota": 0, "registry.quota_history": 0, "registry.approval": 0}


async def test_a_report_answers_a_request(desk: Desk, tmp_path: Path):
    """The request is done when the report is given; it answers no other person's, no other article's and no closed one."""
    bob = Person.of(TENANT, "bob", None)
    mine, erasure, his = [await desk.requests.open(*of, None, operator=ANNA) for of in ((SUBJECT, 20), (SUBJECT, 17), (bob, 15))]
    await desk.settle()
    for request, refused in ((his, "another person's"), (erasure, "under GDPR Art. 17")):
        with pytest.raises(BadRequest, match=refused):
            await given(desk, SUBJECT, tmp_path, request_id=request.id)
    with pytest.raises(UnknownRequest):
        await given(desk, SUBJECT, tmp_path, request_id="r")

    said = said_in(await given(desk, SUBJECT, tmp_path, request_id=mine.id))
    await desk.settle()

    assert (said["legal_basis"][0], said["request"]["id"]) == ("GDPR Art. 20", mine.id)
    states = {request.id: request.status for request in await desk.requests.listed(operator=ANNA, only_open=False)}
    assert states == {mine.id: "done", erasure.id: "open", his.id: "open"}
    await desk.settle()
    with pytest.raises(RequestClosed, match="was answered"):
        await given(desk, SUBJECT, tmp_path, request_id=mine.id)


async def test_what_was_erased_is_told_and_what_remains(grown_log: GrownLog, tmp_path: Path):
    """With the key destroyed nothing opens, the report says since when, and the rest of the entries stands."""
    desk, subject = desk_on(grown_log), grown_log.people.pseudonyms.subject(TENANT, BEA)
    await desk.settle(*await desk.accesses(SUBJECT, purpose="credit check"))
    erasure = subject_erasure(
        recorded=grown_log.clock.utcnow(), operator=ANNA, tenant=TENANT, subject=subject, outcome="done", legal_basis="GDPR Art. 17(1)(a)"
    )
    await desk.settle(erasure)
    async with grown_log.superuser.transaction():
        await grown_log.superuser.execute("DELETE FROM registry.subject_key WHERE subject = %s", (subject,))
    files = await given(desk, SUBJECT, tmp_path)
    said = said_in(files)

    assert (said["entries"][0]["erased"], said["entries"][0]["model"]) == (["purpose", "subject"], "mdl-pii-classifier")
    key = said["outside_the_log"]["subject_key"]
    assert (key["state"], key["erased"]) == ("erased", "2026-01-01T00:00:00.000000Z")
    assert "Erasedon2026-01-01" in text_of(file_of(files, ".pdf"))
    assert b"credit check" not in b"".join(path.read_bytes() for path in files)


async def test_reasons_of_others_are_withheld_from_the_person(grown_log: GrownLog, tmp_path: Path):
    """A note on a request names a third person: in no file of the report; the purpose that a gateway stated is."""
    desk = desk_on(grown_log)
    await desk.settle(*await desk.accesses(SUBJECT, purpose="credit check"))
    request = await desk.requests.open(SUBJECT, 16, None, operator=ANNA)
    await desk.settle()
    await desk.requests.refuse(request.id, "Art. 12(5)", "Bob Miller complained about her", operator=ANNA)
    await desk.settle()
    files = await given(desk, SUBJECT, tmp_path)
    access, _, answer = said_in(files)["entries"]

    assert (access["texts"]["purpose"], answer["withheld"], "texts" in answer) == ("credit check", ["reason"], False)
    assert not [path for path in files if b"Miller" in path.read_bytes()]
    assert "Miller" not in text_of(file_of(files, ".pdf"))


@pytest.mark.parametrize(("outcome", "state"), [("done", "renewed"), ("refused", "replaced")])
async def test_a_new_key_hides_nothing_of_the_one_before(grown_log: GrownLog, tmp_path: Path, outcome: str, state: str):
    """Somebody who is met again has another key; that an earlier one is gone is told all the same, and whether an entry says why."""
    desk, subject = desk_on(grown_log), grown_log.people.pseudonyms.subject(TENANT, BEA)
    await desk.settle(*await desk.accesses(SUBJECT))
    erasure = subject_erasure(
        recorded=grown_log.clock.utcnow(), operator=ANNA, tenant=TENANT, subject=subject, outcome=outcome, legal_basis="GDPR Art. 17(1)(a)"
    )
    await desk.settle(erasure)
    async with grown_log.superuser.transaction():
        await grown_log.superuser.execute("DELETE FROM registry.subject_key WHERE subject = %s", (subject,))
    elsewhere = People(grown_log.registry, tmp_path / "secrets", grown_log.clock, Metrics(), timeout_ms=TIMEOUT_MS)
    await elsewhere.keys.key(subject)
    said = said_in(await given(desk, SUBJECT, tmp_path))

    assert said["outside_the_log"]["subject_key"]["state"] == state


async def test_a_damaged_key_is_not_called_erased(desk: Desk, tmp_path: Path):
    """What does not open is told as damaged, with where it may be whole; everything else is given."""
    await desk.log.people.keys.key("p1:older")  # by which the master key is known to be the right one
    await desk.settle(*await desk.accesses(SUBJECT))
    async with desk.log.superuser.transaction():
        await desk.log.superuser.execute(
            "UPDATE registry.subject_key SET wrapped = set_byte(wrapped, 20, get_byte(wrapped, 20) # 1) WHERE subject <> 'p1:older'"
        )
    said = said_in(await given(desk, SUBJECT, tmp_path))

    assert said["outside_the_log"]["subject_key"]["state"] == "damaged"
    assert (said["entries"][0]["unreadable"], "erased" in said["entries"][0]) == (["subject"], False)


async def test_a_column_alone_makes_nobody_known(desk: Desk, tmp_path: Path):
    """A row that was given somebody's pseudonym beside its body is passed over: its body is another's."""
    await desk.settle(*await desk.accesses(SUBJECT), *await desk.accesses(Person.of(TENANT, "bob", None)))
    await desk.log.damage("UPDATE audit.body SET subject = (SELECT subject FROM audit.body WHERE seq = 0)")

    assert [entry["number"] for entry in said_in(await given(desk, SUBJECT, tmp_path))["entries"]] == [0]


@pytest.mark.parametrize("damaged", ["UPDATE audit.body SET body = body || ' '::bytea", "DELETE FROM audit.leaf WHERE seq = 1"])
async def test_from_a_damaged_log_nothing_is_given(desk: Desk, tmp_path: Path, damaged: str):
    """A body that was changed, or a tree that lacks a leaf: LogDamaged, no file, no entry."""
    await desk.settle(*await desk.accesses(SUBJECT, 3))
    await desk.log.damage(damaged)

    with pytest.raises(LogDamaged):
        await given(desk, SUBJECT, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


async def test_nothing_is_given_unrecorded(desk: Desk, down: AsyncEngine, tmp_path: Path):
    """With the intake away the report is written and not given: no file, not even a draft, stays."""
    await desk.settle(*await desk.accesses(SUBJECT))
    intake = Intake(down, Metrics(), Gaps(desk.log.clock), timeout_ms=TIMEOUT_MS)

    with pytest.raises(AuditUnavailable, match="could not be recorded, so it is not given"):
        await given(desk_on(replace(desk.log, intake=intake), laid_out=False), SUBJECT, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


async def test_without_the_log_nothing_is_said(desk: Desk, down: AsyncEngine, tmp_path: Path):
    """With the log away it is an outage, never the answer that nothing is held."""
    await desk.settle(*await desk.accesses(SUBJECT))

    with pytest.raises(DatabaseDown):
        await given(desk_on(replace(desk.log, engine=down), laid_out=False), SUBJECT, tmp_path / "out")
    assert not (tmp_path / "out").exists()


async def test_without_the_lock_nothing_is_answered(down: AsyncEngine):
    """With the server of the lock away it is an outage, never an answer that another one could stand beside."""
    with pytest.raises(DatabaseDown):
        async with Answering(down, timeout_ms=TIMEOUT_MS).alone("r"):
            pytest.fail("answered without the lock")


async def test_without_the_registry_nothing_is_called_erased(desk: Desk, down: AsyncEngine, tmp_path: Path):
    """With the keys away it is an outage, never a key that is gone."""
    await desk.settle(*await desk.accesses(SUBJECT))
    people = People(down, tmp_path / "secrets", desk.log.clock, Metrics(), timeout_ms=TIMEOUT_MS)

    with pytest.raises(DatabaseDown):
        await given(desk_on(replace(desk.log, people=people), laid_out=False), SUBJECT, tmp_path / "out")
    assert not (tmp_path / "out").exists()


async def test_what_waits_for_the_log_is_waited_for(desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """An entry that was handed over before the question and is not sequenced in time: LogBehind, since the answer could lack it."""
    monkeypatch.setattr(proven, "FRESH_WITHIN_S", 0.1)
    await desk.settle()
    await desk.log.intake.write(*await desk.accesses(SUBJECT))
    desk.log.clock.advance(1)

    with pytest.raises(LogBehind):
        await given(desk, SUBJECT, tmp_path)


async def test_a_folder_that_cannot_be_used_is_named(desk: Desk, tmp_path: Path):
    """The option is named where its folder is a file."""
    await desk.settle(*await desk.accesses(SUBJECT))
    (tmp_path / "out").write_text("")

    with pytest.raises(ConfigError, match=r"--out: .*out"):
        await given(desk, SUBJECT, tmp_path / "out")


async def entries_of(desk: Desk, kind: str) -> list[dict[str, Any]]:
    """Bodies of all entries of a kind."""
    await desk.log.add()
    bodies = [orjson.loads(body) for (body,) in await desk.log.rows("SELECT body FROM audit.body ORDER BY seq")]
    return [body for body in bodies if body["kind"] == kind]
