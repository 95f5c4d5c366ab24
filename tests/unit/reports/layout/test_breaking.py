"""Where lines end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reports.layout.breaking import broken

SIZE = 10


def lines(font, text, ems):
    """Broken at a width of that many Chinese characters, which are 1 em wide each."""
    return broken(text, font, SIZE, ems * SIZE + 0.001)


@pytest.mark.parametrize(
    ("text", "ems", "expected"),
    [
        ("", 5, [""]),
        ("数据安全", 4, ["数据安全"]),
        ("数据安全审计", 4, ["数据安全", "审计"]),
        ("数据安全，审计", 4, ["数据安", "全，审计"]),
        ("数据安（全）审", 4, ["数据安", "（全）审"]),
        ("one two three", 4, ["one two", "three"]),
        ("a\n\nb", 4, ["a", "", "b"]),
        ("审计 audit 日志", 4, ["审计", "audit 日", "志"]),
    ],
)
def test_lines_end_where_readers_expect_it(report_font, text, ems, expected):
    """Latin between words, Chinese between characters, marks stay with what they belong to."""
    assert lines(report_font, text, ems) == expected


def test_a_long_name_is_broken_at_a_joint(report_font):
    """A name longer than a line is broken after - / . and such where one is not in the first third of it."""
    assert lines(report_font, "mdl-pii-classifier-production", 8) == ["mdl-pii-", "classifier-", "production"]


def test_a_word_without_joints_is_broken_anywhere(report_font):
    """5000 characters without a space fill lines that are as full as they can be."""
    parts = lines(report_font, "x" * 5000, 10)
    assert "".join(parts) == "x" * 5000
    assert len({len(part) for part in parts[:-1]}) == 1
    assert all(report_font.width(part, SIZE) <= 100.001 < report_font.width(part + "x", SIZE) for part in parts[:-1])


@given(
    text=st.text(st.sampled_from("ab /-.，。（）中文字\u3000\n W1"), max_size=80),
    ems=st.floats(1.5, 12),
)
def test_nothing_is_lost_and_no_line_is_too_long(report_font, text, ems):
    """Lines have the text's characters in their order but for spaces at their ends, and none is wider than the room."""
    parts = lines(report_font, text, ems)
    assert "".join(parts).replace(" ", "") == text.replace("\n", "").replace(" ", "")
    assert all(report_font.width(part, SIZE) <= ems * SIZE + 0.01 for part in parts)


def test_a_room_narrower_than_a_character_ends(report_font):
    """Even then each line has a character, so that breaking ends."""
    assert lines(report_font, "中文", 0.5) == ["中", "文"]
