"""The clauses that come with Sluice: what goes wrong shows in a verdict, and makes none better."""

import pytest

from app.reports.clauses.clause import Judged, Measured
from app.reports.clauses.judging import judge_all
from app.reports.clauses.loading import load_clauses
from app.reports.clauses.measures import MEASURES

GOOD = dict.fromkeys(MEASURES, 0.0) | {"entries_total": 90.0, "accesses_sensitive": 3.0, "share_complete": 1.0, "anchors": 1.0}
"""A night of which everything is known, also what nobody can know, and nothing is wrong."""
NO_ACCESS = GOOD | {"accesses_sensitive": 0.0}
BETTER = {"met", "not_applicable"}
ALWAYS = {"gdpr-12-3", "gdpr-33-1"}
"""Answers to people and notifications in time: no access bears on them."""
OF_THE_LOG = {"mlps-8.1.4.3-a", "mlps-8.1.4.3-b", "mlps-8.1.4.3-c", "mlps-8.1.5.4-d", "csl-retention"}
"""Audited, kept whole and long enough, whatever it was that was done."""


def verdicts(figures: dict[str, float]) -> dict[str, Judged]:
    clauses = load_clauses(MEASURES)
    measures = {name: Measured(value, "") for name, value in figures.items()}
    return {each.clause.id: each for each in judge_all([*clauses.mlps, *clauses.gdpr], measures)}


def better(figures: dict[str, float]) -> set[str]:
    return {name for name, each in verdicts(figures).items() if each.verdict in BETTER}


def test_night_without_fault_meets_what_software_can_judge() -> None:
    """The list that the next test takes away from is not empty: these are met where nothing is wrong."""
    assert better(GOOD) == better(NO_ACCESS) == ALWAYS | OF_THE_LOG | {"mlps-8.1.4.11-b"}


@pytest.mark.parametrize("night", [GOOD, NO_ACCESS], ids=["accesses", "no-access"])
@pytest.mark.parametrize(
    ("wrong", "left"),
    [
        ({"tenants_uncovered": 1.0}, ALWAYS | {"mlps-8.1.4.3-b", "mlps-8.1.4.3-c"}),
        ({"accesses_without_approval": 1.0}, ALWAYS | OF_THE_LOG),
        ({"obligations_unmet": 1.0}, ALWAYS | OF_THE_LOG),
        ({"lost_records": 1.0, "gaps": 1.0, "log_verdict": 7.0}, set[str]()),
        ({"entries_late": 1.0}, ALWAYS | OF_THE_LOG - {"mlps-8.1.4.3-a"} | {"mlps-8.1.4.11-b"}),
        ({"log_verdict": 4.0}, set[str]()),
        ({"log_verdict": 6.0}, set[str]()),
    ],
    ids=["uncovered", "unapproved", "unmet", "lost", "late", "tampered", "unchecked"],
)
def test_what_is_wrong_makes_no_clause_better(night: dict[str, float], wrong: dict[str, float], left: set[str]) -> None:
    """Of all clauses only those that what is wrong does not bear on stay met, and none is not applicable for it."""
    assert better(night | wrong) == left


@pytest.mark.parametrize("name", ["mlps-8.1.4.11-b", "pipl-51", "gdpr-32"])
def test_access_that_the_log_lacks_is_an_access(name: str) -> None:
    """Where decisions gave access and the log has none, nobody says that nobody asked for a sensitive model."""
    assert verdicts(NO_ACCESS | {"tenants_uncovered": 1.0})[name].verdict == "not_met"


@pytest.mark.parametrize("status", [4.0, 6.0])
@pytest.mark.parametrize("wrong", ["obligations_unmet", "lost_records", "malformed", "tenants_uncovered"])
def test_log_that_did_not_verify_shows_nothing_partly_met(status: float, wrong: str) -> None:
    """Of a log that was tampered with or not checked each clause is not met or for a person."""
    assert {each.verdict for each in verdicts(GOOD | {wrong: 1.0, "log_verdict": status}).values()} <= {"not_met", "manual"}


@pytest.mark.parametrize("name", ["mlps-8.1.4.3-a", "mlps-8.1.4.3-d"])
def test_late_entries_are_for_a_person(name: str) -> None:
    """What came too late for its day is in no other figure: a person looks, and is told why."""
    late = verdicts(GOOD | {"entries_late": 2.0, "lost_records": 1.0})[name]
    assert (late.verdict, late.because.en) == ("manual", "entries of earlier days that came too late for the reports of their day: 2")
