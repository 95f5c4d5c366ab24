"""What one pass over an export finds of a night."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.audit.records.entry import Entry, make_entry
from app.reports.evidence import counts, facts
from app.reports.evidence.context import Context
from app.reports.evidence.facts import Covered, DecisionCount, KindCount, Logged
from app.reports.evidence.gather import gather
from app.reports.nights.night import Night
from tests.fixtures.night import (
    NIGHT,
    NOON,
    RISK,
    NightLog,
    allowed,
    answer,
    as_logged,
    breach,
    eventful,
    lost,
    moved,
    quota,
    read,
    refused,
    request,
    summary,
    told,
)

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


def test_entries_are_counted_by_kind_and_outcome():
    """How many, which are first and last, and how many are complete, by hand."""
    evidence = NightLog.of(read(), allowed(1), read(outcome="refused"), read(), refused(2)).evidence()

    assert evidence.entries == 5
    assert list(evidence.kinds) == [
        KindCount("log.read", "done", 2, 0, 3, 2),
        KindCount("log.read", "refused", 1, 2, 2, 1),
        KindCount("sensitive.access", "allowed", 1, 1, 1, 1),
        KindCount("sensitive.access", "refused", 1, 4, 4, 1),
    ]
    assert [entry.seq for entry in evidence.of("log.read").entries] == [0, 2, 3]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(eventful()), st.integers(-30, 30)), max_size=40))
def test_counts_by_kind_add_up_to_the_entries_of_the_day(chosen: list[tuple[Entry, int]]):
    """Whatever was recorded when: each entry of the day is counted once, and shown once to who writes the table of them."""
    log = NightLog.of(*(moved(entry, timedelta(hours=hours)) for entry, hours in chosen))
    seen: list[Logged] = []
    evidence = log.unverified(each=seen.append)
    belong = [number for number, entry in enumerate(log.entries) if is_of_the_night(entry)]

    assert evidence.entries == sum(kind.count for kind in evidence.kinds) == len(belong)
    assert [entry.seq for entry in seen] == belong
    assert Counter(entry.kind for entry in seen) == sum((Counter({kind.kind: kind.count}) for kind in evidence.kinds), Counter())


def is_of_the_night(entry: Entry) -> bool:
    """Whether an entry is of NIGHT, by plain arithmetic: all of these summaries are written a minute after their minute."""
    said = orjson.loads(entry.body)
    at = datetime.fromisoformat(said.get("minute", said["recorded"]))
    return datetime(2026, 11, 28, 16, tzinfo=UTC) <= at < datetime(2026, 11, 29, 16, tzinfo=UTC)


def test_decisions_are_counted_by_the_hour_of_the_zones_clock():
    """Each minute counts in its hour, tenants that nobody knows as None, and late counts in the hour in which they were written."""
    begin = NIGHT.begin
    evidence = NightLog.of(
        summary(1, begin),
        summary(2, begin + 59 * MINUTE),
        summary(4, begin + 60 * MINUTE),
        summary(8, begin + 60 * MINUTE, outcome="deny", tenant=None, model=None),
        summary(16, NIGHT.end - MINUTE),
        summary(32, begin - MINUTE),  # of the day before, since it was written down in time
        summary(64, begin - MINUTE, late=3 * 60 * MINUTE),
        summary(128, NIGHT.end),
    ).evidence()

    assert list(evidence.decisions) == [
        DecisionCount(begin, "acme", "m", "allow", 3),
        DecisionCount(begin + 60 * MINUTE, None, None, "deny", 8),
        DecisionCount(begin + 60 * MINUTE, "acme", "m", "allow", 4),
        DecisionCount(begin + 179 * MINUTE - 59 * MINUTE, "acme", "m", "allow", 64),
        DecisionCount(NIGHT.end - 60 * MINUTE, "acme", "m", "allow", 16),
    ]
    assert evidence.late_decisions == 64


def test_a_day_of_25_hours_counts_the_doubled_hour_twice():
    """Two hours that the clock calls 02 are two."""
    night = Night(date(2026, 10, 25), "Europe/Berlin")
    evidence = NightLog.of(*(summary(1, night.begin + hour * 60 * MINUTE) for hour in range(25))).evidence(night)

    assert len(evidence.decisions) == 25
    assert {one.count for one in evidence.decisions} == {1}
    assert all((later.hour - earlier.hour).total_seconds() == 3600 for earlier, later in pairwise(evidence.decisions))


def test_users_and_tenants_are_covered_by_what_was_written_of_them():
    """By name, with the first entry; a tenant that has a quota and did nothing has none."""
    evidence = NightLog.of(quota("globex"), summary(5), summary(7, tenant=None), read()).evidence(context=Context(tenants=["acme", "idle"]))

    assert list(evidence.operators) == [
        Covered("auditor", 1, first=3),
        Covered("olivia", 1, first=0),
        Covered("sluice", 2, first=1),
    ]
    assert list(evidence.tenants) == [Covered("acme", 1, 5, 1), Covered("globex", 1, 0, 0), Covered("idle", 0)]
    assert evidence.sealed == {"reason": 1}


def test_a_night_without_anything_is_evidence_of_nothing():
    """A day without a row has zeros, and the checkpoint that says so."""
    log = NightLog.of(read(NOON - 2 * DAY), read(NOON + 2 * DAY))
    evidence = log.evidence(lines=log.lines(1, 1))

    assert (evidence.entries, evidence.first, evidence.end) == (0, 1, 1)
    assert (evidence.kinds, evidence.decisions, evidence.listed, evidence.unmet) == ([], [], {}, [])
    assert (evidence.integrity.report.verdict, evidence.integrity.report.size) == ("whole", 2)
    assert evidence.integrity.note.startswith("sluice/")


def test_entries_beyond_the_bound_are_counted_and_shown(monkeypatch: pytest.MonkeyPatch):
    """The first are kept, all are counted, and all pass by whoever writes the table."""
    monkeypatch.setattr(counts, "MOST_LISTED", 3)
    seen: list[Logged] = []
    evidence = NightLog.of(*(allowed(number) for number in range(10))).evidence(each=seen.append)

    assert [entry.seq for entry in evidence.of("sensitive.access").entries] == [0, 1, 2]
    assert evidence.of("sensitive.access").total == len(seen) == 10


def test_more_than_ten_thousand_accesses_of_one_person_are_all_there():
    """10 001 rows of one subject are 10 001, not 10 000."""
    evidence = NightLog.of(*(allowed(number) for number in range(10_001))).unverified()
    (consulted,) = evidence.consultations

    assert consulted.count == evidence.of("sensitive.access").total == len(evidence.of("sensitive.access").entries) == 10_001


def test_an_altered_entry_is_no_evidence():
    """What does not have its hash is named by the verifier and counted nowhere; the rest is."""
    log = NightLog.of(read(), allowed(1), read())
    lines = [line.replace(b'"model":"%b"' % RISK.encode(), b'"model":"harmless"') for line in log.lines()]
    evidence = log.evidence(lines=lines)

    assert evidence.integrity.report.verdict == "tampered"
    assert not evidence.integrity.whole
    assert any(line.startswith("tampered   entry 1:") for line in evidence.integrity.text)
    assert [(kind.kind, kind.count) for kind in evidence.kinds] == [("log.read", 2)]


def test_purged_entries_of_the_day_are_counted_as_gone():
    """Their bodies cannot be told; that they were there can."""
    log = NightLog.of(read(NOON - 2 * DAY), read(), read())
    evidence = log.evidence(lines=log.lines(purged=(0, 1)))

    assert (evidence.entries, evidence.purged) == (1, 1)


def test_an_entry_that_came_after_its_day_was_reported_on_is_told():
    """It is of its own day, and the day in which it came says that there is one."""
    before = NIGHT.begin - MINUTE
    log = NightLog.of(read(before), read(NIGHT.begin + 14 * MINUTE), read(before), read(NIGHT.begin + 15 * MINUTE), read(before))

    assert [entry.seq for entry in log.evidence().late.entries] == [4]
    assert [entry.seq for entry in log.evidence(NIGHT.previous()).of("log.read").entries] == [0, 2, 4]


def test_where_a_file_joins_the_one_before_its_late_entries_are_those_that_one_lacks():
    """Whatever the order of the times: what comes from there on is in no earlier report."""
    before = NIGHT.begin - MINUTE
    log = NightLog.of(read(before), read(before), read(NIGHT.begin + MINUTE), read(NIGHT.begin + 15 * MINUTE), read(before))

    for joins, late in ((1, [1, 4]), (5, [])):
        evidence = gather(log.lines(), NIGHT, replace(log.integrity(), joins=joins))
        assert [entry.seq for entry in evidence.late.entries] == late


def test_requests_and_breaches_stand_as_they_did_when_the_day_ended():
    """With what older days opened, and without what the next one says."""
    older = {
        "requests": [as_logged(2, request("old", NOON - 3 * DAY, days=1))],
        "breaches": [as_logged(3, breach("leak", NOON - 3 * DAY))],
    }
    entries = [request("new"), answer("old"), told("leak"), answer("new", NIGHT.end + MINUTE)]
    log = NightLog.of(*(read(NOON - 4 * DAY) for _ in range(10)), *entries)
    evidence = log.evidence(context=Context(older=older))

    assert [(one.id, one.status, one.entries) for one in evidence.requests] == [("old", "done", (2, 11)), ("new", "open", (10,))]
    assert [(one.id, list(one.notified), one.entries) for one in evidence.breaches] == [("leak", ["authority"], (3, 12))]


def test_an_entry_that_lacks_something_is_counted_as_such_and_says_nothing():
    """A forged entry of a person's request neither opens one nor stops the report."""
    forged = make_entry("log.read", recorded=NOON, operator=" ", tenant=None, outcome="done", details={"read": "entries"})
    no_text = request("r")
    no_text = type(no_text)(
        no_text.id, no_text.kind, no_text.retention, no_text.recorded, no_text.body.replace(b'"request":"r"', b'"request":["r"]')
    )
    evidence = NightLog.of(forged, no_text, lost(0)).evidence()

    assert evidence.incomplete.entries == (0,)
    assert (evidence.requests, evidence.entries) == ([], 3)
    assert facts.MOST_SHOWN == 20
