"""Which decisions owe the log an entry, and what it says of the people in them."""

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from app.audit.intake.gaps import Gaps
from app.audit.intake.pending import Pending
from app.audit.people.pseudonyms import Pseudonyms
from app.audit.people.subject_keys import SubjectKey
from app.audit.records.entry import Entry
from app.auth.keys import Principal
from app.catalog.models import ModelSpec, Sensitive
from app.clock import ManualClock
from app.decision.confirmation import Confirmation
from app.decision.decision import Decision, Facts, Reason
from app.decision.entries import Records
from app.decision.request import Asking, DecideRequest
from app.errors import DependencyDown
from app.observability.metrics import Metrics
from app.policy.terms import Deny, Obligation, Terms
from tests.fixtures.outage import FakeEngine, fake_intake

APPROVAL = UUID("01890000-0000-7000-8000-00000000000a")
OURS: Any = SimpleNamespace(find=lambda tenant, text: SimpleNamespace(id=APPROVAL) if (tenant, text) == ("a", str(APPROVAL)) else None)
"""Approvals that know one."""
CALLER = Principal("k-1", "gate", frozenset({"gateway"}), frozenset({"*"}))
PLAIN = ModelSpec(id="m")
SENSITIVE = ModelSpec(id="m", sensitive=Sensitive(roles=("r",), retention_days=365))
FACTS = Facts("d-1", "r1", 3, 7, 40, degraded=False)
ALLOWED = Decision(FACTS, allow=True, status=200, outcome="allow")
REFUSED = Decision(FACTS, allow=False, status=403, outcome="deny", reasons=(Reason("no", "m", rule="x"),))
FULL = Decision(FACTS, allow=False, status=429, outcome="quota", reasons=(Reason("qps_exceeded", "m", rule="quota"),))
DENY = Deny("x", "no", "m", waivable=True)


@dataclass
class Log:
    """Records, and what they wrote."""

    records: Records
    engine: FakeEngine
    pending: Pending

    async def write(self, spec: ModelSpec | None, terms: Terms | None, decision: Decision, **fields: Any) -> Confirmation | None:
        """Have a decision write what it owes."""
        request = DecideRequest.model_validate({"tenant": "a", "model": "m", **fields})
        return await self.records.write(Asking(request, CALLER, peer="192.0.2.7"), spec, terms, decision)

    async def body(self, spec: ModelSpec | None, terms: Terms | None, decision: Decision, **fields: Any) -> Any:
        """The last envelope that a decision leaves, or None."""
        await self.write(spec, terms, decision, **fields)
        return self.engine.bodies[-1] if self.engine.bodies else None


class OneKey:
    """Stands in for the keys of everybody."""

    def __init__(self) -> None:
        self.owners: list[str] = []
        self.down = False

    async def key(self, owner: str) -> SubjectKey:
        if self.down:
            raise DependencyDown("PostgreSQL: no server")
        self.owners.append(owner)
        return SubjectKey(UUID(int=1), bytes(32))


@pytest.fixture
def keys() -> OneKey:
    return OneKey()


@pytest.fixture
def people(tmp_path: Path, keys: OneKey) -> Any:
    return SimpleNamespace(pseudonyms=Pseudonyms(tmp_path), keys=keys)


@pytest.fixture
def log(people: Any) -> Log:
    clock, metrics, engine = ManualClock(datetime(2026, 1, 2, tzinfo=UTC)), Metrics(), FakeEngine()
    intake = fake_intake(engine, clock, metrics)
    pending = Pending(intake, clock, metrics)
    return Log(Records(intake, pending, people, clock, OURS), engine, pending)


def opened(body: Any) -> dict[str, str]:
    """What is sealed in an entry, in clear."""
    key = SubjectKey(UUID(int=1), bytes(32))
    return {
        member: key.open(UUID(body["id"]), member, base64.b64decode(text.split(":")[2])) for member, text in body.get("sealed", {}).items()
    }


