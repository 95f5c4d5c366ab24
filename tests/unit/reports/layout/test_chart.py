"""Bars."""

import pypdfium2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reports.document import Chart, Document, Series, Words
from app.reports.layout.chart import PATTERNS, axis_top, shown
from app.reports.layout.pdf import render
from tests.fixtures.pdf_text import text_of


def document(chart):
    return Document(Words("题", "Title"), "s", "f", [], [chart], "2026-11-30T01:00:00Z")


@pytest.mark.parametrize(
    ("highest", "top"),
    [(0, 4), (1, 4), (4, 4), (5, 8), (8, 8), (9, 20), (21, 40), (40, 40), (41, 80), (1857, 2000), (1_000_000, 2_000_000)],
)
def test_the_axis_ends_at_a_round_number(highest, top):
    """Its quarters are round, too."""
    assert axis_top(highest) == top


@given(highest=st.integers(0, 10**12))
def test_no_bar_leaves_the_chart(highest):
    """The axis is as high as the highest bar, and a bar is not lost at its foot."""
    assert highest <= axis_top(highest) <= max(4, 2.5 * highest + 4)


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (12345, "12 345"), (2.5, "2.5"), (1234567.0, "1 234 567"), (0.25, "0.25")])
def test_numbers_have_their_thousands_apart(number, text):
    """As the pages show them."""
    assert shown(number) == text


def test_an_empty_night_says_so(report_font):
    """All zeros are said in words; the places stay."""
    chart = Chart(Words("每小时", "By hour"), ["00", "01"], [Series(Words("允许", "allowed"), [0, 0])])
    text = text_of(render(document(chart), report_font).pdf)
    assert "全部为零，没有可画的内容 all values are zero, there is nothing to draw" in text
    assert "允许 allowed: 0" in text
    assert "00" in text


def test_a_chart_that_is_not_empty_does_not_say_so(report_font):
    """One value is enough."""
    chart = Chart("By hour", ["00", "01"], [Series("a", [0, 1])])
    assert "all values are zero" not in text_of(render(document(chart), report_font).pdf)


def test_a_series_of_another_length_is_refused(report_font):
    """Values without a place, or places without a value, are a fault of the caller."""
    with pytest.raises(ValueError, match=r"longer|shorter"):
        render(document(Chart("x", ["00", "01"], [Series("a", [0, 1]), Series("b", [1])])), report_font)
    with pytest.raises(ValueError, match=r"longer|shorter"):
        render(document(Chart("x", ["00", "01", "02"], [Series("a", [0, 1])])), report_font)


def test_series_are_told_apart_in_black_and_white():
    """No two patterns are alike once their colour is gone: in their strokes, or by a fifth of the way from black to white."""
    looks = [(pattern.strokes, sum(pattern.ground) / 3) for pattern in PATTERNS]
    for place, (strokes, grey) in enumerate(looks):
        assert all(strokes != other or abs(grey - shade) > 0.05 for other, shade in looks[:place])


def test_bars_are_drawn(report_font):
    """A bar's ground is on the page as a picture of it: the first series is dark, and higher where its value is."""
    chart = Chart("x", ["a", "b"], [Series("s", [4, 2])])
    reader = pypdfium2.PdfDocument(render(document(chart), report_font).pdf)
    picture = reader[1].render(scale=1).to_pil().convert("RGB")
    reader.close()
    dark = [sum(picture.getpixel((x, y)) == (41, 84, 135) for y in range(picture.height)) for x in (200, 430)]
    assert dark[0] == pytest.approx(150, abs=3)
    assert dark[1] == pytest.approx(75, abs=3)
