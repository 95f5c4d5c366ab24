"""Verdicts: never better than what was measured, and the unknown is never met."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reports.clauses.clause import VERDICTS, Case, Clause, Measured, Verdict
from app.reports.clauses.judging import judge, judge_all, number_text, tally
from app.reports.document import Words

TEXT = Words("字", "text")
RANK: dict[Verdict, int] = {"not_met": 0, "partly": 1, "manual": 2, "not_applicable": 3, "met": 4}


def clause(*cases: Case, otherwise: Verdict = "met", confirmed: bool = True, evidence: tuple[str, ...] = ()) -> Clause:
    return Clause("c", "S", "1", TEXT, TEXT, "S, 1", confirmed, evidence, cases, otherwise)


def measures(**values: float | None) -> dict[str, Measured]:
    return {name: Measured(value, "") for name, value in values.items()}


BACKUP = clause(
    Case("not_met", "verdict", equals=4),
    Case("manual", "verdict", equals=6),
    Case("not_met", "backup", above=24),
    Case("partly", "anchors", below=1),
)


@pytest.mark.parametrize(
    ("verdict", "backup", "anchors", "expected"),
    [
        (0, 3, 1, "met"),
        (0, 24, 1, "met"),
        (0, 24.5, 1, "not_met"),
        (0, 3, 0, "partly"),
        (4, None, None, "not_met"),
        (6, 30, 0, "manual"),
        (0, None, 1, "manual"),
        (0, None, 0, "manual"),
        (None, 30, 1, "manual"),
        (0, 30, None, "not_met"),
    ],
)
def test_first_case_that_holds_decides(verdict: float | None, backup: float | None, anchors: float | None, expected: str) -> None:
    """The first case that holds decides; an unknown figure before it leaves the verdict to a person, unless all it could be is the same."""
    assert judge(BACKUP, measures(verdict=verdict, backup=backup, anchors=anchors)).verdict == expected


def test_unknown_that_could_only_be_as_bad_changes_nothing() -> None:
    """Where an unknown figure and the deciding case both mean not met, the clause is not met."""
    both = clause(Case("not_met", "a", above=0), Case("not_met", "b", above=0))
    assert judge(both, measures(a=None, b=1)).verdict == "not_met"


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_what_is_no_number_is_unknown(value: float | None) -> None:
    """None, NaN and infinity never make a clause met, and the reason names what is unknown in both languages."""
    judged = judge(clause(Case("not_met", "entries_total", above=5)), measures(entries_total=value))
    assert judged.verdict == "manual"
    assert judged.because == Words("软件无法得知：当日条目数", "not known to the software: entries of the day")
    assert judged.measures["entries_total"].value is None


def test_measure_that_nobody_took_is_unknown() -> None:
    """A figure that is missing counts as unknown, also one that is only printed as evidence."""
    assert judge(clause(Case("not_met", "a", above=5), evidence=("b",)), measures(a=0)).verdict == "manual"


@pytest.mark.parametrize("verdict", ["met", "partly", "not_applicable"])
def test_unconfirmed_clause_is_not_met_or_for_a_person(verdict: Verdict) -> None:
    """Whoever has not checked a clause's text cannot say that some of it is met; that it is not met can still be said."""
    unchecked = clause(Case("not_met", "a", above=0), otherwise=verdict, confirmed=False)
    assert judge(unchecked, measures(a=0)).verdict == "manual"
    assert judge(unchecked, measures(a=1)).verdict == "not_met"


@pytest.mark.parametrize(("status", "verdict"), [(0, "partly"), (7, "partly"), (4, "manual"), (6, "manual"), (None, "manual")])
def test_partly_needs_a_log_that_verified(status: float | None, verdict: str) -> None:
    """A log that lacks records can still show what is partly so; one that was altered or not checked cannot."""
    some = clause(Case("partly", "a", above=0))
    assert judge(some, measures(a=1, log_verdict=status)).verdict == verdict


