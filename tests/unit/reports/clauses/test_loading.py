"""Clauses are data: what YAML says is what reports judge, and what is wrong with it is told by file and field."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.errors import ConfigError
from app.reports.clauses.clause import Case
from app.reports.clauses.judging import judge
from app.reports.clauses.loading import FOLDER, load_clauses
from app.reports.clauses.measures import MEASURES
from app.reports.document import Words

CLAUSE: dict[str, Any] = {
    "id": "x-1",
    "standard": "X",
    "number": "1",
    "title": {"zh": "题", "en": "title"},
    "requirement": {"zh": "要求", "en": "what is asked"},
    "source": "X, 1",
    "confirmed": True,
    "evidence": ["gaps"],
    "cases": [{"verdict": "not_met", "measure": "gaps", "above": 0, "because": {"zh": "有 {measure}", "en": "{measure}"}}],
    "otherwise": "met",
}

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def _write(*clauses: dict[str, Any], report: str = "mlps", name: str = "x.yaml") -> Path:
        (tmp_path / name).write_text(yaml.safe_dump({"report": report, "clauses": list(clauses)}, allow_unicode=True), "utf-8")
        return tmp_path

    return _write


def test_clause_is_a_yaml_entry(write: Write) -> None:
    """A new clause is an entry in a file; no code knows of it."""
    loaded = load_clauses(MEASURES, write(CLAUSE))
    (clause,) = loaded.mlps
    assert (clause.id, clause.standard, clause.number, clause.title) == ("x-1", "X", "1", Words("题", "title"))
    assert clause.cases == (Case("not_met", "gaps", above=0, because=Words("有 {measure}", "{measure}")),)
    assert loaded.gdpr == ()


def test_files_are_of_the_report_that_they_name(write: Write) -> None:
    """Files in order of their names, each to its report."""
    write(CLAUSE, name="b.yaml")
    folder = write(CLAUSE | {"id": "y-1"}, CLAUSE | {"id": "y-2"}, report="gdpr", name="a.yaml")
    loaded = load_clauses(MEASURES, folder)
    assert [clause.id for clause in loaded.mlps] == ["x-1"]
    assert [clause.id for clause in loaded.gdpr] == ["y-1", "y-2"]


def test_fingerprint_is_of_names_and_texts(write: Write) -> None:
    """SM3 over name, length and text of each file: by OpenSSL's own SM3."""
    folder = write(CLAUSE)
    text = (folder / "x.yaml").read_bytes()
    expected = hashlib.new("sm3", f"x.yaml {len(text)}\n".encode() + text).hexdigest()
    assert load_clauses(MEASURES, folder).sm3 == expected


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"evidence": ["gasp"]}, "x.yaml: clauses[0].evidence: no measure is called 'gasp'"),
        ({"cases": [{"verdict": "not_met", "measure": "gasp", "above": 0}]}, "clauses[0].cases: no measure is called 'gasp'"),
        ({"cases": [{"verdict": "not_met", "measure": "gaps"}]}, "clauses[0].cases[0]: needs one of above, below, equals"),
        ({"cases": [{"verdict": "good", "measure": "gaps", "above": 0}]}, "clauses[0].cases[0].verdict"),
        ({"cases": [{"verdict": "met", "measure": "gaps", "above": "0"}]}, "clauses[0].cases[0].above"),
        ({"cases": [{"verdict": "not_met", "measure": "gaps", "above": float("nan")}]}, "clauses[0].cases[0].above"),
        ({"cases": []}, "clauses[0]: otherwise: met needs a case"),
        ({"title": {"zh": "题"}}, "clauses[0].title.en"),
        ({"title": "题"}, "clauses[0].title"),
        ({"confirmed": "yes"}, "clauses[0].confirmed"),
        ({"remarks": "x"}, "clauses[0].remarks"),
        ({"id": "X 1"}, "clauses[0].id"),
    ],
)
def test_wrong_field_is_named(write: Write, change: dict[str, Any], named: str) -> None:
    """Each mistake is told with the file and the path of the field."""
    folder = write(CLAUSE | change)
    with pytest.raises(ConfigError) as caught:
        load_clauses(MEASURES, folder)
    assert named in caught.value.message
    assert "x.yaml" in caught.value.message


def test_same_id_twice_is_refused(write: Write) -> None:
    """Two clauses with one id could not be told apart in the manifest, also in two files."""
    write(CLAUSE, name="a.yaml")
    with pytest.raises(ConfigError, match=r"b\.yaml: clauses\[0\]\.id: 'x-1' stands in a\.yaml already"):
        load_clauses(MEASURES, write(CLAUSE, name="b.yaml"))


def test_empty_folder_is_refused(tmp_path: Path) -> None:
    """A report without clauses would look as if all was well."""
    with pytest.raises(ConfigError, match="no clauses"):
        load_clauses(MEASURES, tmp_path)


def test_clauses_that_come_with_sluice() -> None:
    """They load, name the clauses that the reports are for, and are met by nobody of whom nothing is known."""
    loaded = load_clauses(MEASURES)
    numbers = {clause.number for clause in loaded.mlps if clause.standard == "GB/T 22239-2019"}
    assert numbers == {
        *(f"8.1.4.3 {letter})" for letter in "abcd"),
        *(f"8.1.5.2 {letter})" for letter in "ab"),
        "8.1.5.4 d)",
        *(f"8.1.4.7 {letter})" for letter in "ab"),
        *(f"8.1.4.11 {letter})" for letter in "ab"),
    }
    units = [clause.source.rpartition(", ")[2] for clause in loaded.mlps if clause.number.startswith("8.1.4.3 ")]
    assert units == ["L3-CES1-12", "L3-CES1-13", "L3-CES1-14", "L3-CES1-15"]
    (law,) = [clause for clause in loaded.mlps if clause.id == "csl-retention"]
    assert "Art. 21(3)" in law.number
    assert "Art. 23(3)" in law.number
    assert {clause.number for clause in loaded.gdpr} >= {"Art. 12(3)", "Art. 30(1)(a)–(g)", "Art. 33(1)", "Art. 45", "Art. 55", "Art. 56"}
    assert {judge(clause, {}).verdict for clause in (*loaded.mlps, *loaded.gdpr)} == {"manual"}


def test_unconfirmed_clauses_are_those_that_nobody_could_check() -> None:
    """What was not compared with its source says so."""
    loaded = load_clauses(MEASURES)
    unconfirmed = {clause.id for clause in (*loaded.mlps, *loaded.gdpr) if not clause.confirmed}
    assert unconfirmed == {"gbt39786-log-integrity", "network-data-12", "ai-act-logs"}


def test_folder_is_in_the_repository() -> None:
    """The clauses are files beside the code, one for each law or standard."""
    assert {path.name for path in FOLDER.iterdir()} == {"mlps.yaml", "gdpr.yaml", "pipl.yaml"}
