"""A document as PDF: what a reader finds in it, and that it is the same bytes wherever it is made."""

import os
import re
import socket
import subprocess
import sys
from dataclasses import replace

import pikepdf
import pypdfium2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import BadRequest
from app.reports.document import Chart, Column, Document, Facts, Heading, Lines, Paragraph, Series, Table, Words
from app.reports.layout.pdf import render
from tests.fixtures.pdf_text import page_texts, text_of

HOURS = [f"{hour:02}" for hour in range(24)]


def document(*blocks, **changes):
    """A report of these blocks."""
    made = Document(
        title=Words("夜间合规报告", "Nightly compliance report"),
        subject="mlps 2026-11-29 Asia/Shanghai",
        footer=Words("合规报告", "compliance report"),
        cover=[Paragraph(Words("封面", "The cover"))],
        blocks=blocks,
        made="2026-11-30T09:00:00.5+08:00",
        author="示例银行",
    )
    return replace(made, **changes)


EVERYTHING = document(
    Heading(Words("概要", "Summary")),
    Facts([(Words("系统", "System"), "推理 A & B")]),
    Chart(Words("每小时", "By hour"), HOURS, [Series(Words("允许", "allowed"), list(range(24))), Series("x", [1] * 24)]),
    Heading(Words("细节", "Details"), 2),
    Heading(Words("表", "Table"), 3),
    Table([Column("#", 1, "right"), Column(Words("结论", "Verdict"), 2, strong=True)], [["1", Words("符合", "met")]] * 60, total=90),
    Lines(["verdict   whole", "root      " + "ab" * 100]),
    Paragraph(Words("并非认证产品", "no certified product"), "warning"),
)


def test_a_reader_finds_both_languages(report_font):
    """Cover, headings, cells, labels, legend and notes are there as text, in Chinese and English."""
    text = text_of(render(EVERYTHING, report_font).pdf)
    for words in (
        *("夜间合规报告", "Nightly compliance report", "封面", "The cover", "概要 Summary", "推理 A & B", "结论", "Verdict", "符合", "met"),
        *("允许 allowed: 276", "x: 24", "verdict whole", "并非认证产品", "no certified product"),
        *("此处列出 90 行中的 60 行", "60 of 90 rows stand here; the CSV file has them all."),
    ):
        assert words in text


def test_what_the_file_says_of_itself(report_font):
    """Title, subject, author, language and the one time, in UTC; nobody's clock."""
    with pikepdf.open(_file(render(EVERYTHING, report_font).pdf)) as pdf:
        assert pdf.docinfo["/Title"] == "夜间合规报告 Nightly compliance report"
        assert pdf.docinfo["/Subject"] == "mlps 2026-11-29 Asia/Shanghai"
        assert pdf.docinfo["/Author"] == "示例银行"
        assert pdf.docinfo["/CreationDate"] == pdf.docinfo["/ModDate"] == "D:20261130010000Z"
        assert pdf.Root.Lang == "zh-CN"


def test_every_font_is_embedded(report_font):
    """No page needs a font of the reader's machine, as text in one of its own would."""
    with pikepdf.open(_file(render(EVERYTHING, report_font).pdf)) as pdf:
        fonts = [each for each in pdf.objects if isinstance(each, pikepdf.Dictionary) and each.get("/Type") == "/Font"]
        assert fonts
        assert all("/FontFile2" in font.FontDescriptor for font in fonts)


def test_headings_are_bookmarks_of_their_pages(report_font):
    """Each heading is one, at its depth, and leads to the page where it stands."""
    pdf = render(EVERYTHING, report_font).pdf
    texts, reader = page_texts(pdf), pypdfium2.PdfDocument(pdf)
    marks = [(mark.level, mark.get_title(), mark.get_dest().get_index()) for mark in reader.get_toc()]
    reader.close()
    assert [(level, title) for level, title, _ in marks] == [(0, "概要 Summary"), (1, "细节 Details"), (2, "表 Table")]
    assert all(title in texts[page] for _, title, page in marks)


def test_bookmarks_whose_levels_jump_are_kept(report_font):
    """A heading of level 3 below one of level 1 is a bookmark of the second depth; none is lost."""
    pdf = render(document(Heading("a", 3), Heading("b", 1), Heading("c", 3), Heading("d", 2)), report_font).pdf
    reader = pypdfium2.PdfDocument(pdf)
    assert [(mark.level, mark.get_title()) for mark in reader.get_toc()] == [(0, "a"), (0, "b"), (1, "c"), (1, "d")]
    reader.close()


def test_pages_have_numbers(report_font):
    """Every page says which it is, and of how many."""
    rendered = render(EVERYTHING, report_font)
    texts = page_texts(rendered.pdf)
    assert len(texts) == rendered.pages > 2
    for number, text in enumerate(texts, 1):
        assert re.search(rf"页 page {number} /\s+{rendered.pages}\b", text)
        assert "合规报告 compliance report" in text


