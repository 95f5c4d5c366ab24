"""The lines of an export."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.audit.format import export_file
from app.audit.format.export_file import CheckpointLine, Consistency, EndLine, EntryLine, Header, LineRefused, NotAnExport, PurgedLine
from app.audit.format.leaf import Leaf

HASH, OTHER = bytes(range(32)), bytes(range(32, 64))
LEAF = Leaf(2, "01900000-0000-7000-8000-000000000002", "2026-11-30T00:00:00.000000Z", "d400", OTHER).text
BODY = b'{"body":1,"leaf":"%b","skeleton":{"purged":{}}}' % (b"00" * 32)
"""An object that has the names of the line around it, too."""
HEADER = Header(
    log="sluice/0192",
    first=2,
    end=3,
    size=4,
    chain=HASH,
    left=(HASH,),
    right=(OTHER,),
    note="a\n4\n",
    certificates=(b"\x30\x01",),
    consistency=(Consistency(1, (HASH, OTHER)),),
)
LINES = [
    EntryLine(BODY, LEAF, HASH),
    PurgedLine(LEAF, HASH),
    CheckpointLine("sluice/0192\n3\n…\n\n\u2014 x y\n"),
    EndLine(1, HASH),
]


def test_a_header_has_one_spelling():
    """The header is the format's mark, then its fields in order, compact."""
    h, o = HASH.hex(), OTHER.hex()

    assert (
        b'{"sluice_audit_export":1,"certificates":["MAE="],"chain":"%b","consistency":[{"path":["%b","%b"],"size":1}],"end":3,"first":2,'
        b'"left":["%b"],"log":"sluice/0192","note":"a\\n4\\n","right":["%b"],"size":4}\n'
        % (h.encode(), h.encode(), o.encode(), h.encode(), o.encode())
    ) == HEADER.line()


def test_lines_have_one_spelling():
    """Bodies and leaves are their own bytes between fixed pieces; the other lines are sorted and compact."""
    h = HASH.hex()

    assert [
        f'{{"body":{BODY.decode()},"leaf":"{h}","skeleton":{LEAF.decode()}}}\n',
        f'{{"leaf":"{h}","purged":{LEAF.decode()}}}\n',
        '{"checkpoint":"sluice/0192\\n3\\n…\\n\\n\u2014 x y\\n"}\n',
        '{"end":{"chain":"' + h + '","entries":1}}\n',
    ] == [line.line().decode() for line in LINES]


def test_what_is_written_is_read():
    """Each line reads as what it was written from."""
    assert export_file.read_header(HEADER.line()) == HEADER
    assert [export_file.read_line(line.line(), 2) for line in LINES] == LINES


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "the file is empty"),
        (HEADER.line().replace(b"\n", b"\r\n"), "line ends were changed on the way"),
        (b"\x00\xff\n", "does not begin"),
        (b'{"body":{}}\n', "does not begin"),
        (b'{"sluice_audit_export":x,\n', "does not begin"),
        (HEADER.line().replace(b":1,", b":2,", 1), "format 2, this program reads 1"),
    ],
)
def test_another_file_is_not_an_export(line: bytes, why: str):
    """A file that begins otherwise, or is of an unknown format, is not checked at all."""
    with pytest.raises(NotAnExport, match=why):
        export_file.read_header(line)


@pytest.mark.parametrize(
    "line",
    [
        HEADER.line()[:-1],
        HEADER.line()[:-10] + b"\n",
        HEADER.line().replace(b'"end":3', b'"end": 3'),
        HEADER.line().replace(b'"end":3', b'"end":-3'),
        HEADER.line().replace(b'"end":3', b'"end":3.0'),
        HEADER.line().replace(b'"end":3', b'"end":true'),
        HEADER.line().replace(b'"end":3', b'"end":99999999999999999999'),
        HEADER.line().replace(b'"end":3,', b""),
        HEADER.line().replace(b'"end":3', b'"end":3,"end":3'),
        HEADER.line().replace(b"MAE=", b"MAF="),
        HEADER.line().replace(b"MAE=", b"M!"),
        HEADER.line().replace(b"0a0b", b"0A0b"),
        HEADER.line().replace(b"0a0b", b"0a"),
        HEADER.line().replace(b'"left":[', b'"left":[[],'),
        HEADER.line().replace(b'"note":"a', b'"note":7,"b":"a'),
    ],
)
def test_a_header_that_is_spelled_otherwise_is_refused(line: bytes):
    """A header with a field too few, too many, mistyped or written in another way is refused as line 1."""
    with pytest.raises(LineRefused, match="line 1: not a header"):
        export_file.read_header(line)


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"[]\n",
        b"nonsense\n",
        b"\xff\xfe\n",
        b'{"entry":{}}\n',
        b'{"body":{}}\n',
        b'{"body":{},"leaf":"' + b"0" * 64 + b'"}\n',
        LINES[0].line()[:-1],
        LINES[0].line().replace(b"0a0b", b"0A0b"),
        LINES[0].line().replace(b"0a0b", b"0g0b"),
        LINES[0].line().replace(b"0a0b", b"0a"),
        LINES[1].line()[:-1],
        LINES[1].line().replace(b"0a0b", b"0A0b"),
        LINES[1].line().replace(b'"purged"', b'"x":1,"purged"'),
        LINES[2].line().replace(b'"sluice', b' "sluice'),
        LINES[2].line()[:-1] + b"\r\n",
        LINES[3].line()[:-1],
        LINES[3].line().replace(b"}}", b"}} "),
    ],
)
def test_a_line_that_is_spelled_otherwise_is_refused_by_number(line: bytes):
    """A line that no export has is refused with its number."""
    with pytest.raises(LineRefused, match="line 17: "):
        export_file.read_line(line, 17)


@given(st.sampled_from([HEADER, *LINES]), st.data())
def test_a_changed_byte_changes_what_a_line_says(line, data: st.DataObject):
    """With one byte changed a line is refused, or reads as another value."""
    written = line.line()
    at, byte = data.draw(st.integers(0, len(written) - 1)), data.draw(st.integers(0, 255))
    changed = written[:at] + bytes([byte]) + written[at + 1 :]
    if changed == written:
        return
    try:
        read = export_file.read_header(changed) if line is HEADER else export_file.read_line(changed, 2)
    except (LineRefused, NotAnExport):
        return

    assert read != line


def test_a_line_without_end_is_bounded():
    """A line of 100 MB comes in pieces of the largest line."""
    stream = io.BytesIO(b"x" * (2 * export_file.MAX_LINE_BYTES + 1) + b"\ny\n")

    assert [len(line) for line in export_file.lines(stream)] == [export_file.MAX_LINE_BYTES] * 2 + [2, 2]
