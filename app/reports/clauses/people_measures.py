"""Figures about people: what they asked for, breaches of their data, what is kept of them. Pure."""

from collections.abc import Callable, Mapping, Sequence

from app.instants import rfc3339
from app.reports.clauses.clause import Measured
from app.reports.clauses.measuring import ITEMS, TIMES, Measure, Take, counted, first
from app.reports.document import Words
from app.reports.evidence.facts import Breach, Evidence, Group, SubjectRequest

_REGISTER = "kind=subject.request with its subject.access, subject.erasure or subject.answer until the end of the day"
_BREACHES = "kind=breach.known with its breach.notified until the end of the day"


def _requests(is_one: Callable[[SubjectRequest, Evidence], bool], query: str) -> Take:
    def take(evidence: Evidence) -> Measured:
        found = [request for request in evidence.requests if is_one(request, evidence)]
        return _of(evidence, "requests", len(found), f"{_REGISTER}: {query}", [request.entries for request in found])

    return take


def _breaches(is_one: Callable[[Breach, Evidence], bool], query: str) -> Take:
    def take(evidence: Evidence) -> Measured:
        found = [breach for breach in evidence.breaches if is_one(breach, evidence)]
        return _of(evidence, "breaches", len(found), f"{_BREACHES}: {query}", [breach.entries for breach in found])

    return take


def _of(evidence: Evidence, group: Group, count: int, query: str, entries: Sequence[Sequence[int]]) -> Measured:
    """The figure; unknown where none was found and not all that is older was read."""
    shown = first(seq for each in entries for seq in each)
    return Measured(None if group in evidence.cut and not count else count, query, shown)


def _over(due: str, evidence: Evidence) -> bool:
    return due <= rfc3339(evidence.night.end)


def _that_day(at: str | None, evidence: Evidence) -> bool:
    return at is not None and evidence.night.spans(at)


def _sealed(evidence: Evidence) -> Measured:
    listed = ", ".join(f"{name} {count}" for name, count in evidence.sealed.items()) or "none"
    return Measured(sum(evidence.sealed.values()), f"members under `sealed` of the day's entries: {listed}")


def _consulted(evidence: Evidence) -> Measured:
    subjects = {(row.tenant, row.subject) for row in evidence.consultations if row.subject}
    known = evidence.more_consultations == 0
    return Measured(len(subjects) if known else None, "different `subject` of kind=sensitive.access of the day")


def _is_overdue(breach: Breach, evidence: Evidence) -> bool:
    told = breach.notified.get("authority")
    return _over(breach.due, evidence) if told is None else told > breach.due and _that_day(told, evidence)


MEASURES: Mapping[str, Measure] = {
    "personal_fields_sealed": Measure(Words("加密保存的个人文字", "texts about people, encrypted"), ITEMS, _sealed),
    "people_consulted": Measure(Words("涉及的个人", "people whose accesses are recorded"), ITEMS, _consulted),
    "requests_open": Measure(
        Words("待答复的请求", "requests open"), ITEMS, _requests(lambda one, _: one.status == "open", "without an answer")
    ),
    "requests_overdue": Measure(
        Words("逾期的请求", "requests overdue"),
        ITEMS,
        _requests(lambda one, evidence: one.status == "open" and _over(one.due, evidence), "without an answer that was due"),
    ),
    "requests_answered": Measure(
        Words("已答复的请求", "requests answered"),
        ITEMS,
        _requests(lambda one, evidence: one.status == "done" and _that_day(one.answered, evidence), "answered on the day"),
    ),
    "requests_refused": Measure(
        Words("已拒绝的请求", "requests refused"),
        ITEMS,
        _requests(lambda one, evidence: one.status == "refused" and _that_day(one.answered, evidence), "refused on the day"),
    ),
    "erasures": Measure(Words("删除", "erasures"), TIMES, counted("subject.erasure", outcomes=("done",))),
    "erasures_refused": Measure(Words("被拒的删除", "erasures refused"), TIMES, counted("subject.erasure", outcomes=("refused",))),
    "breaches_open": Measure(
        Words("待通知的泄露", "breaches to be notified"),
        ITEMS,
        _breaches(lambda one, _: "authority" not in one.notified, "the authority not told"),
    ),
    "breaches_overdue": Measure(
        Words("逾期未通知的泄露", "breaches not notified in time"),
        ITEMS,
        _breaches(_is_overdue, "the authority not told within 72 hours, or told on the day and later than that"),
    ),
}
