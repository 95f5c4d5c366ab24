"""The golden night: equal evidence gives equal files, whenever and wherever they are made."""

from typing import Any

import orjson
import pytest

from app.reports.layout.font import Font
from tests.golden.make import FILE, golden

HOW = "if it is meant: python -m tests.golden.make, look at the pages, and commit night.json"


@pytest.fixture(scope="module")
def now(report_font: Font) -> dict[str, Any]:
    """The night as the code makes it."""
    return golden(report_font)


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    """The night as it was looked at."""
    return dict(orjson.loads(FILE.read_bytes()))


@pytest.mark.parametrize("part", ["counts", "verdicts", "documents"])
def test_a_night_says_what_it_said(now: dict[str, Any], kept: dict[str, Any], part: str):
    """Counts, verdicts, and every word of both reports."""
    assert now[part] == kept[part], HOW


def test_a_night_is_the_same_bytes(now: dict[str, Any], kept: dict[str, Any]):
    """Before they are compressed and signed, tables and PDFs are equal byte by byte, these where they are set in the same font."""
    pdfs = {name for name in kept["files"] if name.endswith(".pdf") and now["font"] != kept["font"]}
    same = {name: digest for name, digest in now["files"].items() if name not in pdfs}
    assert same == {name: digest for name, digest in kept["files"].items() if name not in pdfs}, HOW
