"""The chapter of verdicts: one row for each clause. Pure."""

from collections.abc import Sequence

from app.reports.clauses.clause import VERDICTS, Clause, Judged, Measured
from app.reports.clauses.judging import number_text, tally
from app.reports.clauses.measures import MEASURES
from app.reports.content.parts import Chapter, Section, joined, numbers, table_section
from app.reports.content.wording import clauses as wording
from app.reports.document import Column, Paragraph, Table, Text, both

SUMMARY = (Column(wording.VERDICT, 3), Column(wording.CLAUSE, 1, "right"))
EACH = (
    Column(wording.CLAUSE, 1.6),
    Column(wording.REQUIREMENT, 2.4),
    Column(wording.EVIDENCE, 3.4),
    Column(wording.VERDICT, 0.9, strong=True),
    Column(wording.REMARK, 2.3),
)


def verdicts(judged: Sequence[Judged]) -> Chapter:
    """All clauses with what was measured and what follows from it."""
    counts = tally(judged)
    summary = Table(SUMMARY, [(both(VERDICTS[verdict]), str(counts[verdict])) for verdict in VERDICTS])
    each = table_section(wording.EACH, EACH, [_row(one) for one in judged], wording.NONE)
    return Chapter(
        wording.TITLE, [Section(wording.SUMMARY, [summary]), each], [Paragraph(wording.SCOPE), Paragraph(wording.QUERIES, "note")]
    )


def _row(one: Judged) -> list[Text]:
    clause = one.clause
    measures = [f"{place}. {_measure(name, one.measures[name])}" for place, name in enumerate(clause.evidence, 1)]
    return [
        _name(clause),
        clause.requirement,
        "\n".join(measures) or wording.NO_MEASURE,
        VERDICTS[one.verdict],
        joined([one.because, clause.remark], "\n") if clause.remark else one.because,
    ]


def _name(clause: Clause) -> str:
    """Both languages once: much of it is the same in both."""
    check = [] if clause.confirmed else [both(wording.TO_CHECK)]
    standard = [] if clause.source.startswith(clause.standard) else [clause.standard]
    return "\n".join([*standard, clause.number, clause.title.zh, clause.title.en, *check, f"[{clause.source}]"])


def _measure(name: str, measured: Measured) -> str:
    """A figure, what was counted for it, and the entries that show it."""
    label = both(MEASURES[name].label) if name in MEASURES else name
    value = both(wording.UNKNOWN) if measured.value is None else number_text(measured.value)
    lines = [f"{label}: {value}", *([measured.query] if measured.query else [])]
    if measured.entries:
        lines.append(f"{both(wording.ENTRIES)} {numbers(measured.entries)}")
    return "\n".join(lines)
