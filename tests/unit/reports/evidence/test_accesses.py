"""Accesses to sensitive models: who consulted what, and what nobody confirmed."""

from dataclasses import replace
from datetime import datetime, timedelta

import orjson
import pytest

from app.audit.records.access import sensitive_access
from app.audit.records.entry import Entry, canonical
from app.reports.evidence import accesses, counts
from app.reports.evidence.context import Context
from app.reports.evidence.facts import Consultations, Declared, Numbered
from tests.fixtures.night import (
    ANNA,
    BEN,
    DECLARED,
    NIGHT,
    NOON,
    PII,
    RISK,
    NightLog,
    access,
    allowed,
    approval,
    as_logged,
    cancelled,
    confirmed,
    refused,
    summary,
    unconfirmed,
    unmet,
)

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def found_unmet(*entries: Entry, earlier: tuple[Entry, ...] = ()) -> list[tuple[str, int | None]]:
    """Decision and incident of each unmet obligation."""
    context = Context(older={"unconfirmed": [as_logged(1000 + number, entry) for number, entry in enumerate(earlier)]})
    evidence = NightLog.of(*entries).evidence(context=context)
    return [(str(one.access.body.get("decision_id")), one.incident) for one in evidence.unmet]


def test_an_access_that_nobody_confirmed_is_unmet():
    """With the incident that says so, or without where no process was there to write it."""
    assert found_unmet(unconfirmed(1), unconfirmed(2), confirmed(1), unmet(2), unconfirmed(3)) == [("decision-2", 3), ("decision-3", None)]


def test_a_confirmation_after_midnight_counts():
    """An access at 23:59 that is confirmed at 00:01 is confirmed, and one that is found at 00:10 to be unmet has its incident."""
    last = NIGHT.end - MINUTE

    assert found_unmet(unconfirmed(1, last), confirmed(1, NIGHT.end + MINUTE)) == []
    assert found_unmet(unconfirmed(1, last), unmet(1, NIGHT.end + 10 * MINUTE)) == [("decision-1", 1)]


def test_what_the_day_before_left_open_is_looked_after():
    """It is confirmed today, or told again."""
    before = NIGHT.begin - MINUTE

    assert found_unmet(confirmed(1, NOON), earlier=(unconfirmed(1, before), unconfirmed(2, before))) == [("decision-2", None)]


def test_a_cancelled_access_owes_nothing():
    """The gateway never used it."""
    assert found_unmet(unconfirmed(1), cancelled(1)) == []


def test_a_confirmation_after_the_incident_leaves_it_unmet():
    """It was not in time."""
    assert found_unmet(unconfirmed(1), unmet(1), confirmed(1)) == [("decision-1", 1)]


def test_consultations_are_counted_by_person_model_purpose_and_how_they_ended():
    """A confirmed access is one access, at the time at which it was asked for; a purpose that stands sealed is None."""
    evidence = NightLog.of(
        allowed(1),
        allowed(2, NOON + SECOND),
        allowed(3, NOON, subject=BEN, purpose=None),
        refused(4),
        unconfirmed(5),
        confirmed(5, NOON + MINUTE),
        unconfirmed(6, NOON + SECOND),
        confirmed(99, NOON),  # of an access of another day
        allowed(7, NIGHT.begin - SECOND),
    ).evidence()
    noon, then = "2026-11-29T04:00:00.000000Z", "2026-11-29T04:00:01.000000Z"

    assert list(evidence.consultations) == [
        Consultations(ANNA, "acme", RISK, "credit-scoring", "allowed", 2, noon, then, "d365"),
        Consultations(ANNA, "acme", RISK, "credit-scoring", "refused", 1, noon, noon, "d365"),
        Consultations(ANNA, "acme", PII, "credit-scoring", "confirmed", 1, noon, noon, "d730"),
        Consultations(ANNA, "acme", PII, "credit-scoring", "unconfirmed", 1, then, then, "d730"),
        Consultations(BEN, "acme", RISK, None, "allowed", 1, noon, noon, "d365"),
    ]


def test_people_whose_names_differ_in_case_are_two():
    """Pseudonyms are compared as they are."""
    evidence = NightLog.of(allowed(1, subject="p1:ab"), allowed(2, subject="p1:AB")).evidence()

    assert [row.subject for row in evidence.consultations] == ["p1:AB", "p1:ab"]


def test_more_people_than_there_is_room_for_are_counted_as_more(monkeypatch: pytest.MonkeyPatch):
    """Memory is bounded, and what is left out is told."""
    monkeypatch.setattr(accesses, "MOST_LISTED", 2)
    evidence = NightLog.of(*(allowed(number, subject=f"p1:{number % 4}") for number in range(8))).evidence()

    assert [row.count for row in evidence.consultations] == [2, 2]
    assert evidence.more_consultations == 4


LAST = NIGHT.end - MINUTE


