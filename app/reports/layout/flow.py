"""What flows down the pages, block by block: texts, boxes, headings that are bookmarks, rules."""

import re
from collections import Counter
from collections.abc import Sequence
from unicodedata import east_asian_width

from reportlab.platypus.flowables import Flowable

from app.reports.document import Heading, Lines, Paragraph, both
from app.reports.layout.font import Font
from app.reports.layout.style import BODY, CODE, HEADINGS, NOTE, PANEL, RULE, SPACE_ABOVE, SPACE_BELOW, WARNING, WIDTH, Face
from app.reports.layout.typesetting import Line, Pen, Typesetter, height

LEAST_LINES = 2
"""At the foot or the head of a page stands no single line of a longer text."""
PADDING = 7.0
BAR = 3.0
INDENT = 2
"""Columns by which the rest of a broken line is set in."""
HEADING_LINES = 4
"""A heading that is longer is cut, and `…` ends it; its bookmark has all of it."""
COLUMN = 0.6
"""Width of a column of the grid of Lines, in parts of the size."""
_RUN = re.compile(r"[^ ]+(?: [^ ]+)*")


class Block(Flowable):  # type: ignore[misc]  # reportlab has no types
    """Something as wide as the page's text. `least` is the height below which it is better begun on the next page."""

    least: float = 0.0
    full: float = 0.0
    above: float = 0.0
    below: float = 6.0

    def wrap(self, _width: float, _height: float) -> tuple[float, float]:
        return WIDTH, self.full

    def getSpaceBefore(self) -> float:  # noqa: N802 - reportlab's name
        return self.above

    def getSpaceAfter(self) -> float:  # noqa: N802
        return self.below


class Prose(Block):
    """Lines of text, in a box where `boxed`; broken between lines where a page ends."""

    def __init__(self, lines: Sequence[Line], font: Font, *, boxed: bool = False, below: float = 6.0) -> None:
        super().__init__()
        self._lines, self._font, self._boxed, self.below = lines, font, boxed, below
        self._padding = PADDING if boxed else 0.0
        self.full = height(lines) + 2 * self._padding
        self.least = min(self.full, height(lines[:LEAST_LINES]) + 2 * self._padding)

    def split(self, _width: float, available: float) -> list[Block]:
        room, count = available - 2 * self._padding, 0
        while count < len(self._lines) and room >= self._lines[count].face.leading:
            room -= self._lines[count].face.leading
            count += 1
        if len(self._lines) - count < LEAST_LINES:
            count = len(self._lines) - LEAST_LINES
        if count < LEAST_LINES:
            return []
        return [Prose(part, self._font, boxed=self._boxed, below=self.below) for part in (self._lines[:count], self._lines[count:])]

    def draw(self) -> None:
        if self._boxed:
            self.canv.setFillGray(PANEL)
            self.canv.rect(0, 0, WIDTH, self.full, stroke=0, fill=1)
            self.canv.setFillGray(RULE)
            self.canv.rect(0, 0, BAR, self.full, stroke=0, fill=1)
        inset = self._padding + (BAR if self._boxed else 0)
        with Pen(self.canv, self._font) as pen:
            pen.write(self._lines, left=inset, right=WIDTH - inset, top=self.full - self._padding)


class Titled(Prose):
    """A heading, which is a bookmark."""

    def __init__(self, heading: Heading, setter: Typesetter, depth: int, key: str) -> None:
        face = HEADINGS[heading.level - 1]
        words = both(heading.text).replace("\n", " ")
        super().__init__(setter.few(words, face, WIDTH, HEADING_LINES), setter.font, below=SPACE_BELOW[heading.level - 1])
        self.above = SPACE_ABOVE[heading.level - 1]
        self.least = self.full
        self.is_chapter = heading.level == 1
        self._title, self._depth, self._key = setter.font.shown(words, Counter()), depth, key
        if self.is_chapter:
            self.full += 4

    def split(self, _width: float, _available: float) -> list[Block]:
        return []

    def draw(self) -> None:
        self.canv.bookmarkHorizontal(self._key, 0, self.full)
        self.canv.addOutlineEntry(self._title, self._key, level=self._depth, closed=self._depth > 0)
        super().draw()
        if self.is_chapter:
            self.canv.setStrokeGray(RULE)
            self.canv.setLineWidth(0.8)
            self.canv.line(0, 0, WIDTH, 0)