async def test_an_access_bears_the_time_of_its_decision(people: Any, keys: OneKey):
    """However long its key was waited for: by the time that the wait is over its approval may have ended."""
    clock, metrics, engine = ManualClock(datetime(2026, 1, 2, tzinfo=UTC)), Metrics(), FakeEngine()
    intake = fake_intake(engine, clock, metrics)

    async def slow(owner: str) -> SubjectKey:
        clock.advance(1500)
        return await keys.key(owner)

    slowly: Any = SimpleNamespace(pseudonyms=people.pseudonyms, keys=SimpleNamespace(key=slow))
    log = Log(Records(intake, Pending(intake, clock, metrics), slowly, clock, OURS), engine, Pending(intake, clock, metrics))

    assert (await log.body(SENSITIVE, Terms("r1"), ALLOWED))["recorded"] == "2026-01-02T00:00:00.000000Z"


@pytest.mark.parametrize(
    ("spec", "terms", "decision", "wrote"),
    [
        (PLAIN, Terms("r1"), ALLOWED, None),
        (PLAIN, Terms("r1"), FULL, None),
        (PLAIN, Terms("r1", denies=(DENY,)), REFUSED, ("policy.refusal", "refused")),
        (None, Terms("r1", denies=(DENY,)), REFUSED, ("policy.refusal", "refused")),
        (SENSITIVE, Terms("r1"), ALLOWED, ("sensitive.access", "allowed")),
        (SENSITIVE, Terms("r1"), FULL, ("sensitive.access", "refused")),
        (SENSITIVE, Terms("r1", denies=(DENY,)), REFUSED, ("sensitive.access", "refused")),
        (PLAIN, Terms("r1", obligations=(Obligation("audit", 184),)), ALLOWED, ("sensitive.access", "allowed")),
        (SENSITIVE, Terms("r1", obligations=(Obligation("audit"),)), ALLOWED, ("sensitive.access", "allowed")),
        (SENSITIVE, Terms("r1", obligations=(Obligation("audit"), Obligation("mask"))), ALLOWED, ("sensitive.access", "unconfirmed")),
        (SENSITIVE, Terms("r1", obligations=(Obligation("audit"), Obligation("mask"))), FULL, ("sensitive.access", "refused")),
        (PLAIN, Terms("r1", obligations=(Obligation("mask"),)), ALLOWED, None),
        (PLAIN, Terms("r1"), REFUSED, ("policy.refusal", "refused")),
    ],
)
async def test_what_owes_an_entry(log: Log, spec: ModelSpec | None, terms: Terms, decision: Decision, wrote: tuple[str, str] | None):
    """Sensitive models and audited terms always, refusals by policy always, other decisions never."""
    body = await log.body(spec, terms, decision)

    assert (body and (body["kind"], body["outcome"])) == wrote


@pytest.mark.parametrize("needed", [True, False])
async def test_an_access_says_whether_it_needed_an_approval(log: Log, needed: bool):
    """By the spec in force when it was decided: reports that are made later do not ask a newer one."""
    spec = ModelSpec(id="m", sensitive=Sensitive(roles=("r",), retention_days=365, approval=needed))

    assert (await log.body(spec, Terms("r1"), ALLOWED))["approval_needed"] is needed
    assert (await log.body(PLAIN, Terms("r1", obligations=(Obligation("audit", 184),)), ALLOWED))["approval_needed"] is False


@pytest.mark.parametrize(
    ("spec", "decision", "wrote"),
    [
        (PLAIN, ALLOWED, [("waiver.used", "allowed")]),
        (PLAIN, FULL, [("waiver.used", "refused")]),
        (PLAIN, REFUSED, [("waiver.used", "refused"), ("policy.refusal", "refused")]),
        (SENSITIVE, ALLOWED, [("waiver.used", "allowed"), ("sensitive.access", "allowed")]),
    ],
)
async def test_a_waiver_is_an_entry_of_its_own(log: Log, spec: ModelSpec, decision: Decision, wrote: list):
    """Break-glass names the refusal that was lifted, beside whatever else the decision owes, in one commit."""
    await log.body(spec, Terms("r1", waived=(DENY,)), decision)
    (commit,) = log.engine.commits

    assert [(body["kind"], body["outcome"]) for body in commit] == wrote
    assert commit[0]["waived"] == [{"code": "no", "rule": "x"}]
    assert len({body["id"] for body in commit}) == len(wrote)
    assert {body["decision_id"] for body in commit} == {"d-1"}


