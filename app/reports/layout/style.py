"""Sizes and distances of the pages, in points, and the tones of text and rules. All of it holds in black and white."""

from dataclasses import dataclass
from typing import Literal

PAGE_WIDTH, PAGE_HEIGHT = 595.28, 841.89
"""A4."""
MARGIN = 51.0
TOP, BOTTOM = 54.0, 62.0
WIDTH = PAGE_WIDTH - 2 * MARGIN
"""Of what stands on a page."""
HEIGHT = PAGE_HEIGHT - TOP - BOTTOM

BLACK, MUTED, RULE, HAIRLINE, PANEL = 0.0, 0.36, 0.45, 0.78, 0.945
"""Grey, 0 black to 1 white: text, what is said beside it, rules, thin rules, ground of boxes and table heads."""


@dataclass(frozen=True, slots=True)
class Face:
    """How a text is set."""

    size: float
    leading: float
    """From one line to the next."""
    bold: bool = False
    """By a thin stroke around each character, since the font has one weight; for large sizes: a screen draws no stroke thinner than a pixel."""
    grey: float = BLACK
    align: Literal["left", "right"] = "left"


TITLE = Face(24, 32, bold=True)
TITLE_SECOND = Face(15, 21, grey=MUTED)
HEADINGS = (Face(16, 22, bold=True), Face(12.5, 17.5, bold=True), Face(10.4, 15))
"""Of levels 1 to 3."""
SPACE_ABOVE = (30.0, 14.0, 10.0)
SPACE_BELOW = (9.0, 5.0, 3.0)
BODY = Face(9.2, 14)
NOTE = Face(7.6, 11, grey=MUTED)
WARNING = Face(9.2, 14)
CODE = Face(7.6, 11.2)
CHART = Face(9.2, 14)
CELL = Face(7.6, 10.6)
MONO = Face(6.6, 10.6)
STRONG = Face(8.0, 10.6)
HEAD = Face(7.6, 10.4)
LABEL = Face(8.6, 12.4, grey=MUTED)
VALUE = Face(8.6, 12.4)
FOOTER = Face(7.2, 9, grey=MUTED)
