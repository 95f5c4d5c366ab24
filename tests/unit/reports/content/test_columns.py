"""Columns are wide enough for the words that stand in them: none is cut in the middle."""

from collections.abc import Iterator, Mapping
from importlib import import_module

import pytest

from app.reports.clauses.clause import VERDICTS
from app.reports.content.parts import short_id
from app.reports.content.wording import clauses, gdpr, integrity, sections, terms
from app.reports.document import Column, Table, Text, Words, both
from app.reports.layout.font import Font
from app.reports.layout.style import HEAD
from app.reports.layout.tables import GUTTER, table
from app.reports.layout.typesetting import Typesetter

MODULES = ("changes", "consultations", "cover", "decisions", "integrity", "people", "processing", "sensitive", "verdicts")
APPROVAL = "01900000-0000-7000-8000-6f6f9d5b56c9"
NAMES: Mapping[Text, Mapping[str, Words]] = {
    terms.OUTCOME: terms.OUTCOMES,
    terms.STATE: terms.STATES,
    terms.KIND: terms.KINDS,
    clauses.VERDICT: VERDICTS,
    integrity.USE: integrity.USES,
}
"""What stands in a column, by its title."""
TIMES = {terms.TIME, sections.BEGINS, sections.EXPIRES, gdpr.ASKED, gdpr.DUE, gdpr.KNOWN}
NUMBERS = {terms.ENTRY, sections.INCIDENT}
MOST_ENTRIES = "88888888"
"""The hundred million entries of some thousand large nights."""


def tables() -> Iterator[tuple[str, tuple[Column, ...]]]:
    for module in MODULES:
        for name, value in vars(import_module(f"app.reports.content.{module}")).items():
            if name.isupper() and isinstance(value, tuple) and all(isinstance(each, Column) for each in value):
                yield f"{module}.{name}", value


def words_of(column: Column) -> Iterator[str]:
    for name in NAMES.get(column.title, {}).values():
        yield from name.en.split()
    if column.title in TIMES:
        yield from ("2026-11-29", "04:00:05Z")
    if column.title in NUMBERS:
        yield MOST_ENTRIES
    if column.title == terms.APPROVAL:
        yield both(short_id(APPROVAL))


@pytest.mark.parametrize(("name", "columns"), [*tables()], ids=lambda value: value if isinstance(value, str) else "")
def test_no_word_of_ours_is_cut(report_font: Font, name: str, columns: tuple[Column, ...]) -> None:
    """Titles, outcomes, states, kinds of events, verdicts, times, numbers of entries and ends of ids stand on one line each."""
    grid = table(Table(columns, []), Typesetter(report_font))._grid
    cut = []
    for column, face, width in zip(columns, grid.faces, grid.widths, strict=True):
        title = column.title.en if isinstance(column.title, Words) else column.title
        sizes = [(word, HEAD.size) for word in title.split()] + [(word, face.size) for word in words_of(column)]
        cut += [(title, word) for word, size in sizes if report_font.width(word, size) > width - 2 * GUTTER]
    assert cut == []


def test_every_table_is_looked_at() -> None:
    """Those with outcomes and those with approvals are among them."""
    titles = [(name, column.title) for name, columns in tables() for column in columns]
    assert len({name for name, _ in titles}) > 15
    assert {name for name, title in titles if title == terms.APPROVAL} == {
        f"sensitive.{name}" for name in ("ACCESSES", "APPROVALS", "STANDING")
    }
