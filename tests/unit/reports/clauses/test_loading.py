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

CASE: dict[str, Any] = {"verdict": "not_met", "measure": "gaps", "above": 0}
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
        ({"evidence": ["gasp"]}, "x.yaml: clauses[0] (x-1).evidence: no measure is called 'gasp'"),
        ({"cases": [{"verdict": "not_met", "measure": "gasp", "above": 0}]}, "clauses[0] (x-1).cases: no measure is called 'gasp'"),
        ({"cases": [{"verdict": "not_met", "measure": "gaps"}]}, "clauses[0] (x-1).cases[0]: needs one of above, below, equals"),
        ({"cases": [{"verdict": "good", "measure": "gaps", "above": 0}]}, "clauses[0] (x-1).cases[0].verdict"),
        ({"cases": [{"verdict": "met", "measure": "gaps", "above": "0"}]}, "clauses[0] (x-1).cases[0].above"),
        ({"cases": [{"verdict": "not_met", "measure": "gaps", "above": float("nan")}]}, "clauses[0] (x-1).cases[0].above"),
        ({"cases": []}, "clauses[0] (x-1): otherwise: met needs a case"),
        ({"title": {"zh": "题"}}, "clauses[0] (x-1).title.en"),
        ({"title": "题"}, "clauses[0] (x-1).title"),
        ({"confirmed": "yes"}, "clauses[0] (x-1).confirmed"),
        ({"remarks": "x"}, "clauses[0] (x-1).remarks"),
        ({"id": "X 1"}, "clauses[0] (X 1).id"),
        ({"id": 7}, "clauses[0].id: Input should be a valid string; write it in quotes"),
        ({"number": 7}, "clauses[0] (x-1).number: Input should be a valid string; write it in quotes"),
        ({"because": {"zh": "题", "en": "x"}}, "clauses[0] (x-1).because"),
        ({"cases": [CASE | {"because": {"zh": "有 {measure}", "en": "{mesure}"}}]}, "cases[0]: because: {mesure} stands for nothing"),
        ({"cases": [CASE | {"because": {"zh": "有 {measure", "en": "x"}}]}, "cases[0]: because: {measure x stands for nothing"),
        ({"title": {"zh": {"measure": None}, "en": "x"}}, "clauses[0] (x-1).title.zh: Input should be a valid string; write it in quotes"),
        ({"remark": {"zh": "题", "en": "{measure} times"}}, "clauses[0] (x-1): remark: {measure} stands for nothing here"),
    ],
)
def test_wrong_field_is_named(write: Write, change: dict[str, Any], named: str) -> None:
    """Each mistake is told with the file and the path of the field."""
    folder = write(CLAUSE | change)
    with pytest.raises(ConfigError) as caught:
        load_clauses(MEASURES, folder)
    assert named in caught.value.message
    assert "x.yaml" in caught.value.message
    assert "docs/how-to/write-a-clause.md" in caught.value.advice or "Measures are" in caught.value.advice


def test_slip_in_a_name_is_told_once(write: Write) -> None:
    """`otherwize` is `otherwise`, and not one field too many and one too few."""
    slipped = {("otherwize" if name == "otherwise" else name): value for name, value in CLAUSE.items()}
    with pytest.raises(ConfigError) as caught:
        load_clauses(MEASURES, write(slipped))
    assert caught.value.message.endswith("x.yaml: clauses[0] (x-1).otherwize: there is no such field; write otherwise")


@pytest.mark.parametrize("text", ["", "- id: x-1\n", "clauses\n"])
def test_file_that_is_no_mapping_is_told_what_it_must_have(tmp_path: Path, text: str) -> None:
    """An empty file, a list or a word: in words of the file, not of the program."""
    (tmp_path / "x.yaml").write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=r"x\.yaml: the file must have `report` and `clauses`"):
        load_clauses(MEASURES, tmp_path)


@pytest.mark.parametrize("because", ["{zh: {measure} 条, en: x}", "{zh: x, en:\tx: y}"])
def test_what_is_no_yaml_says_how_to_write_it(tmp_path: Path, because: str) -> None:
    """Braces without quotes, and tabs: the remedy stands beside the words of the parser."""
    (tmp_path / "x.yaml").write_text(f"report: mlps\nclauses:\n  - cases:\n      - because: {because}\n", "utf-8")
    with pytest.raises(ConfigError) as caught:
        load_clauses(MEASURES, tmp_path)
    assert "in quotes" in caught.value.advice
    assert "tabs" in caught.value.advice


def test_same_id_twice_is_refused(write: Write) -> None:
    """Two clauses with one id could not be told apart in the manifest, also in two files."""
    write(CLAUSE, name="a.yaml")
    with pytest.raises(ConfigError, match=r"b\.yaml: clauses\[0\] \(x-1\)\.id: 'x-1' stands in a\.yaml already"):
        load_clauses(MEASURES, write(CLAUSE, name="b.yaml"))


def test_empty_folder_is_refused(tmp_path: Path) -> None:
    """A report without clauses would look as if all was well."""
    for folder, problem in ((tmp_path, "no clauses in"), (tmp_path / "none", "no such folder")):
        with pytest.raises(ConfigError, match=rf"^report\.clauses: {folder}: {problem}"):
            load_clauses(MEASURES, folder)


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