@pytest.mark.parametrize(
    ("minute", "uncovered"),
    [(NOON, ["globex / mdl-fin-risk-v3"]), (NIGHT.begin, []), (NIGHT.begin + MINUTE, ["globex / mdl-fin-risk-v3"]), (LAST, [])],
    ids=["at noon", "counted after midnight, recorded before", "the second minute", "counted before midnight, recorded after"],
)
def test_what_used_a_sensitive_model_without_an_entry_is_uncovered(minute: datetime, uncovered: list[str]):
    """No log, no access: the counts of decisions are held against the entries, but for those of the first and last minute."""
    uses = (summary(1, minute, tenant=tenant, model=RISK) for tenant in ("acme", "globex"))
    evidence = NightLog.of(
        allowed(1), *uses, summary(9, tenant="initech"), summary(1, tenant="umbrella", model=RISK, outcome="deny")
    ).evidence()

    assert list(evidence.uncovered) == uncovered


def test_one_access_covers_one_decision_of_its_model():
    """Neither a second one nor one of another model; a refused access covers none, and one that was not confirmed does."""
    once = [summary(1, model=RISK), summary(1, model=PII)]

    assert list(NightLog.of(allowed(1), unconfirmed(2), *once).evidence().uncovered) == []
    assert list(NightLog.of(allowed(1), refused(2, model=PII), *once).evidence().uncovered) == [f"acme / {PII}"]
    assert list(NightLog.of(allowed(1), unconfirmed(2), *once, summary(1, NOON + MINUTE, model=RISK)).evidence().uncovered) == [
        f"acme / {RISK}"
    ]


def test_accesses_that_name_no_decision_are_several():
    """One that lacks the id is not taken for another that lacks it, nor followed by a confirmation that lacks it."""

    def nameless(entry: Entry) -> Entry:
        body = orjson.loads(entry.body)
        del body["decision_id"]
        return replace(entry, body=canonical(body))

    assert len(found_unmet(*map(nameless, (unconfirmed(1), unconfirmed(2), confirmed(3))))) == 2


def test_an_access_needs_an_approval_that_covers_its_instant():
    """None, one that nobody gave, one that is over and one that was taken back are none."""
    hour = timedelta(hours=1)
    steps = [
        approval("asked", "good", "anna", expires=NOON + 9 * hour),
        approval("approved", "good", "ben", expires=NOON + 9 * hour),
        approval("asked", "short", "anna", expires=NOON + hour),
        approval("approved", "short", "ben", expires=NOON + hour),
        approval("asked", "waiting", "anna", expires=NOON + 9 * hour),
        approval("revoked", "good", "ben", NOON + 3 * hour),
    ]
    late = NOON + 2 * hour
    uses = [unconfirmed(1), *(unconfirmed(2, late, approval_id=name) for name in ("good", "short", "waiting", "unheard-of"))]
    evidence = NightLog.of(*steps, *uses, unconfirmed(3, NOON + 3 * hour, approval_id="good"), allowed(4)).evidence()

    assert evidence.unapproved is not None
    assert evidence.unapproved.total == 5
    assert evidence.unapproved.entries == (6, 8, 9, 10, 11)
    assert {str(entry.body["approval_id"]) for entry in evidence.approvals} == {"good", "short", "waiting"}


def test_an_approval_beyond_what_was_read_is_unknown():
    """Where older approvals were not all read, one that is not found may well be there."""
    cut = Context(cut=frozenset({"approvals"}))

    assert NightLog.of(unconfirmed(1, approval_id="old")).evidence(context=cut).unapproved is None
    assert NightLog.of(allowed(1)).evidence(context=cut).unapproved is not None


def test_whether_an_approval_was_needed_says_the_entry():
    """Whatever the catalogue says when the report is made; what somebody needed is against them in the newest catalogue, too."""
    log = NightLog.of(unconfirmed(1), allowed(2))
    found = [
        log.evidence(declared=declared).unapproved for declared in (DECLARED, Declared(), Declared(frozenset({RISK}), frozenset({RISK})))
    ]

    assert found == [Numbered(1, (0,))] * 3


def test_an_entry_that_does_not_say_whether_an_approval_was_needed_leaves_it_unknown():
    """As those of before it was written down; one that an approval covered is fine in any case, and one that lacked it counts."""
    old = sensitive_access(access(1), "allowed", recorded=NOON, retention_days=365)
    hour = timedelta(hours=1)
    given = [approval(step, "good", by, NOON - hour, expires=NOON + hour) for step, by in (("asked", "anna"), ("approved", "ben"))]
    covered = sensitive_access(access(2, approval_id="good"), "allowed", recorded=NOON, retention_days=365)

    assert NightLog.of(old).evidence().unapproved is None
    assert NightLog.of(*given, covered).evidence().unapproved == Numbered()
    assert NightLog.of(old, unconfirmed(3)).evidence().unapproved == Numbered(1, (1,))


def test_more_steps_of_approvals_than_are_kept_are_unknown(monkeypatch: pytest.MonkeyPatch):
    """The one that is not kept may have taken back what seems to cover."""
    monkeypatch.setattr(counts, "MOST_LISTED", 1)
    hour = timedelta(hours=1)
    steps = [approval(step, "good", by, NOON - hour, expires=NOON + hour) for step, by in (("asked", "anna"), ("approved", "ben"))]
    others = [approval("revoked", name, "ben", NOON - hour) for name in ("bad", "good")]
    evidence = NightLog.of(*steps, *others, unconfirmed(1, approval_id="good")).evidence()

    assert (evidence.unapproved, evidence.cut) == (None, {"approvals"})
