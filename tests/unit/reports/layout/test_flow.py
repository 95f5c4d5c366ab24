"""Texts and the lines of programs, as they flow down the pages."""

import re

import pytest

from app.reports.document import Document, Lines, Paragraph, Words
from app.reports.layout.flow import COLUMN, INDENT, PADDING, typed
from app.reports.layout.pdf import render
from app.reports.layout.style import CODE, WIDTH
from app.reports.layout.typesetting import Typesetter
from tests.fixtures.pdf_text import page_texts


def grid(font, *lines):
    """Of each line the runs in it, each with the column where it begins."""
    rows = typed(Lines(lines), Typesetter(font))._rows
    return [[(round(x / (COLUMN * CODE.size), 2), line.text) for x, line in row] for row in rows]


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("verdict   whole", [(0, "verdict"), (10, "whole")]),
        ("  key     SM2 until 2027", [(2, "key"), (10, "SM2 until 2027")]),
        ("结论      符合", [(0, "结论"), (10, "符合")]),
        ("a\tb", [(0, "a"), (8, "b")]),
        ("", []),
        ("a\u202eb", [(0, "a[U+202E]b")]),
    ],
)
def test_columns_of_a_program_stay_columns(report_font, line, runs):
    """What stands apart by two spaces or more begins at its column, whatever stands before it; a command stays in one piece."""
    assert grid(report_font, line) == [runs]


def test_a_wide_run_pushes_the_next_one_on(report_font):
    """No two runs are drawn over each other."""
    (first, second), *_ = grid(report_font, "WWWWWWWWWW  after")
    assert second[0] > 12
    assert (second[0] - first[0]) * COLUMN * CODE.size >= report_font.width(first[1], CODE.size)


def test_a_long_line_is_broken_and_set_in(report_font):
    """Nothing of it is lost, and no part is wider than its box."""
    hashes = "ab12" * 60
    rows = grid(report_font, f"root      {hashes}")
    assert rows[0][0] == (0, "root")
    assert "".join(run for row in rows for _, run in row[-1:]) in (hashes, f"root{hashes}")
    assert all(column == INDENT for ((column, _),) in rows[1:])
    for row in rows:
        column, run = row[-1]
        assert column * COLUMN * CODE.size + report_font.width(run, CODE.size) <= WIDTH - 2 * PADDING + 0.1


def test_texts_longer_than_a_page_go_on(report_font):
    """Paragraphs, boxes and lines of programs of several pages lose nothing."""
    words = " ".join(f"w{number}" for number in range(4000))
    blocks = [Paragraph(words), Paragraph(words, "warning"), Lines([f"l{number}" for number in range(300)])]
    document = Document(Words("题", "Title"), "s", "f", [], blocks, "2026-11-30T01:00:00Z")
    text = "\n".join(page_texts(render(document, report_font).pdf))
    assert re.findall(r"w(\d+)", text) == [str(number) for number in range(4000)] * 2
    assert re.findall(r"^l(\d+)", text, re.MULTILINE) == [str(number) for number in range(300)]
