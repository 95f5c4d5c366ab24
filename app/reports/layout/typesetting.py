"""From texts to lines of a face, and from lines to a page. Texts are drawn character by character: nothing reads them as markup."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from app.reports.document import Text, Words
from app.reports.layout.breaking import broken
from app.reports.layout.font import Font
from app.reports.layout.style import MUTED, Face

BOLD_STROKE = 0.034
"""Of the size: how thick the stroke is that makes a character bold."""
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
        return self._lines(text.zh, face, width) + self._lines(text.en, replace(face, grey=max(face.grey, MUTED), bold=False), width)

    def one(self, text: Text, face: Face) -> Line:
        """Both languages in one line, however long it is."""
        shown = self.shown(both(text))
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


def both(text: Text) -> str:
    """`中文 English` in one line."""
    if isinstance(text, Words):
        return text.zh if text.zh == text.en else f"{text.zh} {text.en}"
    return text


def height(lines: Iterable[Line]) -> float:
    """Of lines that stand one below the other, in points."""
    return sum(line.face.leading for line in lines)


def write(canvas: Any, font: Font, lines: Iterable[Line], *, left: float, right: float, top: float) -> None:
    """Lines one below the other from `top` down, each at the side that its face asks for."""
    y = top
    for line in lines:
        y -= line.face.leading
        put(canvas, font, line, left if line.face.align == "left" else right - line.width, y + (line.face.leading - line.face.size) * 0.62)


def put(canvas: Any, font: Font, line: Line, x: float, y: float) -> None:
    """One line on its base."""
    if not line.text:
        return
    face = line.face
    text = canvas.beginText(x, y)
    text.setFont(font.name, face.size)
    text.setFillGray(face.grey)
    if face.bold:
        text.setStrokeGray(face.grey)
        canvas.setLineWidth(face.size * BOLD_STROKE)
        text.setTextRenderMode(2)
    text.textOut(line.text)
    if face.bold:
        text.setTextRenderMode(0)
    canvas.drawText(text)
