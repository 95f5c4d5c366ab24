"""From texts to lines of a face, and from lines to a page. Texts are drawn character by character: nothing reads them as markup."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, Self

from app.reports.document import Text, both
from app.reports.layout.breaking import broken
from app.reports.layout.font import Font
from app.reports.layout.style import MUTED, Face

BOLD_STROKE = 0.034
"""Of the size: how thick the stroke is that makes a character bold."""
BASE = 0.19
"""How far above a line's lower edge its characters stand, in parts of its leading: sizes side by side stand on one base."""
KEPT = 20_000
"""Broken texts that are remembered: names of models and outcomes come again in every row."""


class Line(NamedTuple):
    """One line as it is printed."""

    text: str
    width: float
    """In points."""
    face: Face


class Typesetter:
    """Breaks texts into lines, and remembers which characters the font lacks."""

    def __init__(self, font: Font) -> None:
        self.font = font
        self.missing: Counter[str] = Counter()
        """How often each [U+XXXX] was printed; what is repeated on each page counts once."""
        self._broken: dict[tuple[str, float, float], list[str]] = {}

    def lines(self, text: Text, face: Face, width: float) -> list[Line]:
        """Both languages one below the other, the second in grey; once where they are alike."""
        if isinstance(text, str):
            return self._lines(text, face, width)
        if text.zh == text.en:
            return self._lines(text.zh, face, width)
        return self._lines(text.zh, face, width) + self._lines(text.en, second(face), width)

    def few(self, text: Text, face: Face, width: float, most: int) -> list[Line]:
        """As `lines`, but at most so many; where there would be more, `…` ends the last."""
        lines = self.lines(text, face, width)
        if len(lines) <= most:
            return lines
        *whole, last = lines[:most]
        return [*whole, self.cut(f"{last.text}{lines[most].text}…", last.face, width)]

    def one(self, text: Text, face: Face) -> Line:
        """Both languages in one line, however long it is; line ends are spaces."""
        shown = self.shown(both(text).replace("\n", " "))
        return Line(shown, self.font.width(shown, face.size), face)

    def cut(self, text: Text, face: Face, width: float) -> Line:
        """One line that is no longer than `width`; where it would be, `…` ends it."""
        line = self.one(text, face)
        if line.width <= width:
            return line
        first = broken(line.text, self.font, face.size, width - self.font.width("…", face.size))[0] + "…"
        return Line(first, self.font.width(first, face.size), face)

    def shown(self, text: str) -> str:
        """The text in characters that print."""
        return self.font.shown(text, self.missing)

    def _lines(self, text: str, face: Face, width: float) -> list[Line]:
        shown = self.shown(text)
        key = (shown, face.size, width)
        if (parts := self._broken.get(key)) is None:
            if len(self._broken) >= KEPT:
                self._broken.clear()
            parts = self._broken[key] = broken(shown, self.font, face.size, width)
        return [Line(part, self.font.width(part, face.size), face) for part in parts]


@cache
def second(face: Face) -> Face:
    """How the second language is set below the first."""
    return replace(face, grey=max(face.grey, MUTED), bold=False)


def height(lines: Iterable[Line]) -> float:
    """Of lines that stand one below the other, in points."""
    return sum(line.face.leading for line in lines)


class Pen:
    """Draws lines on a page; used in a `with` block, whose end puts all of them above what else was drawn in it."""

    def __init__(self, canvas: Any, font: Font) -> None:
        self._canvas, self._font = canvas, font
        self._text: Any = None
        self._face: Face | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lift()

    def write(self, lines: Iterable[Line], *, left: float, right: float, top: float) -> None:
        """Lines one below the other from `top` down, each at the side that its face asks for."""
        y = top
        for line in lines:
            y -= line.face.leading
            x = left if line.face.align == "left" else right - line.width
            self.put(line, x, y + line.face.leading * BASE)

    def put(self, line: Line, x: float, y: float) -> None:
        """One line on its base."""
        if line.text:
            self._take(line.face)
            self._text.setTextOrigin(x, y)
            self._text.textOut(line.text)

    def _take(self, face: Face) -> None:
        """Say only what changes from one face to the next: a night's tables have a hundred thousand cells."""
        before, self._face = self._face, face
        if face is before:
            return
        if before is None or before.bold or face.bold:
            self._lift()
            self._text, self._face, before = self._canvas.beginText(), face, None
        if before is None or face.size != before.size:
            self._text.setFont(self._font.name, face.size)
        if before is None or face.grey != before.grey:
            self._text.setFillGray(face.grey)
        if face.bold:
            self._text.setStrokeGray(face.grey)
            self._canvas.setLineWidth(face.size * BOLD_STROKE)
            self._text.setTextRenderMode(2)

    def _lift(self) -> None:
        if self._text is not None:
            if self._face and self._face.bold:
                self._text.setTextRenderMode(0)
            self._canvas.drawText(self._text)
        self._text, self._face = None, None