class Rule(Block):
    """A line across the page."""

    full = 1.0
    above = 6.0
    below = 14.0

    def draw(self) -> None:
        self.canv.setStrokeGray(RULE)
        self.canv.setLineWidth(1.2)
        self.canv.line(0, 0, WIDTH, 0)


def paragraph(block: Paragraph, setter: Typesetter) -> Prose:
    """Running text."""
    face = {"body": BODY, "note": NOTE, "warning": WARNING}[block.style]
    boxed = block.style == "warning"
    lines = setter.lines(block.text, face, WIDTH - (2 * PADDING + 2 * BAR if boxed else 0))
    return Prose(lines, setter.font, boxed=boxed, below=10.0 if boxed else 6.0)


def _columns(text: str) -> list[tuple[int, str]]:
    """Runs of a line that are two spaces or more apart, each with the column where it begins; a wide character takes two."""
    runs = [(match.start(), match[0]) for match in _RUN.finditer(text)]
    return [(start + sum(east_asian_width(char) in "WF" for char in text[:start]), run) for start, run in runs]


class Typed(Block):
    """Lines of a program, in a box: what stands below each other there by spaces does so here."""

    below = 10.0

    def __init__(self, rows: Sequence[Sequence[tuple[float, Line]]], font: Font) -> None:
        super().__init__()
        self._rows, self._font = rows, font
        self.full = len(rows) * CODE.leading + 2 * PADDING
        self.least = min(self.full, LEAST_LINES * CODE.leading + 2 * PADDING)

    def split(self, _width: float, available: float) -> list[Block]:
        count = int((available - 2 * PADDING) // CODE.leading)
        if count < LEAST_LINES:
            return []
        return [Typed(part, self._font) for part in (self._rows[:count], self._rows[count:])]

    def draw(self) -> None:
        self.canv.setFillGray(PANEL)
        self.canv.rect(0, 0, WIDTH, self.full, stroke=0, fill=1)
        with Pen(self.canv, self._font) as pen:
            for number, row in enumerate(self._rows):
                top = self.full - PADDING - number * CODE.leading
                for x, line in row:
                    pen.write([line], left=PADDING + x, right=WIDTH, top=top)


def typed(block: Lines, setter: Typesetter) -> Typed:
    """Lines in a grid of columns; a run that is wider than its columns pushes the next one on, and what is too long is broken and set in."""
    rows: list[list[tuple[float, Line]]] = []
    for text in block.lines:
        rows += _grid(setter.shown(text.expandtabs(8)).split("\n"), setter)
    return Typed(rows, setter.font)


def _grid(texts: Sequence[str], setter: Typesetter) -> list[list[tuple[float, Line]]]:
    rows: list[list[tuple[float, Line]]] = []
    step, room = COLUMN * CODE.size, WIDTH - 2 * PADDING
    for text in texts:
        row: list[tuple[float, Line]] = []
        end = 0.0
        for column, run in _columns(text):
            x = max(column * step, end)
            if x + setter.font.width(run, CODE.size) > room and (row or x > room / 2):
                rows.append(row)
                row, x = [], INDENT * step
            first, *rest = setter.lines(run, CODE, room - max(x, INDENT * step))
            row.append((x, first))
            for line in rest:
                rows.append(row)
                x = INDENT * step
                row = [(x, line)]
            end = x + row[-1][1].width + step
        rows.append(row)
    return rows


def title(text: str, face: Face, setter: Typesetter, *, below: float) -> Prose:
    """A title of the cover."""
    return Prose(setter.lines(text, face, WIDTH), setter.font, below=below)
