"""The chapters on decisions and on what the audit covers. Pure."""

from collections import Counter
from collections.abc import Sequence

from app.instants import rfc3339
from app.reports.content.parts import Chapter, Operators, Section, named, shown, table_section
from app.reports.content.wording import sections as wording
from app.reports.content.wording import terms
from app.reports.document import Chart, Column, Paragraph, Series, Text
from app.reports.evidence.facts import Evidence
from app.reports.nights.hours import HourOf

OUTCOMES = ("allow", "deny", "quota", "shed", "error")
"""Of decisions, in the order of the chart: what is allowed lies at its foot."""

_NUMBER = (Column(terms.COUNT, 1.2, "right"), Column(terms.FIRST, 1.2, "right"))
BY_MODEL = (
    Column(terms.TENANT, 3),
    Column(terms.MODEL, 3),
    Column(wording.ALLOWED, 1.2, "right"),
    *(Column(terms.OUTCOMES[outcome], 1.2, "right") for outcome in OUTCOMES[1:]),
)
USERS = (Column(wording.USER, 4), *_NUMBER)
TENANTS = (Column(terms.TENANT, 4), *_NUMBER, Column(wording.DECISIONS, 1.5, "right"))
EVENTS = (
    Column(terms.KIND, 4),
    Column(terms.OUTCOME, 2),
    Column(terms.COUNT, 1.2, "right"),
    Column(wording.COMPLETE, 1.2, "right"),
    Column(terms.FIRST, 1.2, "right"),
    Column(terms.LAST, 1.2, "right"),
)


def decisions(evidence: Evidence) -> Chapter:
    """How many there were of each outcome in each hour, and of each tenant and model."""
    return Chapter(wording.DECISIONS, [_by_hour(evidence), _by_model(evidence)])


def coverage(evidence: Evidence, operators: Operators) -> Chapter:
    """Of which users, tenants and kinds of events the log tells."""
    users = [(operators.shown(each.name), str(each.entries), shown(each.first)) for each in evidence.operators]
    tenants = [(each.name, str(each.entries), shown(each.first), str(each.decisions)) for each in evidence.tenants]
    return Chapter(
        wording.COVERAGE,
        [
            table_section(wording.USERS, USERS, users, wording.NO_USERS),
            table_section(wording.TENANTS, TENANTS, tenants, wording.NO_TENANTS),
            table_section(wording.EVENTS, EVENTS, _events(evidence), wording.NO_EVENTS),
        ],
    )


def _by_hour(evidence: Evidence) -> Section:
    hours = HourOf(evidence.night)
    counts: Counter[tuple[str, int]] = Counter()
    for count in evidence.decisions:
        counts[count.outcome, hours.index(rfc3339(count.hour))] += count.count
    places = range(len(hours.hours))
    series = [Series(terms.OUTCOMES[outcome], [float(counts[outcome, place]) for place in places]) for outcome in OUTCOMES]
    chart = Chart(wording.HOW_MANY, [hour.name for hour in hours.hours], series)
    return Section(wording.BY_HOUR, [chart] if evidence.decisions else [Paragraph(wording.NO_DECISIONS), chart])


def _by_model(evidence: Evidence) -> Section:
    counts: dict[tuple[str, str], Counter[str]] = {}
    for count in evidence.decisions:
        counts.setdefault((count.tenant or "", count.model or ""), Counter())[count.outcome] += count.count
    rows: list[Sequence[Text]] = [
        (tenant or wording.ALL_UNKNOWN, model or wording.ALL_UNKNOWN, *(str(counts[tenant, model][outcome]) for outcome in OUTCOMES))
        for tenant, model in sorted(counts)
    ]
    return table_section(wording.BY_MODEL, BY_MODEL, rows, wording.NO_DECISIONS)


def _events(evidence: Evidence) -> list[Sequence[Text]]:
    return [
        (
            named(terms.KINDS, each.kind),
            named(terms.OUTCOMES, each.outcome),
            str(each.count),
            str(each.complete),
            str(each.first),
            str(each.last),
        )
        for each in evidence.kinds
    ]
