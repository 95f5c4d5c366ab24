"""The chapters on what people changed and read: quotas, and the log. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.reports.content.parts import Chapter, Operators, named, shown, stacked, table_section, together
from app.reports.content.wording import sections as wording
from app.reports.content.wording import terms
from app.reports.document import Column, Text
from app.reports.evidence.facts import Evidence, Logged

QUOTA_KINDS = ("quota.proposed", "quota.approved", "quota.refused", "quota.in_force", "quota.rolled_back", "quota.deleted")
QUOTAS = (
    Column(terms.ENTRY, 1, "right", mono=True),
    Column(terms.TIME, 1.4),
    Column(terms.KIND, 1.3),
    Column(terms.OPERATOR, 1.6),
    Column(terms.TENANT, 1.6),
    Column(wording.VERSION, 0.9, "right"),
    Column(wording.CHANGE, 4),
)
READS = (
    Column(terms.ENTRY, 1, "right", mono=True),
    Column(terms.TIME, 1.4),
    Column(terms.OPERATOR, 1.8),
    Column(wording.READ, 1.6),
    Column(terms.OUTCOME, 1.3),
    Column(terms.COUNT, 1, "right"),
    Column(wording.QUERY, 3.5),
)


def quotas(evidence: Evidence, operators: Operators) -> Chapter:
    """Each change of a quota with what was before and after."""
    listed = together(evidence, *QUOTA_KINDS)
    rows: list[Sequence[Text]] = [
        (
            str(entry.seq),
            stacked(entry.recorded),
            named(terms.KINDS, entry.kind),
            operators.shown(entry.body.get("operator")),
            shown(entry.body.get("tenant")),
            shown(entry.body.get("quota_version")),
            difference(entry.body.get("diff")),
        )
        for entry in listed.entries
    ]
    return Chapter(wording.QUOTAS, [table_section(wording.QUOTAS, QUOTAS, rows, wording.NO_QUOTAS, listed.total)])


def reads(evidence: Evidence, operators: Operators) -> Chapter:
    """Who read of the log what, and who was refused."""
    listed = evidence.of("log.read")
    rows: list[Sequence[Text]] = [
        (
            str(entry.seq),
            stacked(entry.recorded),
            operators.shown(entry.body.get("operator")),
            _what(entry),
            named(terms.OUTCOMES, entry.outcome),
            shown(entry.body.get("count")),
            shown(entry.body.get("query")),
        )
        for entry in listed.entries
    ]
    return Chapter(wording.READS, [table_section(wording.READS, READS, rows, wording.NO_READS, listed.total)])


def difference(diff: Any) -> str:
    """What changed, a line for each path; a list that has another form as it is."""
    if not isinstance(diff, list) or not all(isinstance(change, Mapping) for change in diff):
        return shown(diff)
    return "\n".join(f"{shown(each.get('path'))}: {shown(each.get('before'))}{terms.ARROW}{shown(each.get('after'))}" for each in diff)


def _what(entry: Logged) -> str:
    """The log, an entry of it, or a report by its id."""
    read, report = shown(entry.body.get("read")), entry.body.get("report")
    return read if report is None else f"{read} {shown(report)}"
