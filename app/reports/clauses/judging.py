"""The verdict on a clause by what was measured. Pure.

Never better than what was measured: an unknown figure is for a person to judge, unless all that it could be leads to the same
verdict, and that verdict is none to be glad of. Of a clause whose text nobody has confirmed, and by a log that was tampered with or
could not be checked, software says not met or nothing. A log that lacks records shows nothing met, though still what is partly so.
"""

import math
from collections.abc import Iterable, Mapping

from app.audit.verification.report import EXIT_CODES
from app.reports.clauses.clause import PLACE, VERDICTS, Case, Clause, Judged, Measured, Verdict
from app.reports.clauses.measures import MEASURES
from app.reports.document import Words

NOT_TAKEN = Measured(None, "")
LOG = "log_verdict"
"""All other figures are counted in the log: where it is not whole, that there was nothing wrong in it shows nothing."""

_UNKNOWN = Words("软件无法得知：{names}", "not known to the software: {names}")
_NOT_BY_SOFTWARE = Words("软件无法判断，须由人评估。", "Software cannot judge this; a person must.")
_BY_RULE = Words("已查各项均未触发不利判定。", "No case against it applies.")
_LOG_NOT_WHOLE = Words(
    "日志未通过校验或缺少记录，其数字不能证明符合。", "The log did not verify, or lacks records: its figures cannot show that this is met."
)
_TO_CHECK = Words("条款内容待核实，须由人评估。", "The text of the clause is yet to be checked; a person must judge.")
_WANTS_KNOWLEDGE: frozenset[Verdict] = frozenset({"met", "not_applicable"})
_ALWAYS_SAID: frozenset[Verdict] = frozenset({"not_met", "manual"})
_WHOLE, _GAP = EXIT_CODES["whole"], EXIT_CODES["gap"]


def judge(clause: Clause, measures: Mapping[str, Measured]) -> Judged:
    """`clause` judged by `measures`; a measure that is missing, None or not a number is unknown."""
    taken = {name: _known(measures.get(name, NOT_TAKEN)) for name in _names(clause)}
    doubted, decided = _walk(clause, taken)
    verdict = decided.verdict if decided else clause.otherwise
    unknown = [name for name, measured in taken.items() if measured.value is None]
    if verdict not in _ALWAYS_SAID and not clause.confirmed:
        return Judged(clause, "manual", _TO_CHECK, taken)
    if not _log_allows(verdict, measures):
        return Judged(clause, "manual", _LOG_NOT_WHOLE, taken)
    if any(case.verdict != verdict for case in doubted) or (verdict in _WANTS_KNOWLEDGE and unknown):
        return Judged(clause, "manual", _because_unknown(unknown), taken)
    return Judged(clause, verdict, _because(verdict, decided, taken), taken)


def judge_all(clauses: Iterable[Clause], measures: Mapping[str, Measured]) -> tuple[Judged, ...]:
    """Each of them, in their order."""
    return tuple(judge(clause, measures) for clause in clauses)


def tally(judged: Iterable[Judged]) -> dict[str, int]:
    """How many there are of each verdict, those with none of it, too."""
    counts: dict[str, int] = dict.fromkeys(VERDICTS, 0)
    for each in judged:
        counts[each.verdict] += 1
    return counts


def number_text(value: float) -> str:
    """A figure as reports print it: whole numbers without a point, others cut, not rounded, to four places: 0.99999 is not yet 1."""
    if value == int(value):
        return str(int(value))
    return f"{math.trunc(value * 10_000) / 10_000:.4f}".rstrip("0").rstrip(".")


def _log_allows(verdict: Verdict, measures: Mapping[str, Measured]) -> bool:
    """Whether figures of this log can lead to the verdict."""
    if verdict in _ALWAYS_SAID or LOG not in measures:
        return True
    status = measures[LOG].value
    return status == _WHOLE or (status == _GAP and verdict not in _WANTS_KNOWLEDGE)


def _names(clause: Clause) -> Iterable[str]:
    """Of all its measures, each once: evidence first, as it is printed."""
    return dict.fromkeys((*clause.evidence, *(case.measure for case in clause.cases)))


def _known(measured: Measured) -> Measured:
    if measured.value is not None and not math.isfinite(measured.value):
        return Measured(None, measured.query, measured.entries)
    return measured


def _walk(clause: Clause, taken: Mapping[str, Measured]) -> tuple[list[Case], Case | None]:
    """The cases before the deciding one of which nobody knows whether they hold, and the first that holds."""
    doubted = []
    for case in clause.cases:
        value = taken[case.measure].value
        if value is None:
            doubted.append(case)
        elif _holds(case, value):
            return doubted, case
    return doubted, None


def _holds(case: Case, value: float) -> bool:
    return (
        (case.above is None or value > case.above)
        and (case.below is None or value < case.below)
        and (case.equals is None or value == case.equals)
    )


def _because_unknown(names: list[str]) -> Words:
    labels = [MEASURES[name].label if name in MEASURES else Words(name, name) for name in names]
    zh, en = "、".join(label.zh for label in labels), ", ".join(label.en for label in labels)
    return Words(_UNKNOWN.zh.replace("{names}", zh), _UNKNOWN.en.replace("{names}", en))


def _because(verdict: Verdict, decided: Case | None, taken: Mapping[str, Measured]) -> Words:
    if decided is None:
        return _NOT_BY_SOFTWARE if verdict == "manual" else _BY_RULE
    value = taken[decided.measure].value
    shown = "" if value is None else number_text(value)
    said = decided.because or Words(f"{decided.measure} = {PLACE}", f"{decided.measure} = {PLACE}")
    return Words(said.zh.replace(PLACE, shown), said.en.replace(PLACE, shown))
