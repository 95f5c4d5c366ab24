"""Tables: rows are set when their page comes, so that time grows with the rows and memory does not.

The head is repeated on each page. A row goes to the next page whole where it fits there and is not too long, else it is broken
between its lines, and the part that goes on says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from app.reports.document import Column, Facts, Table, Text, Words
from app.reports.layout.flow import Block
from app.reports.layout.style import CELL, HAIRLINE, HEAD, HEIGHT, LABEL, MONO, MUTED, PANEL, RULE, STRONG, VALUE, WIDTH, Face
from app.reports.layout.typesetting import Line, Pen, Typesetter, height

GUTTER = 3.5
"""Beside a cell's text, on each side."""
PADDING = 2.6
"""Above and below a row's text."""
LONG = HEIGHT / 3
"""A row higher than this may be broken though the next page could hold it."""
LEAST_LINES = 2
HEAD_LINES = 8
"""A column's title that is longer is cut, and `…` ends it."""
NONE = Words("（无）", "(none)")
CONTINUED = Words("（接上页）", "(continued)")


@dataclass(frozen=True, slots=True)
class Row:
    """Cells of one row, set in lines."""

    cells: Sequence[Sequence[Line]]
    height: float

    @classmethod
    def of(cls, cells: Sequence[Sequence[Line]]) -> "Row":
        """As high as its highest cell."""
        return cls(cells, max(map(height, cells), default=0.0) + 2 * PADDING)


class Grid:
    """A table's columns and rows; each row is set once, and forgotten when it is drawn."""

    def __init__(self, columns: Sequence[tuple[Face, float]], rows: Sequence[Sequence[Text]], setter: Typesetter) -> None:
        """Of each column its face and its share of the width. Raises ValueError where a row has not as many cells as columns."""
        self.rows, self.setter = rows, setter
        self.faces = [face for face, _ in columns]
        whole = sum(share for _, share in columns)
        self.widths = [WIDTH * share / whole for _, share in columns]
        self.lefts = [sum(self.widths[:place]) for place in range(len(columns))]
        self.strong = [
            (left, width) for left, width, face in zip(self.lefts, self.widths, self.faces, strict=True) if face.size == STRONG.size
        ]
        """Where the columns that stand out are."""
        self.head: Row | None = None
        self._set: dict[int, Row] = {}

    def name_columns(self, titles: Sequence[Text]) -> None:
        """Give the table a head. Raises ValueError where there are not as many titles as columns."""
        heads = [replace(HEAD, align=face.align) for face in self.faces]
        rooms = [width - 2 * GUTTER for width in self.widths]
        self.head = Row.of([self.setter.few(*cell, HEAD_LINES) for cell in zip(titles, heads, rooms, strict=True)])

    @property
    def head_height(self) -> float:
        return self.head.height if self.head else 0.0

    def row(self, number: int) -> Row:
        """The row of that number, from 0."""
        if number not in self._set:
            self._set[number] = self._row(self.rows[number])
        return self._set[number]

    def forget(self, before: int) -> None:
        """Rows that are drawn."""
        for number in [number for number in self._set if number < before]:
            del self._set[number]

    def broken(self, row: Row, room: float) -> tuple[Row, Row] | None:
        """What of each cell fits into `room`, and the rest under a mark; None where too little does."""
        cuts = [_fitting(cell, room - 2 * PADDING) for cell in row.cells]
        if any(cut < min(LEAST_LINES, len(cell)) for cut, cell in zip(cuts, row.cells, strict=True)):
            return None
        rest = [cell[cut:] for cut, cell in zip(cuts, row.cells, strict=True)]
        longest = max(range(len(rest)), key=lambda place: height(rest[place]))
        rest[longest] = [self._mark(longest), *rest[longest]]
        return Row.of([cell[:cut] for cut, cell in zip(cuts, row.cells, strict=True)]), Row.of(rest)

    def _mark(self, column: int) -> Line:
        return self.setter.cut(CONTINUED, replace(self.faces[column], grey=MUTED, bold=False), self.widths[column] - 2 * GUTTER)

    def _row(self, cells: Sequence[Text]) -> Row:
        lines = self.setter.lines
        return Row.of([lines(cell, face, width - 2 * GUTTER) for cell, face, width in zip(cells, self.faces, self.widths, strict=True)])


