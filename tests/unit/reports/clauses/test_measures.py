"""Figures about a night, by hand."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.audit.format.export_file import EntryLine, PurgedLine, read_line
from app.audit.records.entry import Entry, make_entry
from app.audit.verification.report import Report, Verdict
from app.errors import ConfigError
from app.reports.clauses.clause import Measured
from app.reports.clauses.measures import MEASURES, measure, named
from app.reports.evidence import counts
from app.reports.evidence.context import Context
from app.reports.evidence.facts import Evidence, RetentionClass
from tests.fixtures.night import (
    ANNA,
    NIGHT,
    NOON,
    RISK,
    NightLog,
    allowed,
    answer,
    approval,
    as_logged,
    breach,
    cancelled,
    confirmed,
    eventful,
    lost,
    malformed,
    purge,
    quota,
    read,
    refused,
    request,
    summary,
    told,
    unconfirmed,
    unmet,
)

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
UNKNOWN = {"operators_without_entries", "backup_age_hours", "restore_test"}
"""What no log says."""


def value(evidence: Evidence, name: str) -> float | None:
    return measure(evidence, [name])[name].value


def of(*entries: Entry, **changes: object) -> Evidence:
    return NightLog.of(*entries).evidence(**changes)  # type: ignore[arg-type]


CASES: list[tuple[str, list[Entry], float | None, tuple[int, ...]]] = [
    ("entries_total", [read(), summary(5), read(NOON + DAY)], 2, (0, 1)),
    ("entries_late", [read(NIGHT.begin + HOUR), read(NIGHT.begin - HOUR)], 1, (1,)),
    ("decisions_total", [summary(5), summary(7, outcome="deny"), summary(100, NIGHT.begin - HOUR)], 12, (0, 1)),
    ("decisions_allowed", [summary(5), summary(7, outcome="deny")], 5, (0,)),
    ("decisions_refused", [summary(5), summary(7, outcome="deny"), summary(1, outcome="error")], 8, (1, 2)),
    ("decisions_denied", [summary(5), summary(7, outcome="deny"), summary(1, outcome="quota")], 7, (1,)),
    ("decisions_over_quota", [summary(1, outcome="quota"), summary(1, outcome="shed")], 1, (0,)),
    ("decisions_shed", [summary(1, outcome="quota"), summary(2, outcome="shed")], 2, (1,)),
    ("decisions_failed", [summary(1, outcome="quota"), summary(3, outcome="error")], 3, (1,)),
    ("decisions_late", [summary(5, NIGHT.begin - HOUR, late=2 * HOUR), summary(7, NOON, late=HOUR)], 5, ()),
    ("operators", [read(), read(), quota("acme")], 2, (0, 2)),
    ("tenants", [quota("acme"), quota("globex"), read()], 2, ()),
    ("gaps", [lost(0), lost(3), read()], 2, (0, 1)),
    ("lost_records", [lost(0), lost(3), lost(4)], 7, (1, 2)),
    ("lost_records", [lost(None), lost(4)], 4, (0, 1)),
    ("lost_records", [lost(None), lost(0)], None, (0,)),
    ("gaps_untold", [lost(None), lost(0)], 1, (0,)),
    ("malformed", [malformed(), read()], 1, (0,)),
    ("purges", [purge("d365-2025-10"), read()], 1, (0,)),
    ("purges_early", [purge("d365-2025-10"), purge("d400-2025-10"), purge("nowhere")], 2, (1, 2)),
    ("reads_of_log", [read(), read(outcome="refused"), read()], 2, (0, 2)),
    ("reads_refused", [read(), read(outcome="refused")], 1, (1,)),
    ("accesses_sensitive", [allowed(1), refused(2), unconfirmed(3), confirmed(3), unconfirmed(4), cancelled(4)], 4, (0, 1, 2, 4)),
    ("accesses_allowed", [allowed(1), refused(2)], 1, (0,)),
    ("accesses_refused", [allowed(1), refused(2)], 1, (1,)),
    ("accesses_unconfirmed", [unconfirmed(1), confirmed(1)], 1, (0,)),
    ("accesses_confirmed", [unconfirmed(1), confirmed(1)], 1, (1,)),
    ("accesses_cancelled", [unconfirmed(1), cancelled(1)], 1, (1,)),
    ("accesses_without_approval", [allowed(1), unconfirmed(2), unconfirmed(3, approval_id="nobody's")], 2, (1, 2)),
    ("obligations_unmet", [unconfirmed(1), confirmed(1)], 0, ()),
    ("obligations_unmet", [unconfirmed(1), unconfirmed(2), unmet(2), unmet(99)], 3, (0, 1, 3)),
    ("approvals_asked", [approval("asked", "a", "anna"), approval("approved", "a", "ben")], 1, (0,)),
    ("approvals_approved", [approval("asked", "a", "anna"), approval("approved", "a", "ben")], 1, (1,)),
    ("approvals_refused", [approval("asked", "a", "anna"), approval("refused", "a", "ben")], 1, (1,)),
    ("approvals_revoked", [approval("approved", "a", "ben"), approval("revoked", "a", "ben")], 1, (1,)),
    ("approvals_open", [approval("asked", "a", "anna"), approval("asked", "b", "anna"), approval("approved", "b", "ben")], 1, (0,)),
    ("approvals_in_force", [approval("asked", "a", "anna"), approval("asked", "b", "anna"), approval("approved", "b", "ben")], 1, (1, 2)),
    ("approvals_expired", [approval("asked", "a", "anna", expires=NOON + HOUR)], 1, (0,)),
    ("approvals_self", [approval("asked", "a", "anna"), approval("approved", "a", "anna")], 1, (0, 1)),
    ("approvals_self", [approval("asked", "a", "anna"), approval("approved", "a", "ben")], 0, ()),
    ("tenants_uncovered", [summary(5, model=RISK), allowed(1, tenant="globex")], 1, ()),
    ("tenants_uncovered", [summary(2, model=RISK), allowed(1), allowed(2)], 0, ()),
    ("quota_changes", [quota("acme"), quota("globex")], 2, (0, 1)),
    ("personal_fields_sealed", [quota("acme"), request("r"), read()], 2, ()),
    ("people_consulted", [allowed(1), allowed(2), allowed(3, subject="p1:b"), allowed(4, subject=None)], 2, ()),
    ("requests_open", [request("r"), request("s"), answer("s")], 1, (0,)),
    ("requests_answered", [request("r"), answer("r")], 1, (0, 1)),
    ("requests_refused", [request("r"), answer("r", ground="GDPR Art. 12(5)")], 1, (0, 1)),
    ("breaches_open", [breach("b"), breach("c"), told("c")], 1, (0,)),
    ("breaches_overdue", [breach("b", hours=1), breach("c", hours=72)], 1, (0,)),
    ("breaches_overdue", [breach("b", hours=1), told("b", NOON + 2 * HOUR)], 1, (0, 1)),
    ("breaches_overdue", [breach("b", hours=3), told("b", NOON + 2 * HOUR)], 0, ()),
]


@pytest.mark.parametrize(("name", "entries", "expected", "shown"), CASES, ids=[f"{case[0]}-{number}" for number, case in enumerate(CASES)])
def test_a_figure_is_what_was_counted_by_hand(name: str, entries: list[Entry], expected: float | None, shown: tuple[int, ...]):
    """Its value, and the numbers of the entries that show it."""
    found = measure(of(*entries), [name])[name]

    assert (found.value, found.entries) == (expected, shown)


def test_a_night_without_anything_has_zeros_and_unknowns():
    """Zero where nothing was, nothing at all where nobody knows: a share of no entries, ages, what stands outside of the log."""
    log = NightLog.of(read(NOON - 2 * DAY))
    figures = measure(log.evidence(lines=log.lines(1, 1)))
    none = {name for name, figure in figures.items() if figure.value is None}

    assert none == UNKNOWN | {"share_complete", "retention_days_least", "oldest_body_days"}
    assert {figure.value for name, figure in figures.items() if name not in none} == {0}


def test_every_figure_says_how_it_is_repeated():
    """Both languages, a unit, a query, at most twenty entries, and a finite number or none."""
    figures = measure(of(*eventful(), *(allowed(number + 100) for number in range(30))))

    assert figures.keys() == MEASURES.keys()
    assert all(figure.query and len(figure.entries) <= 20 for figure in figures.values())
    assert all(one.label.zh and one.label.en and one.unit.zh and one.unit.en for one in MEASURES.values())
    assert {name for name in UNKNOWN if figures[name].value is not None} == set()


def test_the_question_names_the_period_of_the_day():
    """Whoever asks the log the same gets the same entries."""
    query = measure(of(read()), ["reads_of_log"])["reads_of_log"].query

    assert query == "kind=log.read outcome=done"


def test_incomplete_entries_lower_the_share():
    """Three of four."""
    bad = make_entry("log.read", recorded=NOON, operator=" ", tenant=None, outcome="done", details={"read": "entries"})
    evidence = of(read(), bad, read(), read())

    assert (value(evidence, "entries_incomplete"), value(evidence, "share_complete")) == (1, 0.75)


def test_a_log_that_is_not_whole_has_the_status_of_its_verdict():
    """0 whole, 4 where an entry is missing, 7 where records were lost; and 4 where an older entry has no proof."""
    log = NightLog.of(read(), read(), read())
    lines = log.lines()
    broken = log.evidence(lines=[*lines[:2], *lines[3:]])

    assert measure(broken, ["log_verdict"])["log_verdict"].value == 4
    assert measure(broken, ["gaps_unexplained"])["gaps_unexplained"] == Measured(
        1, "sluice audit verify --export log.jsonl --root ROOT: entries that are missing or stand in another place", (1,)
    )
    assert value(of(lost(3)), "log_verdict") == 7
    assert measure(of(read(), context=Context(unproven=[9])), ["log_verdict"])["log_verdict"].entries == (9,)
    assert value(of(read(), context=Context(unproven=[9])), "log_verdict") == 4


@pytest.mark.parametrize(("verdict", "status"), [("unchecked", 6), ("tampered", 4)])
def test_older_entries_without_an_accepted_checkpoint_are_no_proof_of_tampering(verdict: Verdict, status: int):
    """They have no proof since nothing could be checked, or since the checkpoint is wrong: the verifier said which."""
    evidence = of(read(), context=Context(unproven=[9]))
    integrity = replace(evidence.integrity, report=Report(verdict, ()))

    assert value(replace(evidence, integrity=integrity), "log_verdict") == status


def test_retention_is_held_against_six_months():
    """A class of fewer than 184 days that has something is one too many; ages are told in days."""
    classes = [
        RetentionClass("d183", 183, "2026-11-19T16:00:00.000000Z", 3, 7),
        RetentionClass("d100", 100, None, 0),
        RetentionClass("d365", 365, "2026-11-28T16:00:00.000000Z", 3, 8),
    ]
    evidence = of(read(), context=Context(retention=classes))

    assert measure(evidence, ["classes_below_six_months"])["classes_below_six_months"].entries == (7,)
    assert value(evidence, "classes_below_six_months") == 1
    assert value(evidence, "retention_days_least") == 183
    assert value(evidence, "oldest_body_days") == 10


def test_what_was_not_all_read_is_unknown_where_nothing_was_found():
    """Of requests, breaches, approvals and tenants of which there are more than a report reads."""
    cut = Context(cut=frozenset({"requests", "breaches", "approvals", "tenants"}))
    names = ["requests_open", "breaches_open", "approvals_in_force", "tenants_without_entries"]

    assert [figure.value for figure in measure(of(read(), context=cut), names).values()] == [None] * 4
    assert value(of(request("r"), context=cut), "requests_open") == 1


def test_what_was_not_kept_or_not_proven_is_unknown_where_nothing_was_found(monkeypatch: pytest.MonkeyPatch):
    """Waiting accesses of the day before, retention, and gaps and purges beyond those that are kept; what was found counts."""
    cut = Context(cut=frozenset({"unconfirmed", "retention"}), retention=[RetentionClass("d400", 400, None, 1)])
    names = ["obligations_unmet", "classes_below_six_months", "retention_days_least", "oldest_body_days"]

    assert [figure.value for figure in measure(of(read(), context=cut), names).values()] == [None] * 4
    assert value(of(unconfirmed(1), context=cut), "obligations_unmet") == 1
    monkeypatch.setattr(counts, "MOST_LISTED", 1)
    evidence = of(lost(0), lost(0), purge("d184-2020-01"), purge("d184-2020-02"))
    assert [value(evidence, name) for name in ("lost_records", "gaps_untold", "purges_early", "gaps")] == [None, None, None, 2]


def test_a_day_whose_bodies_went_has_no_zeros():
    """What they said is not known; what the log as such is like is, and what is left counts."""
    log = NightLog.of(*(read(NIGHT.begin + number * HOUR) for number in range(3)))
    lines = log.lines()
    gone = read_line(lines[1], 2)
    assert isinstance(gone, EntryLine)
    lines[1] = PurgedLine(gone.leaf, gone.leaf_hash).line()
    figures = measure(log.evidence(lines=lines))

    assert {name for name, figure in figures.items() if figure.value == 0} == {"anchors", "classes_below_six_months", "gaps_unexplained"}
    assert (figures["reads_of_log"].value, figures["log_verdict"].value) == (2, 7)


def test_a_request_of_an_older_day_can_be_overdue():
    """It counts until somebody answers it; the day on which that is counts it as answered."""
    older = {"requests": [as_logged(0, request("r", NOON - 40 * DAY, subject=ANNA))]}
    waiting, done = [of(read(NOON - 41 * DAY), *more, context=Context(older=older)) for more in ((), (answer("r"),))]

    assert [value(waiting, name) for name in ("requests_open", "requests_overdue", "requests_answered")] == [1, 1, 0]
    assert [value(done, name) for name in ("requests_open", "requests_overdue", "requests_answered")] == [0, 0, 1]


def test_an_idle_tenant_is_told():
    """It has a quota, and the day has no entry of it."""
    assert value(of(quota("acme"), context=Context(tenants=["acme", "idle"])), "tenants_without_entries") == 1


def test_an_unknown_figure_is_refused_with_those_that_are_spelled_like_it():
    """A clause that names none is a mistake in its file."""
    with pytest.raises(ConfigError, match="'entries_totl' is no measure") as refusal:
        named("entries_totl")
    assert "entries_total" in refusal.value.advice


def test_unconfirmed_accesses_of_the_day_before_count_until_they_are_confirmed():
    """The obligation is as unmet as one of today."""
    older = {"unconfirmed": [as_logged(0, unconfirmed(1, NIGHT.begin - HOUR))]}
    evidence = of(read(NIGHT.begin - HOUR), read(), context=Context(older=older))

    assert value(evidence, "obligations_unmet") == 1
    assert value(replace(evidence, unmet=()), "obligations_unmet") == 0