@pytest.mark.parametrize("status", [4, 6, 7, None])
def test_log_that_is_not_whole_shows_nothing_met(status: float | None) -> None:
    """Figures of a tampered, unchecked or incomplete log make no clause met, though they can make it worse."""
    fine = clause(Case("not_met", "a", above=0), Case("not_applicable", "a", below=0))
    assert judge(fine, measures(a=0, log_verdict=0)).verdict == "met"
    assert judge(fine, measures(a=0, log_verdict=status)).verdict == "manual"
    assert judge(fine, measures(a=-1, log_verdict=status)).verdict == "manual"
    assert judge(fine, measures(a=1, log_verdict=status)).verdict == "not_met"
    assert "log did not verify" in judge(fine, measures(a=0, log_verdict=status)).because.en


def test_reason_has_the_figure() -> None:
    """`{measure}` in a reason is the value that decided; without a reason the measure is named."""
    said = clause(Case("not_met", "a", above=0, because=Words("有 {measure} 条", "{measure} of them")))
    assert judge(said, measures(a=7)).because == Words("有 7 条", "7 of them")
    assert judge(clause(Case("not_met", "a", above=0)), measures(a=7)).because == Words("a = 7", "a = 7")


values = st.none() | st.floats() | st.integers(-3, 3).map(float)
cases = st.builds(
    Case,
    st.sampled_from(list(VERDICTS)),
    st.sampled_from("abc"),
    above=st.none() | st.integers(-2, 2).map(float),
    equals=st.integers(-2, 2).map(float),
)


@given(
    st.lists(cases, max_size=5),
    st.sampled_from(list(VERDICTS)),
    st.tuples(values, values, values),
    st.booleans(),
    st.sampled_from([0, 4, 6, 7, None]),
)
def test_never_better_than_measured(
    found: list[Case], otherwise: Verdict, figures: tuple[float | None, ...], confirmed: bool, status: float | None
) -> None:
    """For any clause, figures and log: met and not applicable need all of them known, whole and confirmed, partly a log that verified."""
    judged_clause = clause(*found, otherwise=otherwise, confirmed=confirmed, evidence=("a",))
    taken = dict(zip("abc", figures, strict=True))
    judged = judge(judged_clause, measures(**taken, log_verdict=status))
    named = {"a", *(case.measure for case in found)}
    unknown = [name for name in named if taken[name] is None or not math.isfinite(taken[name])]  # type: ignore[arg-type]
    if unknown:
        assert judged.verdict not in {"met", "not_applicable"}
    if not confirmed or status in {4, 6, None}:
        assert judged.verdict in {"not_met", "manual"}
    if status == 7:
        assert judged.verdict not in {"met", "not_applicable"}
    possible = {case.verdict for case in found} | {otherwise, "manual"}
    assert judged.verdict in possible
    if not unknown and confirmed and status == 0:
        first = next((case for case in found if _holds(case, taken[case.measure])), None)
        assert judged.verdict == (first.verdict if first else otherwise)


@given(
    st.lists(cases, max_size=5),
    st.sampled_from(list(VERDICTS)),
    st.tuples(values, values, values),
    st.sampled_from(["a", "b", "c", "log_verdict"]),
)
def test_knowing_less_is_never_better(found: list[Case], otherwise: Verdict, figures: tuple[float | None, ...], lost: str) -> None:
    """Forgetting a figure, or whether the log is whole, leaves the verdict or makes it one for a person."""
    taken: dict[str, float | None] = dict(zip("abc", figures, strict=True)) | {"log_verdict": 0.0}
    before = judge(clause(*found, otherwise=otherwise), measures(**taken)).verdict
    after = judge(clause(*found, otherwise=otherwise), measures(**(taken | {lost: None}))).verdict
    assert after in {before, "manual"}


def _holds(case: Case, value: float | None) -> bool:
    assert value is not None
    return (case.above is None or value > case.above) and value == case.equals


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (3.0, "3"), (0.99999, "0.9999"), (25.83333, "25.8333"), (0.5, "0.5"), (1e15, "1000000000000000")]
)
def test_figures_are_cut_and_not_rounded(value: float, text: str) -> None:
    """A share that is not yet 1 never prints as 1."""
    assert number_text(value) == text


def test_tally_has_every_verdict() -> None:
    """All verdicts are counted, those that do not occur as 0."""
    judged = judge_all([clause(Case("not_met", "a", above=0)), clause(otherwise="manual")], measures(a=1))
    assert tally(judged) == {"met": 0, "partly": 0, "not_met": 1, "not_applicable": 0, "manual": 1}
