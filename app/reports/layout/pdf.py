"""A document as PDF: cover, pages with numbers, bookmarks. Equal documents and fonts give equal bytes, wherever and whenever.

Nothing in a text is markup, a link or an address that is fetched: texts are drawn as they stand.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from io import BytesIO
from typing import Any

from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate
from reportlab.platypus.flowables import CondPageBreak, Flowable, Spacer

from app.instants import instant
from app.reports.document import Block as Part
from app.reports.document import Chart, Document, Facts, Heading, Lines, Paragraph, Table, Words, both
from app.reports.layout.chart import ALL_ZERO, Bars
from app.reports.layout.flow import Block, Rule, Titled, paragraph, title, typed
from app.reports.layout.font import Font, check_template
from app.reports.layout.style import (
    BOTTOM,
    FOOTER,
    HEIGHT,
    MARGIN,
    NOTE,
    PAGE_HEIGHT,
    PAGE_WIDTH,
    RULE,
    TITLE,
    TITLE_SECOND,
    WIDTH,
)
from app.reports.layout.tables import CONTINUED, NONE, facts, table
from app.reports.layout.typesetting import Pen, Typesetter

PRODUCER = "Sluice"
NUMBERS_ROOM = 120.0
"""Of the footer, for the page's number."""
DIGITS_ROOM = 17.0
"""For the number of all pages, which is known at the end."""
COVER_DROP = 70.0
WHOLE_PAGE = HEIGHT - 1
"""More room than this is at the top of a page alone."""
CHAPTER_ROOM = HEIGHT / 2
"""Where less of a page is left, a chapter that does not end on it begins the next."""
PAGE = Words("页", "page")
NOT_ALL = Words("此处列出 {total} 行中的 {here} 行；CSV 文件含全部。", "{here} of {total} rows stand here; the CSV file has them all.")
LACKING = Words(
    "字体没有的或不可见的字符：本文件中 {count} 处印作 [U+XXXX]；同一文件夹中的表格文件保留原文。",
    "Characters that the font lacks, or that would not be seen, print as [U+XXXX]: {count} in this file. The tables beside it have them as "
    "they are.",
)
_ALL = "pages"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A report before it is signed."""

    pdf: bytes
    pages: int
    missing: Mapping[str, int]
    """How often each [U+XXXX] stands for a character that the font cannot show."""


def render(document: Document, font: Font) -> Rendered:
    """Lay a document out on A4. Raises FontRefused where the font lacks characters of the layout's own words.

    Where it lacks others, the cover says how many: they are known once all is laid out, so it is laid out again.
    """
    check_template(font, map(both, (NONE, CONTINUED, ALL_ZERO, NOT_ALL, PAGE, LACKING)))
    rendered = _laid_out(document, font)
    if count := sum(rendered.missing.values()):
        told = replace(document, cover=[Paragraph(_filled(LACKING, count=count), "warning"), *document.cover])
        return replace(_laid_out(told, font), missing=rendered.missing)
    return rendered


def _laid_out(document: Document, font: Font) -> Rendered:
    setter, file = Typesetter(font), BytesIO()
    pages = _Pages(file, document, setter)
    pages.build(list(_story(document, setter)), canvasmaker=_Canvas)
    return Rendered(file.getvalue(), pages.count, dict(sorted(setter.missing.items())))


class _Canvas(Canvas):  # type: ignore[misc]  # reportlab has no types
    """A canvas whose file's id comes from what its pages show, where reportlab's comes from the title and SOURCE_DATE_EPOCH."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._doc.signature = blake2b(digest_size=16)

    def showPage(self) -> None:  # noqa: N802 - reportlab's name
        self._doc.signature.update("\n".join(self._code).encode())
        super().showPage()


