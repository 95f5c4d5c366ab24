"""What docs/how-to/write-a-clause.md shows can be copied."""

import re
from pathlib import Path

import pytest
import yaml

from app.reports.clauses.judging import judge
from app.reports.clauses.loading import load_clauses
from app.reports.clauses.measures import MEASURES, measure
from app.reports.content.register import load_register
from app.setting_sections import ReportSettings
from tests.fixtures.night import NightLog, read

REPOSITORY = Path(__file__).resolve().parents[4]
PAGE = REPOSITORY / "docs" / "how-to" / "write-a-clause.md"
EXAMPLE = REPOSITORY / "examples" / "sluice.yaml"
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
def test_settings_of_the_page_can_stand_in_the_file_of_make_run(block: str) -> None:
    """The line is one of settings of reports, and keeps what `make run` has put there."""
    given = yaml.safe_load(block)["report"]
    assert given.keys() <= ReportSettings.model_fields.keys()
    assert given.items() >= yaml.safe_load(EXAMPLE.read_text("utf-8"))["report"].items()