async def test_people_are_pseudonyms_of_their_tenant(log: Log):
    """The same person has one pseudonym in a tenant and another in another; the id is nowhere in the bytes, and opens with their key."""
    bodies = [
        await log.body(SENSITIVE, Terms("r1"), ALLOWED, tenant=tenant, subject={"id": "alice@example.org"}) for tenant in ("a", "a", "b")
    ]

    subjects = [body["subject"] for body in bodies]
    assert subjects[0] == subjects[1] != subjects[2]
    assert "alice" not in json.dumps(bodies)
    assert opened(bodies[0]) == {"subject": "alice@example.org", "address": "192.0.2.7"}


async def test_addresses_are_pseudonyms_too(log: Log):
    """The peer's address is told apart from others, and never in clear."""
    body = await log.body(SENSITIVE, Terms("r1"), ALLOWED)

    assert body["address"].startswith("p1:")
    assert "192.0.2.7" not in json.dumps(body)
    assert opened(body) == {"address": "192.0.2.7"}


async def test_words_of_the_spec_stand_in_clear(log: Log):
    """Actions and purposes that the model's spec declares can be searched for, and the action that needs no word."""
    spec = ModelSpec(id="m", sensitive=Sensitive(roles=("r",), retention_days=365, actions=("train",), purposes=("audit",)))
    declared = await log.body(spec, Terms("r1"), ALLOWED, action="train", purpose="audit")
    usual = await log.body(None, Terms("r1"), REFUSED)

    assert (declared["action"], declared["purpose"], usual["action"]) == ("train", "audit", "infer")
    assert set(declared["sealed"]) == set(usual["sealed"]) == {"address"}


@pytest.mark.parametrize("spec", [SENSITIVE, PLAIN, None])
async def test_words_of_callers_are_sealed(log: Log, spec: ModelSpec | None):
    """What no spec declares may say something about a person: it stands in the entry, but only sealed."""
    said = {"action": "ask for alice", "purpose": "alice is ill", "approval_id": "alice-1"}
    body = await log.body(spec, Terms("r1"), REFUSED, **said)

    assert "alice" not in json.dumps(body)
    assert opened(body) == {"address": "192.0.2.7", **said}


async def test_an_approval_of_ours_is_named_in_clear(log: Log):
    """An id that is one of ours stands in the entry, so that whoever reads it finds who approved; nobody's words are in it."""
    body = await log.body(SENSITIVE, Terms("r1"), ALLOWED, approval_id=str(APPROVAL))

    assert body["approval_id"] == str(APPROVAL)
    assert set(body["sealed"]) == {"address"}


async def test_what_ended_unconfirmed_or_unused_waits_for_the_log(log: Log):
    """The incident says what was owed and how the lease ended, for as long as its access is kept; an unused access says that."""
    terms = Terms("r1", obligations=(Obligation("audit", 730), Obligation("mask")))
    owed = await log.write(SENSITIVE, terms, ALLOWED, approval_id=str(APPROVAL), subject={"id": "alice"})
    assert owed is not None
    log.engine.health = "down"
    log.records.unmet(owed, "expired")
    log.records.cancelled(owed)
    log.engine.health = "up"
    await log.pending.flush()

    access, unmet, cancelled = log.engine.bodies
    told = [(body["kind"], body["outcome"], body.get("reason"), body["obligations"]) for body in (unmet, cancelled)]
    assert told == [("obligation.unmet", "unmet", "expired", ["mask"]), ("sensitive.access", "cancelled", None, ["mask"])]
    for name in ("decision_id", "subject", "approval_id", "policy_revision", "operator", "tenant", "model"):
        assert access[name] == unmet[name] == cancelled[name]


