"""Where lines end: between words of Latin, between characters of Chinese, never before a closing mark or after an opening one.

A word longer than a line is broken where a name has a joint (- / . : and such), else anywhere. Linear in the length of the text.
"""

import re
from bisect import bisect_right
from itertools import accumulate

from app.reports.layout.font import Font

_WIDE = "\u2e80-\u303f\u3040-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
_OPENING = "（《〈「『【〔“‘［｛"
_CLOSING = "，。、；：？！）》〉」』】〕”’…—％·］｝,.;:!?)}%"
_PIECE = re.compile(f"[{_OPENING}]*(?:[{_WIDE}]|[^{_WIDE}{_OPENING} ]+)[{_CLOSING}]* *|.")
_JOINT = re.compile(r"[-/_.:@=,&?|;+](?=[^-/_.:@=,&?|;+])")


def broken(text: str, font: Font, size: float, width: float) -> list[str]:
    """Lines of at most `width` points that make up the text, spaces at their ends left out; an empty text is one empty line.

    The text has only characters that the font shows, and line ends, which are kept.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        lines += [line] if font.width(line, size) <= width else _filled(line, font, size, width)
    return lines


def _filled(text: str, font: Font, size: float, width: float) -> list[str]:
    """Lines filled as far as they go."""
    lines: list[str] = []
    line, used = "", 0.0
    for piece in _PIECE.findall(text):
        bare = font.width(piece.rstrip(" "), size)
        if line and used + bare > width:
            lines.append(line.rstrip(" "))
            line, used = "", 0.0
        rest = piece
        if bare > width:
            *whole, rest = _cut(piece, font, size, width)
            lines += whole
        line += rest
        used += font.width(rest, size)
    return [*lines, line.rstrip(" ")]


def _cut(word: str, font: Font, size: float, width: float) -> list[str]:
    """A word longer than a line, in parts that are none; the last may have room behind it."""
    ends = list(accumulate(font.widths(word)))
    parts, begin = [], 0
    while (ends[-1] - (ends[begin - 1] if begin else 0)) * size > width:
        room = (ends[begin - 1] if begin else 0) + width / size
        end = max(begin + 1, bisect_right(ends, room))
        joints = [match.end() for match in _JOINT.finditer(word, begin + (end - begin) // 3, end)]
        end = joints[-1] if joints else end
        parts.append(word[begin:end])
        begin = end
        if begin == len(word):
            return parts
    return [*parts, word[begin:]]