def test_a_heading_never_stands_alone_at_the_foot(report_font):
    """Wherever a page ends, what a heading stands over begins on its page."""
    for lines in range(30, 60):
        filling = [Paragraph(f"line {number}", "note") for number in range(lines)]
        table = Table([Column("n", 1)], [[f"cell {number}"] for number in range(3)])
        texts = page_texts(render(document(*filling, Heading("Over", 2), Heading("Below", 3), table), report_font).pdf)
        (page,) = [text for text in texts if "Over" in text]
        assert "Below" in page
        assert "cell 0" in page


def test_short_chapters_share_a_page(report_font):
    """A chapter begins below another where all of it fits there, or half of the page is left; else on a page of its own."""
    lines = {"One": 2, "Two": 20, "Three": 2, "Four": 38, "Five": 2}
    short = [block for name, count in lines.items() for block in (Heading(name), *[Paragraph("x", "note")] * count)]
    table = Table([Column("n", 1)], [[f"row {number}"] for number in range(70)])
    pages = page_texts(render(document(*short, Heading("Six"), table, Heading("Seven"), table), report_font).pdf)
    found = [[name for name in (*lines, "Six", "Seven") if re.search(rf"^{name}\b", page, re.MULTILINE)] for page in pages]
    assert found == [[], ["One", "Two", "Three"], ["Four"], ["Five", "Six"], [], ["Seven"], []]


HOSTILE = ['<img src="http://127.0.0.1:{port}/x"/>', "A & B", "0.1 <A <0.9", "<b>x", "&lt;&#x41;", "<para>", "%s {0}", "(a\\b)"]


def test_texts_are_never_markup(report_font):
    """Whatever a text is made of stands there as it is, in every block, and nothing is fetched."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        texts = [text.replace("{port}", str(server.getsockname()[1])) for text in HOSTILE]
        for text in texts:
            pdf = render(_everywhere(text), report_font).pdf
            pages = page_texts(pdf)
            assert sum(page.count(text) for page in pages) >= 10
            assert b"/URI" not in pdf
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


def _everywhere(text):
    return document(
        Heading(text),
        Paragraph(text),
        Paragraph(Words(text, text + "."), "warning"),
        Facts([(text, text)]),
        Table([Column(text, 1), Column("b", 1)], [[text, Words(text, "en")]]),
        Lines([text]),
        Chart(text, [text], [Series(text, [1])]),
        title=Words(text, text),
        subject=text,
        footer=text,
        author=text,
    )


@settings(max_examples=25, deadline=None)
@given(text=st.text(max_size=300))
def test_any_text_can_be_laid_out(report_font, text):
    """No text, whatever its characters and length, stops a report."""
    assert render(_everywhere(text), report_font).pages >= 2


def test_a_very_long_text_can_stand_anywhere(report_font):
    """5000 characters without a space in a title, a heading, a footer or a legend stop no report."""
    assert render(_everywhere("x" * 5000), report_font).pages > 2


def test_what_the_font_lacks_is_counted(report_font):
    """Characters that print as [U+XXXX] are told once each time they stand in the document, however many pages repeat them."""
    table = Table([Column("😀", 1), Column("b", 1)], [["\ud800", f"{number}"] for number in range(200)])
    rendered = render(document(table, Paragraph("a\u202eb")), report_font)
    assert rendered.missing == {"[U+1F600]": 1, "[U+202E]": 1, "[U+D800]": 200}
    assert text_of(rendered.pdf).count("[U+1F600]") > 1


def test_cover_tells_how_many_characters_the_font_lacks(report_font):
    """The first page has the number of them, as the caller gets it; without any there is no word of it."""
    rendered = render(document(Paragraph("a\u202eb 😀😀")), report_font)
    assert "print as [U+XXXX]: 3 in this file" in page_texts(rendered.pdf)[0].replace("\n", " ")
    assert sum(rendered.missing.values()) == 3
    assert "U+XXXX" not in text_of(render(document(Paragraph("ab")), report_font).pdf)


def test_equal_documents_are_equal_bytes(report_font, tmp_path):
    """Another process, with another hash seed, folder, zone and build date, makes the same file."""
    program = (
        "import sys; from tests.unit.reports.layout.test_pdf import EVERYTHING, render; from app.reports.layout.font import *;"
        "sys.stdout.buffer.write(render(EVERYTHING, Font(font_file(''))).pdf)"
    )
    here = os.getcwd()  # noqa: PTH109 - the checkout, from which tests are run
    other = {"PYTHONHASHSEED": "2", "TZ": "America/New_York", "SOURCE_DATE_EPOCH": "1700000000"}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": here, **other},
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    assert ran.stdout == render(EVERYTHING, report_font).pdf


def test_another_document_is_another_file(report_font):
    """The file's id tells documents apart."""
    ids = [re.search(rb"/ID\s+\[<(\w+)>", render(document(Paragraph(text)), report_font).pdf)[1] for text in ("a", "b")]
    assert ids[0] != ids[1]


def test_a_time_without_a_zone_is_refused(report_font):
    """The time of making is an instant."""
    with pytest.raises(BadRequest, match="made: not an instant"):
        render(document(made="2026-11-30 09:00"), report_font)


def _file(pdf):
    from io import BytesIO

    return BytesIO(pdf)
