"""The one font of the reports: a TrueType file with Latin and Chinese, embedded as a subset, so that the pages look alike everywhere.

When down: where the file is missing or unfit, FontRefused; nothing is laid out in another font, since a character that a font lacks
would be left out of a page without a word.
"""

import hashlib
import struct
import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFError, TTFont

from app.errors import ConfigError

FETCHED = Path(__file__).resolve().parents[3] / ".tools" / "report-font.ttf"
"""Where set-up puts it."""

NEEDED = "AZaz09,.:;()[]+-/%年月日时数据安全审计日志签名符合部分不适用人工评估，。、；：（）"
"""A font that lacks one of these is no font of Latin and Chinese."""

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Mn", "Me", "Mc"}
"""Categories whose characters are not drawn, or drawn over another: controls, format and bidi, surrogates, private use, marks."""
_RIGHT_TO_LEFT = {"R", "AL"}
_SPACES = " \u3000"


class FontRefused(ConfigError):
    """The font of the reports is missing, or is none that they can be set in; no report is made."""

    code = "font_refused"
    hint = (
        "Run `make setup`, which fetches one, or set `font` (SLUICE_FONT) to a TrueType file with Latin and Chinese, such as "
        "Noto Sans SC (not the OTF) or WenQuanYi Micro Hei."
    )


class Font:
    """An opened font: how wide its characters are, and which of them it can show."""

    def __init__(self, path: Path) -> None:
        """Raises FontRefused: not there, no TrueType outlines, not to be embedded, or lacks Latin or Chinese."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise FontRefused(f"font: {path}: {error.strerror}", field="font") from None
        self.path = path
        self.sha256 = hashlib.sha256(content).hexdigest()
        if content[:4] == b"OTTO":
            raise FontRefused(f"font: {path}: has PostScript outlines (OTF), and TrueType ones are needed", field="font")
        try:
            self._ttf = TTFont(f"report-{self.sha256[:16]}", str(path), asciiReadable=True, shapable=False)
            self._outlines = _lengths_of_outlines(self._ttf.face, len(content))
        except (TTFError, struct.error, ValueError, KeyError, IndexError, AssertionError) as error:
            raise FontRefused(f"font: {path}: not a TrueType font that can be embedded: {error}", field="font") from None
        self._glyphs: dict[int, int] = self._ttf.face.charToGlyph
        self._widths = _Widths(self._ttf.face)
        self._shown: dict[str, str] = {}
        if lacking := self.lacks(NEEDED):
            raise FontRefused(f"font: {path}: lacks Latin or Chinese characters: {lacking}", field="font")
        pdfmetrics.registerFont(self._ttf)

    @property
    def name(self) -> str:
        """By which reportlab knows it."""
        return str(self._ttf.fontName)

    @property
    def title(self) -> str:
        """As its maker calls it, such as NotoSansSC-Regular."""
        name = self._ttf.face.name
        return name.decode("ascii", "replace") if isinstance(name, bytes) else str(name)

    def width(self, text: str, size: float) -> float:
        """Of a text of characters that it shows, in points."""
        return sum(map(self._widths.__getitem__, text)) * size

    def widths(self, text: str) -> list[float]:
        """Of each character, in parts of the size."""
        return list(map(self._widths.__getitem__, text))

    def lacks(self, text: str) -> str:
        """Characters of the text, each once, that print as [U+XXXX]. Line ends are none."""
        return "".join(sorted({char for char in text if char != "\n" and self._show(char) != char}))

    def shown(self, text: str, missing: Counter[str]) -> str:
        """The text as it prints: each character that the font lacks, or that would not be seen, as [U+XXXX], and counted by that.

        Nothing is dropped or turned around, so that two texts that print alike are alike. Line ends stay.
        """
        if text.isascii() and text.isprintable():
            return text
        printed = [char if char == "\n" else self._show(char) for char in text]
        missing.update(new for old, new in zip(text, printed, strict=True) if new != old)
        return "".join(printed)

    def _show(self, char: str) -> str:
        if (known := self._shown.get(char)) is None:
            known = self._shown[char] = char if self._is_seen(char) else f"[U+{ord(char):04X}]"
        return known

    def _is_seen(self, char: str) -> bool:
        if char in _SPACES:
            return True
        glyph = self._glyphs.get(ord(char), 0)
        if not glyph or unicodedata.category(char) in _HIDDEN or unicodedata.bidirectional(char) in _RIGHT_TO_LEFT:
            return False
        return self._outlines[glyph] > 0


class _Widths(dict[str, float]):
    """Width of a character in parts of the size, filled as they are asked for."""

    def __init__(self, face: Any) -> None:
        super().__init__()
        self._face = face

    def __missing__(self, char: str) -> float:
        width: float = self._face.charWidths.get(ord(char), self._face.defaultWidth) / 1000
        self[char] = width
        return width


def _lengths_of_outlines(face: Any, size: int) -> list[int]:
    """Of each glyph, in bytes; 0 is one that draws nothing (table loca of the OpenType specification).

    Raises ValueError where the file, of `size` bytes, ends before one of its tables does.
    """
    if any(table["offset"] + table["length"] > size for table in face.tables):
        raise ValueError("a part of it is missing")
    face.seek_table("head")
    face.skip(50)
    long_offsets = face.read_ushort() == 1
    offset, length = face.get_table_pos("loca")
    content = face.get_chunk(offset, length)
    count = length // (4 if long_offsets else 2)
    places = struct.unpack(f">{count}{'L' if long_offsets else 'H'}", content[: count * (4 if long_offsets else 2)])
    return [end - begin for begin, end in pairwise(places)]


def font_file(setting: str) -> Path:
    """The file that setting `font` means: the one it names, else the one that set-up fetched."""
    return Path(setting) if setting else FETCHED


def check_template(font: Font, texts: Iterable[str]) -> None:
    """Raises FontRefused, naming them, where the font lacks characters of the reports' own wording: these may not print as [U+XXXX]."""
    if missing := font.lacks("".join(texts)):
        named = ", ".join(f"{char if char.isprintable() else ''}[U+{ord(char):04X}]" for char in missing)
        raise FontRefused(f"font: {font.path}: lacks characters of the reports' own wording: {named}", field="font")
