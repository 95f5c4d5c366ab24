"""Stacked bars, as lines and areas: each series has a pattern of its own, so that it is told apart on paper without colour."""

from collections.abc import Callable
from dataclasses import replace
from math import ceil, log10
from typing import Any, NamedTuple

from app.reports.document import Chart, Text, Words, both
from app.reports.layout.flow import Block
from app.reports.layout.style import BLACK, CHART, HAIRLINE, MUTED, NOTE, RULE, WIDTH, Face
from app.reports.layout.typesetting import Pen, Typesetter

PLOT_HEIGHT = 150.0
LEFT = 44.0
"""Room for the numbers of the axis."""
TITLE_ROOM, AXIS_ROOM, LEGEND_LEADING = 24.0, 18.0, 13.0
SWATCH = 9.0
TICK = Face(6.6, 8, grey=MUTED)
LEGEND = replace(NOTE, grey=BLACK)
ALL_ZERO = Words("全部为零，没有可画的内容", "all values are zero, there is nothing to draw")


class Pattern(NamedTuple):
    """How an area looks: its ground, and lines over it."""

    ground: tuple[float, float, float]
    strokes: str
    """`/`, `\\` or both, at a distance."""
    distance: float = 4.0


PATTERNS = (
    Pattern((0.16, 0.33, 0.53), ""),
    Pattern((1.0, 1.0, 1.0), "/"),
    Pattern((0.80, 0.80, 0.80), ""),
    Pattern((1.0, 0.93, 0.82), "/\\"),
    Pattern((0.88, 0.92, 0.96), "\\", 2.5),
)
"""As many as there are outcomes of decisions; a chart of more series begins again."""


class Area(NamedTuple):
    """A rectangle, by its lower left corner."""

    x: float
    y: float
    width: float
    height: float


class Bars(Block):
    """One chart, which is not broken over pages. Raises ValueError for a series that has not as many values as the chart has places."""

    above = 4.0
    below = 12.0

    def __init__(self, block: Chart, setter: Typesetter) -> None:
        super().__init__()
        self._setter, self._chart = setter, block
        self._title = setter.cut(block.title, CHART, WIDTH)
        self._legend = [setter.cut(_named(each.name, sum(each.values)), LEGEND, WIDTH - LEFT - SWATCH - 6) for each in block.series]
        self._places = [setter.cut(place, TICK, WIDTH) for place in block.places]
        self._totals = [sum(column) for _, *column in zip(block.places, *(each.values for each in block.series), strict=True)]
        self._empty = setter.one(ALL_ZERO, NOTE)
        self.full = self.least = TITLE_ROOM + PLOT_HEIGHT + AXIS_ROOM + LEGEND_LEADING * len(self._legend)

    def draw(self) -> None:
        base = self.full - TITLE_ROOM - PLOT_HEIGHT
        top = axis_top(max(self._totals, default=0))
        with Pen(self.canv, self._setter.font) as pen:
            pen.put(self._title, 0, self.full - self._title.face.size - 1)
            self._draw_axis(pen, base, top)
            self._draw_bars(base, top)
            self._draw_places(pen, base)
            self._draw_legend(pen, base - AXIS_ROOM)
            if not any(self._totals):
                pen.put(self._empty, LEFT + (WIDTH - LEFT - self._empty.width) / 2, base + PLOT_HEIGHT * 0.6)

    def _draw_axis(self, pen: Pen, base: float, top: float) -> None:
        for step in range(5):
            y = base + PLOT_HEIGHT * step / 4
            self.canv.setStrokeGray(HAIRLINE if step else RULE)
            self.canv.setLineWidth(0.4 if step else 0.8)
            self.canv.line(LEFT, y, WIDTH, y)
            number = self._setter.one(shown(top * step / 4), TICK)
            pen.put(number, LEFT - 5 - number.width, y - 2.3)

    def _draw_bars(self, base: float, top: float) -> None:
        step = (WIDTH - LEFT) / max(len(self._places), 1)
        for place in range(len(self._totals)):
            y, x = base, LEFT + step * (place + 0.16)
            for series, pattern in zip(self._chart.series, _patterns(len(self._chart.series)), strict=True):
                height = PLOT_HEIGHT * series.values[place] / top
                if height:
                    paint(self.canv, pattern, Area(x, y, step * 0.68, height))
                y += height

    def _draw_places(self, pen: Pen, base: float) -> None:
        step = (WIDTH - LEFT) / max(len(self._places), 1)
        widest = max((line.width for line in self._places), default=0.0)
        every = max(1, ceil((widest + 3) / step))
        for number, line in enumerate(self._places[::every]):
            pen.put(line, LEFT + step * (number * every + 0.5) - line.width / 2, base - 9)

    def _draw_legend(self, pen: Pen, top: float) -> None:
        for number, (line, pattern) in enumerate(zip(self._legend, _patterns(len(self._legend)), strict=True)):
            y = top - LEGEND_LEADING * (number + 1) + 3
            paint(self.canv, pattern, Area(LEFT, y, SWATCH * 1.6, SWATCH))
            pen.put(line, LEFT + SWATCH * 1.6 + 6, y + 1.4)


def _patterns(count: int) -> list[Pattern]:
    return [PATTERNS[number % len(PATTERNS)] for number in range(count)]


def _named(name: Text, total: float) -> str:
    return f"{both(name)}: {shown(total)}"


def shown(number: float) -> str:
    """Without a fraction where there is none, thousands apart: 12 345; 2.5."""
    whole = f"{number:,.0f}" if float(number).is_integer() else f"{number:,.2f}".rstrip("0")
    return whole.replace(",", " ")


def axis_top(highest: float) -> float:
    """The least of 4, 8, 20, 40 and so on (1, 2 or 5 times a power of ten, four times) that is not below the highest value."""
    if highest <= 4:
        return 4.0
    power = 10.0 ** int(log10(highest / 4))
    return next(4 * power * factor for factor in (1, 2, 5, 10) if 4 * power * factor >= highest)


def paint(canvas: Any, pattern: Pattern, area: Area) -> None:
    """A rectangle with a pattern and an outline."""
    canvas.saveState()
    path = canvas.beginPath()
    path.rect(*area)
    canvas.setFillColorRGB(*pattern.ground)
    canvas.setStrokeGray(0.15)
    canvas.setLineWidth(0.45)
    canvas.drawPath(path, stroke=1, fill=1)
    canvas.clipPath(path, stroke=0, fill=0)
    for stroke in pattern.strokes:
        for line in _STROKES[stroke](area, pattern.distance):
            canvas.line(*line)
    canvas.restoreState()


_Stroke = tuple[float, float, float, float]


def _rising(area: Area, distance: float) -> list[_Stroke]:
    x, y, width, height = area
    numbers = _numbers(x - y - height, x + width - y, distance)
    return [(number * distance + y, y, number * distance + y + height, y + height) for number in numbers]


def _falling(area: Area, distance: float) -> list[_Stroke]:
    x, y, width, height = area
    numbers = _numbers(x + y, x + width + y + height, distance)
    return [(number * distance - y, y, number * distance - y - height, y + height) for number in numbers]


def _numbers(begin: float, end: float, distance: float) -> range:
    """Of lines at a fixed distance, counted from the page's corner, so that they meet from one area to the next."""
    return range(int(begin // distance), int(end // distance) + 2)


_STROKES: dict[str, Callable[[Area, float], list[_Stroke]]] = {"/": _rising, "\\": _falling}
