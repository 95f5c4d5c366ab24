"""Reports are valid as they were signed, and of what happened to others the cause is named (row 64)."""

from pathlib import Path

import pytest

from app.reports.checking.check import check
from app.signing.certificates import Certificate
from tests.fixtures.report_cases import ReportCase, report_cases


@pytest.mark.parametrize("case", report_cases(), ids=lambda case: case.name)
def test_what_is_said_of_it(case: ReportCase, tmp_path: Path):
    """Each report of the table has its verdict, and the cause in one word and in a sentence."""
    result = check(case.written_to(tmp_path), Certificate.load_pem(case.root))

    assert (result.verdict, result.cause) == (case.verdict, case.cause), result.words
    assert result.words