async def test_texts_are_sealed_for_the_person_they_are_about(log: Log, people: Any, keys: OneKey):
    """The key is the subject's, without a subject that of the address, without either that of the credential."""
    await log.body(SENSITIVE, Terms("r1"), ALLOWED, subject={"id": "alice"})
    await log.body(SENSITIVE, Terms("r1"), ALLOWED)
    request = DecideRequest.model_validate({"tenant": "a", "model": "m", "purpose": "p"})
    await log.records.write(Asking(request, CALLER), SENSITIVE, Terms("r1"), ALLOWED)

    names = people.pseudonyms
    assert keys.owners == [names.subject("a", "alice"), names.address("a", "192.0.2.7"), names.operator("gate")]


async def test_each_entry_of_a_decision_is_sealed_for_itself(log: Log):
    """A text opens in the entry it stands in, though two entries of one decision have it."""
    await log.body(SENSITIVE, Terms("r1", waived=(DENY,)), ALLOWED, subject={"id": "alice"})

    assert [opened(body)["subject"] for body in log.engine.bodies] == ["alice", "alice"]


async def test_what_owes_nothing_asks_for_no_key(log: Log, keys: OneKey):
    """A decision that leaves no entry touches nobody's key."""
    await log.body(PLAIN, Terms("r1"), ALLOWED, subject={"id": "alice"}, purpose="p")

    assert keys.owners == []


async def test_without_the_key_nothing_is_written(log: Log, keys: OneKey):
    """A person whose key cannot be had is a failed entry: nothing is committed, the caller is told, and the next gap counts it."""
    keys.down = True
    with pytest.raises(DependencyDown):
        await log.write(SENSITIVE, Terms("r1"), ALLOWED)
    await log.pending.flush()

    assert [(body["kind"], body["refused"]) for body in log.engine.bodies] == [("audit.gap", 1)]


MASKED = Terms("r1", obligations=(Obligation("audit", 730), Obligation("log"), Obligation("mask")))


async def test_what_the_gateway_must_confirm(log: Log):
    """An access with obligations is unconfirmed, names them, and gives what its confirmation needs; without any there is nothing to give."""
    confirmation = await log.write(SENSITIVE, MASKED, ALLOWED)

    assert log.engine.bodies[-1]["obligations"] == ["log", "mask"]
    assert confirmation.owed == ("log", "mask")
    assert Confirmation.unpack(confirmation.pack()) == confirmation
    assert await log.write(SENSITIVE, Terms("r1"), ALLOWED) is None
    assert await log.write(SENSITIVE, MASKED, FULL) is None
    assert await log.write(PLAIN, Terms("r1", obligations=(Obligation("mask"),)), ALLOWED) is None


@pytest.mark.parametrize(("met", "covered"), [(["mask", "log"], True), (["log", "mask", "more"], True), (["mask"], False), ([], False)])
async def test_only_all_that_is_owed_confirms(log: Log, met: list[str], covered: bool):
    """Codes in any order and beyond what is owed confirm; a part of it does not, and all stays owed."""
    confirmation = await log.write(SENSITIVE, MASKED, ALLOWED)

    assert confirmation.owed_after(met) == (() if covered else ("log", "mask"))


async def test_a_confirmation_follows_its_access(log: Log):
    """The entry names the same decision, person and rules, is kept as long, and tells nothing that would need a key."""
    await log.records.confirm(await log.write(SENSITIVE, MASKED, ALLOWED, subject={"id": "alice"}))
    access, confirmed = log.engine.bodies

    same = ("decision_id", "subject", "address", "model", "policy_revision", "quota_version", "operator", "tenant")
    assert [access[name] for name in same] == [confirmed[name] for name in same]
    assert (confirmed["kind"], confirmed["outcome"], confirmed["obligations_met"]) == ("sensitive.access", "confirmed", ["log", "mask"])
    assert "sealed" not in confirmed


