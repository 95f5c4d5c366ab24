"""Accesses to sensitive models: who consulted what, and what nobody confirmed."""

from datetime import timedelta

import pytest

from app.audit.records.entry import Entry
from app.reports.evidence import accesses
from app.reports.evidence.context import Context
from app.reports.evidence.facts import Consultations
from tests.fixtures.night import (
    ANNA,
    BEN,
    NIGHT,
    NOON,
    PII,
    RISK,
    NightLog,
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
    return [(str(one.access.body["decision_id"]), one.incident) for one in evidence.unmet]


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


@pytest.mark.parametrize(
    ("minute", "tenants"), [(NOON, ["globex"]), (NIGHT.begin, [])], ids=["at noon", "counted after midnight, recorded before"]
)
def test_a_tenant_that_used_a_sensitive_model_without_an_entry_is_uncovered(minute, tenants: list[str]):
    """No log, no access: the counts of decisions are held against the entries, but for those of the first minute."""
    counts = (summary(2, minute, tenant=tenant, model=RISK) for tenant in ("acme", "globex"))
    evidence = NightLog.of(
        allowed(1), *counts, summary(9, tenant="initech"), summary(1, tenant="umbrella", model=RISK, outcome="deny")
    ).evidence()

    assert list(evidence.uncovered) == tenants


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
