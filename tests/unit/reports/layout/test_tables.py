"""Tables over many pages."""

import os
import re
import subprocess
import sys

import pytest

from app.reports.document import Column, Document, Facts, Table, Words
from app.reports.layout.pdf import render
from tests.fixtures.pdf_text import page_texts, text_of


def document(table):
    return Document(Words("题", "Title"), "s", "f", [], [table], "2026-11-30T01:00:00Z")


def rows(count):
    return [[f"{number}", f"tenant-{number % 7}", Words("符合", "met"), f"{number * 2654435761 % 2**64:016x}"] for number in range(count)]


COLUMNS = [
    Column("number", 1, "right"),
    Column("tenant", 1),
    Column(Words("结论", "Verdict"), 1, strong=True),
    Column("hash", 2, mono=True),
]


def test_every_row_stands_once_and_every_page_has_the_head(report_font):
    """1000 rows: none is lost or doubled where pages end, and each page names the columns."""
    texts = page_texts(render(document(Table(COLUMNS, rows(1000))), report_font).pdf)[1:]
    hashes = re.findall(r"\b[0-9a-f]{16}\b", "\n".join(texts))
    assert hashes == [row[3] for row in rows(1000)]
    assert all("Verdict" in text and "number" in text for text in texts)


def test_a_cell_longer_than_a_page_goes_on(report_font):
    """A cell of several pages is broken between its lines, nothing of it is lost, and each page that goes on says so."""
    words = [f"word{number}" for number in range(6000)]
    texts = page_texts(
        render(document(Table([Column("n", 1), Column("t", 4)], [["1", " ".join(words)], ["2", "after"]])), report_font).pdf
    )[1:]
    assert len(texts) >= 3
    assert re.findall(r"word\d+", "\n".join(texts)) == words
    assert all("（接上页） (continued)" in text for text in texts[1:])
    assert "（接上页）" not in texts[0]
    assert "after" in texts[-1]


def test_a_cell_of_many_lines_goes_on(report_font):
    """A cell may be many lines; each is one."""
    texts = page_texts(render(document(Facts([("label", "\n".join(f"line {number}." for number in range(300)))])), report_font).pdf)
    assert re.findall(r"line (\d+)\.", "\n".join(texts)) == [str(number) for number in range(300)]


def test_a_table_without_rows_says_so(report_font):
    """Nothing is said in words, not by an empty page."""
    text = text_of(render(document(Table(COLUMNS, [])), report_font).pdf)
    assert "（无）" in text
    assert "(none)" in text


def test_a_row_with_too_few_cells_is_refused(report_font):
    """A row that does not fit its table's columns is a fault of the caller, never a page with cells in wrong columns."""
    with pytest.raises(ValueError, match=r"longer|shorter"):
        render(document(Table(COLUMNS, [["1", "2"]])), report_font)


LARGE = """
import re, time
from pathlib import Path
from app.reports.layout.font import Font, font_file
from tests.unit.reports.layout.test_tables import COLUMNS, Table, document, render, rows
cells = [*rows(5000), ["1", "x" * 5000, "reason", "\\n".join(["r" * 80] * 400)]]
rendered = render(document(Table(COLUMNS, cells)), Font(font_file("")))
# What the kernel calls maxrss begins with that of whoever started us.
print(time.process_time(), re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1], rendered.pages)
"""


def test_five_thousand_rows_and_two_huge_cells():
    """They take less than 15 s and 300 MiB, in a process that makes nothing else."""
    ran = subprocess.run([sys.executable, "-c", LARGE], check=True, capture_output=True, text=True, env={"PYTHONPATH": os.getcwd()})  # noqa: PTH109 - the checkout, from which tests are run
    seconds, kib, pages = map(float, ran.stdout.split())
    assert seconds < 15
    assert kib < 300 * 1024
    assert pages > 100