class _Pages(BaseDocTemplate):  # type: ignore[misc]  # reportlab has no types
    """Pages with a footer: the number of all of them is a form that is filled in when the last page is done."""

    def __init__(self, file: BytesIO, document: Document, setter: Typesetter) -> None:
        said = setter.font.shown
        super().__init__(
            file,
            pagesize=(PAGE_WIDTH, PAGE_HEIGHT),
            invariant=1,
            pageCompression=1,
            initialFontName=setter.font.name,
            lang="zh-CN",
            title=said(both(document.title), Counter()),
            subject=said(document.subject, Counter()),
            author=said(document.author, Counter()),
            creator=PRODUCER,
        )
        self.count = 0
        self._setter = setter
        self._made = instant(document.made, "made")
        self._footer = setter.cut(document.footer, FOOTER, WIDTH - NUMBERS_ROOM)
        frame = Frame(MARGIN, BOTTOM, WIDTH, HEIGHT, leftPadding=0, rightPadding=0, topPadding=0, bottomPadding=0)
        self.addPageTemplates(PageTemplate(frames=[frame], onPage=self._begin_page, onPageEnd=self._end_page))

    def _begin_page(self, canvas: Any, _template: BaseDocTemplate) -> None:
        self.count = canvas.getPageNumber()
        if self.count == 1:
            canvas.setDateFormatter(lambda *_: f"{self._made:D:%Y%m%d%H%M%S}Z")
            canvas.showOutline()

    def _end_page(self, canvas: Any, _template: BaseDocTemplate) -> None:
        right, y = MARGIN + WIDTH, BOTTOM - 26
        canvas.setStrokeGray(RULE)
        canvas.setLineWidth(0.5)
        canvas.line(MARGIN, y + 13, right, y + 13)
        number = self._setter.one(f"{both(PAGE)} {self.count} / ", FOOTER)
        with Pen(canvas, self._setter.font) as pen:
            pen.put(self._footer, MARGIN, y)
            pen.put(number, right - DIGITS_ROOM - number.width, y)
        canvas.saveState()
        canvas.translate(right - DIGITS_ROOM, y)
        canvas.doForm(_ALL)
        canvas.restoreState()

    def _endBuild(self) -> None:  # noqa: N802 - reportlab's name
        self.canv.beginForm(_ALL, 0, -FOOTER.size, DIGITS_ROOM + MARGIN, FOOTER.size * 2)
        with Pen(self.canv, self._setter.font) as pen:
            pen.put(self._setter.one(str(self.count), FOOTER), 0, 0)
        self.canv.endForm()
        super()._endBuild()


def _story(document: Document, setter: Typesetter) -> Iterator[Flowable]:
    yield Spacer(1, COVER_DROP)
    yield title(document.title.zh, TITLE, setter, below=4)
    if document.title.en != document.title.zh:
        yield title(document.title.en, TITLE_SECOND, setter, below=4)
    yield title(document.subject, NOTE, setter, below=6)
    yield Rule()
    cover = list(_blocks(document.cover, setter))
    yield from _kept_together(iter(cover))
    if _height(cover, WHOLE_PAGE) < WHOLE_PAGE:  # one that is longer ends on a page that has room for more
        yield CondPageBreak(WHOLE_PAGE)
    yield from _kept_together(_blocks(document.blocks, setter))


def _chapters(blocks: Iterator[Block]) -> Iterator[list[Block]]:
    """Blocks up to the next heading of a chapter; the first of them may have none."""
    chapter: list[Block] = []
    for block in blocks:
        if _is_chapter(block) and chapter:
            yield chapter
            chapter = []
        chapter.append(block)
    if chapter:
        yield chapter


def _is_chapter(block: Block) -> bool:
    return isinstance(block, Titled) and block.is_chapter


def _kept_together(blocks: Iterator[Block]) -> Iterator[Flowable]:
    """Blocks, each begun where enough of it fits; a heading never stands alone at the foot of a page.

    A chapter is begun on a page that has others where it ends there, too, or where half of the page is left.
    """
    for chapter in _chapters(blocks):
        if _is_chapter(chapter[0]):
            yield CondPageBreak(_height(chapter, CHAPTER_ROOM))
        headings: list[Block] = []
        for block in chapter:
            if isinstance(block, Titled):
                headings.append(block)
                continue
            yield from _begun(headings, block.above + block.least)
            headings = []
            yield CondPageBreak(min(block.above + block.least, WHOLE_PAGE))
            yield block
        yield from _begun(headings, 0)


def _height(blocks: Sequence[Block], most: float) -> float:
    """Of blocks one below the other, or `most` where it is more: rows of tables that come then are not set for it."""
    room = 0.0
    for block in blocks:
        if room >= most:
            break
        room += block.above + block.wrap(WIDTH, most - room)[1] + block.below
    return min(room, most)


def _begun(headings: list[Block], following: float) -> Iterator[Flowable]:
    room = following + sum(heading.above + heading.full + heading.below for heading in headings)
    for heading in headings:
        yield CondPageBreak(min(room, WHOLE_PAGE))
        yield heading
        room -= heading.above + heading.full + heading.below


def _blocks(parts: Sequence[Part], setter: Typesetter) -> Iterator[Block]:
    depth = -1
    for number, part in enumerate(parts):
        match part:
            case Heading():
                depth = min(part.level - 1, depth + 1)  # a bookmark is one level below another at most
                yield Titled(part, setter, depth, f"heading-{number}")
            case Paragraph():
                yield paragraph(part, setter)
            case Facts():
                yield facts(part, setter)
            case Table():
                yield table(part, setter)
                if part.total is not None and part.total > len(part.rows):
                    yield paragraph(Paragraph(_filled(NOT_ALL, here=len(part.rows), total=part.total), "note"), setter)
            case Lines():
                yield typed(part, setter)
            case Chart():
                yield Bars(part, setter)


def _filled(words: Words, **counts: int) -> Words:
    return Words(words.zh.format_map(counts), words.en.format_map(counts))