def _fitting(cell: Sequence[Line], room: float) -> int:
    """How many of a cell's lines fit."""
    count = 0
    while count < len(cell) and room >= cell[count].face.leading:
        room -= cell[count].face.leading
        count += 1
    return count


class Drawn(Block):
    """Rows that stand on one page, under the table's head."""

    below = 10.0

    def __init__(self, grid: Grid, rows: Sequence[Row]) -> None:
        super().__init__()
        self._grid, self._drawn = grid, rows
        self.full = grid.head_height + sum(row.height for row in rows)

    def draw(self) -> None:
        head, rows = self._grid.head, self._drawn
        below = self.full - self._grid.head_height
        self.canv.setFillGray(PANEL)
        for left, width in self._grid.strong:
            self.canv.rect(left, 0, width, below, stroke=0, fill=1)
        if head:
            self.canv.rect(0, below, WIDTH, head.height, stroke=0, fill=1)
        ends = [below - end for end in accumulate(row.height for row in rows)]
        self._rules(ends[:-1], 0.35, HAIRLINE)
        self._rules([self.full, below, 0], 0.6, RULE)
        with Pen(self.canv, self._grid.setter.font) as pen:
            if head:
                self._write(pen, head, self.full)
            for row, top in zip(rows, [below, *ends], strict=False):
                self._write(pen, row, top)

    def _write(self, pen: Pen, row: Row, top: float) -> None:
        for cell, left, width in zip(row.cells, self._grid.lefts, self._grid.widths, strict=True):
            pen.write(cell, left=left + GUTTER, right=left + width - GUTTER, top=top - PADDING)

    def _rules(self, heights: Sequence[float], width: float, grey: float) -> None:
        self.canv.setLineWidth(width)
        self.canv.setStrokeGray(grey)
        self.canv.lines([(0, y, WIDTH, y) for y in heights])


class Rows(Drawn):
    """The rows of a table from `first` on, after `begun`: what is left of the row before it."""

    def __init__(self, grid: Grid, first: int = 0, begun: Row | None = None) -> None:
        super().__init__(grid, [])
        self._first, self._begun = first, begun
        if first == 0:  # the head, and as much of the first two rows as asks for no page of its own
            self.least = grid.head_height + min(sum(grid.row(number).height for number in range(len(grid.rows))[:2]), LONG)

    def wrap(self, _width: float, available: float) -> tuple[float, float]:
        self._drawn, self.full = [], self._grid.head_height
        for _, row in self._following():
            self._drawn.append(row)
            self.full += row.height
            if self.full > available:
                break  # what is below the page's end is not set yet
        return WIDTH, self.full

    def split(self, _width: float, available: float) -> list[Block]:
        room, drawn = available - self._grid.head_height, list[Row]()
        for number, row in self._following():
            if row.height <= room:
                drawn.append(row)
                room -= row.height
                continue
            if row.height > LONG and (parts := self._grid.broken(row, room)):
                return [Drawn(self._grid, [*drawn, parts[0]]), Rows(self._grid, number + 1, parts[1])]
            self._grid.forget(number)
            return [Drawn(self._grid, drawn), Rows(self._grid, number, row if row is self._begun else None)] if drawn else []
        return [Drawn(self._grid, drawn)]

    def _following(self) -> Iterator[tuple[int, Row]]:
        if self._begun:
            yield self._first - 1, self._begun
        for number in range(self._first, len(self._grid.rows)):
            yield number, self._grid.row(number)


def table(block: Table, setter: Typesetter) -> Rows:
    """A table with a head; one without rows says so."""
    rows = block.rows or [[NONE, *[""] * (len(block.columns) - 1)]]
    grid = Grid([(_face(column), column.share) for column in block.columns], rows, setter)
    grid.name_columns([column.title for column in block.columns])
    return Rows(grid)


def _face(column: Column) -> Face:
    return replace(STRONG if column.strong else MONO if column.mono else CELL, align=column.align)


def facts(block: Facts, setter: Typesetter) -> Rows:
    """Labels beside their values."""
    return Rows(Grid([(LABEL, 0.3), (VALUE, 0.7)], block.pairs, setter))
