"""What docs/how-to/write-a-clause.md shows can be copied."""

import re
from pathlib import Path

import pytest

from app.reports.clauses.judging import judge
from app.reports.clauses.loading import load_clauses
from app.reports.clauses.measures import MEASURES, measure
from app.reports.content.register import load_register
from app.setting_sections import ReportSettings
from tests.fixtures.night import NightLog, read

PAGE = Path(__file__).resolve().parents[4] / "docs" / "how-to" / "write-a-clause.md"
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_clause_of_the_page_is_judged(tmp_path: Path) -> None:
    """The clause loads, and says what the page says: refused readings are for a person, none is met."""
    (tmp_path / "house.yaml").write_text(BLOCKS[1], "utf-8")
    (clause,) = load_clauses(MEASURES, tmp_path).mlps
    assert judge(clause, measure(NightLog.of(read()).evidence())).verdict == "met"
    judged = judge(clause, measure(NightLog.of(read(), read(outcome="refused")).evidence()))
    assert (judged.verdict, judged.because.en) == ("manual", "readings refused: 1")


def test_register_of_the_page_is_read(tmp_path: Path) -> None:
    """The register loads."""
    path = tmp_path / "register.yaml"
    path.write_text(BLOCKS[3], "utf-8")
    assert [activity.id for activity in load_register(path).activities] == ["credit-scoring"]


@pytest.mark.parametrize("block", [BLOCKS[0], BLOCKS[2]])
def test_settings_of_the_page_are_settings(block: str) -> None:
    """Both names are settings of reports."""
    (name,) = re.findall(r"\{(\w+):", block)
    assert name in ReportSettings.model_fields
