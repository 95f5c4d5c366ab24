"""The font of the reports: what is refused, what prints, and what prints as [U+XXXX] instead."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reports.layout.font import FETCHED, Font, FontRefused, check_template, font_file


def test_no_file_is_refused(tmp_path):
    """A font that is not there is refused with what to do."""
    with pytest.raises(FontRefused, match="No such file") as refused:
        Font(tmp_path / "none.ttf")
    assert "make setup" in refused.value.advice
    assert refused.value.field == "font"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"OTTO" + bytes(100), "PostScript outlines"),
        (b"", "not a TrueType font"),
        (b"\x00\x01\x00\x00" + bytes(60), "not a TrueType font"),
        (b"ttcf\x00\x01\x00\x00\x00\x00\x00\x00" + bytes(60), "not a TrueType font"),
        (b"text of somebody", "not a TrueType font"),
    ],
)
def test_another_file_is_refused(tmp_path, content, reason):
    """PostScript outlines, cut files and files of another kind are refused in words, never with another library's error."""
    (tmp_path / "font.ttf").write_bytes(content)
    with pytest.raises(FontRefused, match=reason):
        Font(tmp_path / "font.ttf")


def test_a_font_that_was_cut_is_refused(tmp_path, report_font):
    """Half of a font is no font, wherever it was cut."""
    whole = report_font.path.read_bytes()
    for length in (50, 400, 100_000, len(whole) // 2, len(whole) - 200_000):
        (tmp_path / "font.ttf").write_bytes(whole[:length])
        with pytest.raises(FontRefused):
            Font(tmp_path / "font.ttf")


def test_a_font_without_chinese_is_refused():
    """A font of Latin alone is refused and the characters are named; reportlab's own Vera is one."""
    import reportlab

    with pytest.raises(FontRefused, match=r"lacks Latin or Chinese characters: .*安"):
        Font(Path(reportlab.__file__).parent / "fonts" / "Vera.ttf")


def test_the_setting_names_another_font():
    """Without a setting the fetched font is used."""
    assert font_file("") == FETCHED
    assert font_file("/fonts/own.ttf") == Path("/fonts/own.ttf")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("符合 met", "符合 met"),
        ("a\u202eb", "a[U+202E]b"),
        ("a\u200bb\u2066c", "a[U+200B]b[U+2066]c"),
        ("\ud800", "[U+D800]"),
        ("😀", "[U+1F600]"),
        ("\ue000\U000f0000", "[U+E000][U+F0000]"),
        ("\x00\x1b[31m\r\t\x7f\x85", "[U+0000][U+001B][31m[U+000D][U+0009][U+007F][U+0085]"),
        ("e\u0301", "e[U+0301]"),
        ("a\u00a0b\u2003c\u00ad", "a[U+00A0]b[U+2003]c[U+00AD]"),
        ("שלום", "[U+05E9][U+05DC][U+05D5][U+05DD]"),
        ("\u3164\ufeff\U000e0041", "[U+3164][U+FEFF][U+E0041]"),
        ("中\u3000文", "中\u3000文"),
    ],
)
def test_what_would_not_be_seen_prints_by_its_number(report_font, text, printed):
    """What a font lacks, what draws nothing, and what turns the text around it prints as [U+XXXX]; the rest as it stands."""
    assert report_font.shown(text, Counter()) == printed


def test_characters_that_print_by_their_number_are_counted(report_font):
    """Each time one is printed it counts."""
    missing = Counter()
    report_font.shown("😀 and 😀\n\ud800", missing)
    assert missing == {"[U+1F600]": 2, "[U+D800]": 1}


@given(text=st.text())
def test_any_text_can_be_measured_once_shown(report_font, text):
    """Whatever is in a text, what prints has only characters that the font has, as many lines as before, and a width."""
    shown = report_font.shown(text, Counter())
    assert report_font.lacks(shown) == ""
    assert shown.count("\n") == text.count("\n")
    assert report_font.width(shown.replace("\n", ""), 10) >= 0


def test_the_wording_may_lack_nothing(report_font):
    """Wording of our own that cannot be printed is an error that names the characters."""
    check_template(report_font, ["符合", "met"])
    with pytest.raises(FontRefused, match=r"wording: \[U\+200B\], 😀\[U\+1F600\]"):
        check_template(report_font, ["符合😀", "a\u200b"])
