"""What a report says, before it is laid out: a sequence of blocks, in Chinese and English. Pure values; app/reports/layout draws them.

Texts are texts: nothing in them is read as markup, wherever they come from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Words:
    """One thing said in both languages; both are printed, or one where they are alike."""

    zh: str
    en: str


Text = Words | str
"""A plain str is data: an id, a number, a name. It has no translation."""


def both(text: Text) -> str:
    """`中文 English` in one line; once where they are alike."""
    if isinstance(text, str):
        return text
    return text.zh if text.zh == text.en else f"{text.zh} {text.en}"


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, which is a bookmark, too."""

    text: Text
    level: int = 1
    """1 to 3; one of level 1 begins a chapter, and that a page, unless it has room below the one before."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text. `note` is small, `warning` stands out."""

    text: Text
    style: Literal["body", "note", "warning"] = "body"


@dataclass(frozen=True, slots=True)
class Facts:
    """Pairs of a label and a value, one below the other."""

    pairs: Sequence[tuple[Text, Text]]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    title: Text
    share: float
    """Of the width; the shares of a table need not sum to 1."""
    align: Literal["left", "right"] = "left"
    mono: bool = False
    """Whether its cells are ids or hashes, to be set narrow."""
    strong: bool = False
    """Whether its cells stand out, such as verdicts."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; the header is repeated on each page. A cell may be of several lines, and longer than a page."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Text]]
    total: int | None = None
    """How many there are where not all stand here: the table says so, and that the CSV has them all."""


@dataclass(frozen=True, slots=True)
class Lines:
    """What a program said or what is to be typed, line by line in a fixed width; long lines are broken."""

    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart: as many values as the chart has places."""

    name: Text
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Chart:
    """Stacked bars, one for each place on the axis."""

    title: Text
    places: Sequence[str]
    """Such as hours of the day: 00, 01, 02, 02, 03 where the clocks go back."""
    series: Sequence[Series]


Block = Heading | Paragraph | Facts | Table | Lines | Chart


@dataclass(frozen=True, slots=True)
class Document:
    """A report as it is laid out."""

    title: Words
    subject: str
    """What the file says of itself: kind, day, zone."""
    footer: Text
    """On every page, beside its number."""
    cover: Sequence[Block]
    """The first page, without headings."""
    blocks: Sequence[Block]
    made: str
    """RFC 3339: the only time that stands in the file; equal documents are equal bytes."""
    author: str = "Sluice"
    """Who is responsible, as the file says of itself."""
