"""Which decisions owe the log an entry, and what it says of the people in them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from app.audit.entry import Entry
from app.audit.pseudonym import Pseudonyms
from app.auth.keys import Principal
from app.catalog.models import ModelSpec, Sensitive
from app.clock import ManualClock
from app.decision.decision import Decision, Facts, Reason
from app.decision.entries import Records
from app.decision.request import Asking, DecideRequest
from app.policy.terms import Deny, Obligation, Terms

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
    written: list[Entry]

    async def body(self, spec: ModelSpec | None, terms: Terms, decision: Decision, **fields: Any) -> Any:
        """The envelope that a decision leaves, or None."""
        request = DecideRequest.model_validate({"tenant": "a", "model": "m", **fields})
        await self.records.write(Asking(request, CALLER, peer="192.0.2.7"), spec, terms, decision)
        return orjson.loads(self.written[-1].body) if self.written else None


@pytest.fixture
def log(tmp_path: Path) -> Log:
    written: list[Entry] = []

    async def write(*entries: Entry) -> None:
        written.extend(entries)

    clock = ManualClock(datetime(2026, 1, 2, tzinfo=UTC))
    return Log(Records(SimpleNamespace(write=write), Pseudonyms(tmp_path), clock), written)  # type: ignore[arg-type]


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
        (PLAIN, Terms("r1", obligations=(Obligation("mask"),)), ALLOWED, None),
    ],
)
async def test_what_owes_an_entry(log: Log, spec: ModelSpec | None, terms: Terms, decision: Decision, wrote: tuple[str, str] | None):
    """Sensitive models and audited terms always, refusals by policy always, other decisions never."""
    body = await log.body(spec, terms, decision)

    assert (body and (body["kind"], body["outcome"])) == wrote


async def test_a_waiver_is_recorded_with_what_it_waived(log: Log):
    """Break-glass leaves an entry although the request was admitted, naming the refusal that was lifted."""
    body = await log.body(PLAIN, Terms("r1", waived=(DENY,)), ALLOWED)

    assert body["reasons"] == [{"code": "no", "rule": "x", "waived": True}]


async def test_people_are_pseudonyms_of_their_tenant(log: Log):
    """The same person has one pseudonym in a tenant and another in another; the id is nowhere in the bytes."""
    bodies = [
        await log.body(SENSITIVE, Terms("r1"), ALLOWED, tenant=tenant, subject={"id": "alice@example.org"}) for tenant in ("a", "a", "b")
    ]

    subjects = [body["subject"] for body in bodies]
    assert subjects[0] == subjects[1] != subjects[2]
    assert all(b"alice" not in entry.body for entry in log.written)


async def test_addresses_are_pseudonyms_too(log: Log):
    """The peer's address is told apart from others, and never in clear."""
    body = await log.body(SENSITIVE, Terms("r1"), ALLOWED)

    assert body["address"].startswith("p1:")
    assert b"192.0.2.7" not in log.written[-1].body


@pytest.mark.parametrize("subject", [None, {}, {"roles": ["x"]}])
async def test_without_a_person_there_is_no_pseudonym(log: Log, subject: object):
    """A request that names nobody leaves no subject, rather than the pseudonym of nothing."""
    assert "subject" not in await log.body(SENSITIVE, Terms("r1"), ALLOWED, subject=subject)


async def test_the_longest_retention_wins(log: Log):
    """Of what terms and model ask for, the entry is kept for the longest."""
    terms = Terms("r1", obligations=(Obligation("audit", 730), Obligation("mask", 10)))
    await log.body(SENSITIVE, terms, ALLOWED)
    await log.body(SENSITIVE, Terms("r1"), ALLOWED)

    assert [entry.retention for entry in log.written] == ["d730", "d365"]