async def test_a_confirmation_waits_for_the_database(log: Log):
    """In an outage the report is taken all the same: its entry is written afterwards, and until then the access is unconfirmed."""
    confirmation = await log.write(SENSITIVE, MASKED, ALLOWED)
    log.engine.health = "down"
    await log.records.confirm(confirmation)
    assert [body["outcome"] for body in log.engine.bodies] == ["unconfirmed"]
    log.engine.health = "up"
    await log.pending.flush()

    outcomes = [body["outcome"] for body in log.engine.bodies if body["kind"] == "sensitive.access"]
    assert outcomes == ["unconfirmed", "confirmed"]


@pytest.mark.parametrize("subject", [None, {}, {"roles": ["x"]}])
async def test_without_a_person_there_is_no_pseudonym(log: Log, subject: object):
    """A request that names nobody leaves no subject, rather than the pseudonym of nothing."""
    assert "subject" not in await log.body(SENSITIVE, Terms("r1"), ALLOWED, subject=subject)


async def test_the_longest_retention_wins(people: Any):
    """Of what terms and model ask for, the entry is kept for the longest, and its confirmation as long."""
    written: list[Entry] = []

    async def write(*entries: Entry) -> None:
        written.extend(entries)

    clock = ManualClock(datetime(2026, 1, 2, tzinfo=UTC))
    records = Records(SimpleNamespace(write=write, commit=write, gaps=Gaps(clock)), None, people, clock, OURS)  # type: ignore[arg-type]
    asking = Asking(DecideRequest.model_validate({"tenant": "a", "model": "m"}), CALLER)
    terms = Terms("r1", obligations=(Obligation("audit", 730), Obligation("mask", 200)))
    await records.confirm(await records.write(asking, SENSITIVE, terms, ALLOWED))
    await records.write(asking, SENSITIVE, Terms("r1"), ALLOWED)

    assert [entry.retention for entry in written] == ["d730", "d730", "d365"]


async def test_an_access_that_no_rule_answered_is_in_the_log_too(log: Log):
    """Without an answer of the rules an access is refused, and the attempt stands in the log without a revision; others owe nothing."""
    unanswered = Decision(FACTS, allow=False, status=503, outcome="error", reasons=(Reason("policy_unavailable", "m", rule=None),))
    body = await log.body(SENSITIVE, None, unanswered)

    assert (body["kind"], body["outcome"]) == ("sensitive.access", "refused")
    assert body["reasons"] == [{"code": "policy_unavailable", "rule": None}]
    assert "policy_revision" not in body
    assert await log.write(PLAIN, None, unanswered) is None
    assert len(log.engine.bodies) == 1


async def test_of_many_who_would_wait_in_vain_one_does(people: Any):
    """A server that hangs for two seconds costs a batch two, not two for each item: the next is tried two later, and all are counted."""
    clock, tried = ManualClock(datetime(2026, 1, 2, tzinfo=UTC)), []
    gaps, hangs = Gaps(clock), True

    async def write(*_: Entry) -> None:
        tried.append(clock.monotonic_ms())
        if hangs:
            clock.advance(2000)
            with gaps.refusing():
                raise DependencyDown("no answer in time")

    records = Records(SimpleNamespace(write=write, commit=write, gaps=gaps), None, people, clock, OURS)  # type: ignore[arg-type]
    asking = Asking(DecideRequest.model_validate({"tenant": "a", "model": "m"}), CALLER)
    began_ms = clock.monotonic_ms()
    for _ in range(256):
        with pytest.raises(DependencyDown):
            await records.write(asking, SENSITIVE, Terms("r1"), ALLOWED)
    assert [at - began_ms for at in tried] == [0]
    hangs = False
    clock.advance(2000)
    for _ in range(2):
        await records.write(asking, SENSITIVE, Terms("r1"), ALLOWED)

    assert [at - began_ms for at in tried] == [0, 4000, 4000]
    assert b'"refused":256' in gaps.close()[0].body
