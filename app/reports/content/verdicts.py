"""The chapter of verdicts: one row for each clause, and one for each figure that is evidence, which says how it was counted. Pure."""

from collections.abc import Mapping, Sequence

from app.reports.clauses.clause import VERDICTS, Clause, Judged, Measured
from app.reports.clauses.judging import number_text, tally
from app.reports.clauses.measures import MEASURES
from app.reports.content.parts import Chapter, Section, joined, numbers, table_section
from app.reports.content.wording import clauses as wording
from app.reports.document import Column, Paragraph, Table, Text, both

SUMMARY = (Column(wording.VERDICT, 3), Column(wording.CLAUSE, 1, "right"))
EACH = (
    Column(wording.CLAUSE, 1.8),
    Column(wording.REQUIREMENT, 2.4),
    Column(wording.EVIDENCE, 2.8),
    Column(wording.VERDICT, 1.2, strong=True),
    Column(wording.REMARK, 2.4),
)
FIGURES = (
    Column(wording.NUMBER, 0.7, "right"),
    Column(wording.FIGURE, 4.4),
    Column(wording.VALUE, 1, "right"),
    Column(wording.QUERY, 4.4),
)


def verdicts(judged: Sequence[Judged]) -> Chapter:
    """All clauses with what was measured and what follows from it. A figure is counted in one way, however many clauses it is evidence for."""
    counts = tally(judged)
    summary = Table(SUMMARY, [(both(VERDICTS[verdict]), str(counts[verdict])) for verdict in VERDICTS])
    taken = {name: one.measures[name] for one in judged for name in one.clause.evidence}
    places = {name: place for place, name in enumerate(taken, 1)}
    figures = [_figure(places[name], name, measured) for name, measured in taken.items()]
    sections = [
        Section(wording.SUMMARY, [summary]),
        table_section(wording.EACH, EACH, [_row(one, places) for one in judged], wording.NONE),
        Section(wording.FIGURES, [Table(FIGURES, figures) if figures else Paragraph(wording.NO_FIGURES)]),
    ]
    return Chapter(wording.TITLE, sections, [Paragraph(wording.SCOPE), Paragraph(wording.QUERIES, "note")])


def _row(one: Judged, places: Mapping[str, int]) -> list[Text]:
    clause = one.clause
    measures = [f"[{places[name]}] {_measure(name, one.measures[name])}" for name in clause.evidence]
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
    """A figure and the entries that show it."""
    value = both(wording.UNKNOWN) if measured.value is None else number_text(measured.value)
    shown = [f"{both(wording.ENTRIES)} {numbers(measured.entries)}"] if measured.entries else []
    return "\n".join([f"{_label(name)}: {value}", *shown])


def _figure(place: int, name: str, measured: Measured) -> list[Text]:
    """A figure, and what was counted for it."""
    value = wording.UNKNOWN if measured.value is None else number_text(measured.value)
    return [str(place), f"{_label(name)} ({name})", value, measured.query]


def _label(name: str) -> str:
    return both(MEASURES[name].label) if name in MEASURES else name
