"""The chapter of verdicts: one row for each clause. Pure."""

from collections.abc import Sequence

from app.reports.clauses.clause import VERDICTS, Clause, Judged, Measured
from app.reports.clauses.judging import number_text, tally
from app.reports.clauses.measures import MEASURES
from app.reports.content.parts import Chapter, Section, joined, numbers, table_section
from app.reports.content.wording import clauses as wording
from app.reports.document import Column, Paragraph, Table, Text, Words

SUMMARY = (Column(wording.VERDICT, 3), Column(wording.CLAUSE, 1, "right"))
EACH = (
    Column(wording.CLAUSE, 1.5),
    Column(wording.REQUIREMENT, 2.6),
    Column(wording.EVIDENCE, 3.1),
    Column(wording.VERDICT, 0.9, strong=True),
    Column(wording.REMARK, 2.4),
)


def verdicts(judged: Sequence[Judged]) -> Chapter:
    """All clauses with what was measured and what follows from it."""
    counts = tally(judged)
    summary = Table(SUMMARY, [(VERDICTS[verdict], str(counts[verdict])) for verdict in VERDICTS])
    each = table_section(wording.EACH, EACH, [_row(one) for one in judged], wording.NONE)
    return Chapter(wording.TITLE, [Section(wording.SUMMARY, [summary]), each], [Paragraph(wording.SCOPE)])


def _row(one: Judged) -> list[Text]:
    clause = one.clause
    remarks: list[Text] = [one.because, *([clause.remark] if clause.remark else []), clause.source]
    measures = [_measure(name, one.measures[name]) for name in clause.evidence if name in one.measures]
    return [
        _name(clause),
        clause.requirement,
        joined(measures, "\n") if measures else wording.NO_MEASURE,
        VERDICTS[one.verdict],
        joined(remarks, "\n"),
    ]


def _name(clause: Clause) -> Text:
    parts: list[Text] = [clause.standard, clause.number, clause.title]
    return joined(parts if clause.confirmed else [*parts, wording.TO_CHECK], "\n")


def _measure(name: str, measured: Measured) -> Words:
    """A figure, what was counted for it, and the entries that show it: in each language."""
    value: Text = wording.UNKNOWN if measured.value is None else number_text(measured.value)
    shown = joined(
        [joined([MEASURES[name].label if name in MEASURES else name, value], ": "), *([measured.query] if measured.query else [])], "; "
    )
    if measured.entries:
        shown = joined([shown, joined([wording.ENTRIES, numbers(measured.entries)], " ")], "; ")
    return shown if isinstance(shown, Words) else Words(shown, shown)
