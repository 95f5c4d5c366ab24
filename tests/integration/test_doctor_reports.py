"""What `sluice doctor` says of the nightly reports."""

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.doctor import external
from tests.fixtures.report_content import unprintable_clauses

pytestmark = pytest.mark.usefixtures("forbidden")
UNREACHED = "postgresql://nobody@localhost:1/nothing"


def found(folder: Path, **settings: Any) -> dict[str, tuple[str, str]]:
    """Level and message by name; the passphrase is in a file unless the settings say otherwise."""
    report = {"passphrase": "file:/run/secrets/reports"} | settings.pop("report", {})
    findings = external(folder, {"report": report, **settings}, url=UNREACHED)
    return {name: (finding["level"], finding["message"]) for name, finding in findings.items()}


def test_what_reports_need_is_there(tmp_path: Path):
    """Clauses, register and folder; the keys come with the first night, at the time that is set."""
    told = found(tmp_path, report={"zone": "Asia/Shanghai"})
    assert {told[name][0] for name in ("clauses", "reports", "reportkeys", "nightly")} == {"ok"}
    assert told["reports"][1] == f"{tmp_path / 'reports'}: 0 nights"
    assert told["nightly"][1] == "serve has them made at 01:00 Asia/Shanghai of the day after"


def test_wording_that_the_font_lacks_is_named(tmp_path: Path):
    """A font that lacks a character of a clause is found before a night fails, and the character named."""
    folder = unprintable_clauses(tmp_path / "clauses")
    level, message = found(tmp_path, report={"clauses": str(folder)})["font"]
    assert level == "warn"
    assert "lacks characters of the reports' own wording: 😀[U+1F600]" in message


@pytest.mark.parametrize(
    ("settings", "name", "level", "says"),
    [
        ({"report": {"clauses": "."}}, "clauses", "fail", "sluice.yaml: report: Input should be"),
        ({"report": {"register_file": "none.yaml"}}, "clauses", "fail", "none.yaml"),
        ({"report": {"path": "sluice.yaml"}}, "reports", "fail", "sluice.yaml: Not a directory"),
        ({"report": {"keys": "keys"}}, "reportkeys", "warn", "has no signer yet"),
        ({"report": {"keys": "audit-keys"}}, "reportkeys", "fail", "the report keys are not the log's"),
        ({"report": {"passphrase": ""}}, "nightly", "warn", "serve has no reports made"),
        ({"report": {"passphrase": "fd:3"}}, "nightly", "warn", "a descriptor is read once"),
        ({"report": {"at": "off", "passphrase": ""}}, "nightly", "ok", "report.at is off"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, settings: dict[str, Any], name: str, level: str, says: str):
    """Each with its level; what keeps reports from being made is no reason not to decide."""
    (tmp_path / "keys").mkdir()
    told = found(tmp_path, **settings)[name]
    assert told[0] == level
    assert says in told[1]
