"""The register of processing is the operator's own words, strictly read, and printed with what it leaves open."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import ConfigError
from app.reports.content.register import FILE, load_register
from app.reports.document import Facts, Heading, Paragraph
from tests.fixtures.night import NOON, NightLog, allowed, quota
from tests.fixtures.report_content import cells, english, gdpr_of, under, whole_text

REGISTER = """
version: "7"
changed: 2026-11-01
controller: {name: {zh: 示例银行, en: Example Bank}, contact: privacy@example.com}
protection_officer: {name: Dora, contact: dpo@example.com}
activities:
  - id: scoring
    name: {zh: 信用评分, en: Credit scoring}
    role: controller
    purposes: {zh: 授信, en: lending}
    data: {zh: 申请资料, en: applications}
    models: [mdl-fin-risk-v3]
    automated: {zh: 评分供人参考, en: a score that a person reads}
    pipl: [sensitive, automated]
    assessment: {done: 2024-02-29, report: DPIA-7, kept_until: 2027-02-28}
  - id: hosting
    name: Hosting
    role: processor
    on_behalf_of: Other Bank
    purposes: running models
    assessment: {done: 2025-03-01, report: DPIA-8, kept_until: 2028-03-01}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "register.yaml"
    path.write_text(REGISTER, "utf-8")
    return path


def test_register_is_read(file: Path) -> None:
    """Version, SM3 of the file (by OpenSSL), and the activity that a model is part of."""
    register = load_register(file)
    assert (register.version, register.changed) == ("7", "2026-11-01")
    assert register.sm3 == hashlib.new("sm3", file.read_bytes()).hexdigest()
    activity = register.of_model("mdl-fin-risk-v3")
    assert activity is not None
    assert activity.id == "scoring"
    assert register.of_model("m") is None


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("role: processor", "role: other", "activities[1].role"),
        ("id: hosting", "id: scoring", "activity 'scoring' stands twice"),
        ("done: 2024-02-29", "done: soon", "activities[0].assessment.done"),
        ("pipl: [sensitive", "pipl: [secret", "activities[0].pipl[0]"),
        ("role: processor", "role: controller", "activities[1]: on_behalf_of is for processors"),
        ("    purposes: running models\n", "", "activities[1].purposes"),
        ('version: "7"', "version: 7", "version"),
        ("changed:", "changd:", "changd"),
        ("purposes: running models", "purposes: 7", "activities[1].purposes.text: Input should be a valid string; write it in quotes"),
        ("purposes: running models", "purposes: {zh: 题}", "activities[1].purposes.both.en: Field required"),
    ],
)
def test_wrong_field_is_named(file: Path, old: str, new: str, named: str) -> None:
    """What is misspelt is refused with the path of the field, not passed over."""
    assert old in REGISTER
    file.write_text(REGISTER.replace(old, new), "utf-8")
    with pytest.raises(ConfigError) as caught:
        load_register(file)
    assert named in caught.value.message
    assert str(file) in caught.value.message
    assert "docs/how-to/write-a-clause.md" in caught.value.advice


def test_missing_file_is_told_by_its_setting(tmp_path: Path) -> None:
    """A path alone does not say which of many settings names it."""
    for path, problem in ((tmp_path / "none.yaml", "no such file"), (tmp_path, "Is a directory")):
        with pytest.raises(ConfigError) as caught:
            load_register(path)
        assert caught.value.message == f"report.register_file: {path}: {problem}"
        assert "report.register_file" in caught.value.advice


def test_register_is_printed(file: Path) -> None:
    """Art. 30: both roles with their own letters, who is responsible, and what is open as open."""
    document = gdpr_of(NightLog.of(quota("acme")).evidence(), processing=load_register(file))
    blocks = under(document, "Records of processing (Art. 30)")
    facts = [{english(label): english(value) for label, value in block.pairs} for block in blocks if isinstance(block, Facts)]
    assert [english(block.text) for block in blocks if isinstance(block, Heading) and block.level == 3] == ["Credit scoring", "Hosting"]
    responsible, controller, processor = facts
    assert responsible["(a) controller and contact"] == "Example Bank · privacy@example.com"
    assert responsible["(a) representative"] == "not filled in"
    assert responsible["version"] == "7"
    assert controller["(b) purposes"] == "lending"
    assert controller["(d) recipients"] == "not filled in"
    assert controller["models"] == "mdl-fin-risk-v3"
    assert processor["(a) on behalf of"] == "Other Bank"
    assert processor["(b) processing carried out"] == "running models"


def test_assessments_are_kept_three_years(file: Path) -> None:
    """PIPL Art. 56: a report of 29 February 2024 must be kept beyond 28 February 2027; one of 1 March 2025 until 1 March 2028."""
    document = gdpr_of(NightLog.of(quota("acme")).evidence(), processing=load_register(file))
    rows = cells(document, "Register of impact assessments (PIPL Art. 55 and 56)")
    assert [row[3:] for row in rows] == [
        ["sensitive information · automated decisions", "2024-02-29\nDPIA-7", "2027-02-28 (less than three years)"],
        ["none registered", "2025-03-01\nDPIA-8", "2028-03-01"],
    ]


def test_consultations_say_what_the_register_says(file: Path) -> None:
    """Art. 15(1)(b) and (h): categories of data and automated decisions of the model's activity, else that the register does not say."""
    evidence = NightLog.of(allowed(1), allowed(2, NOON, model="other")).evidence()
    rows = cells(gdpr_of(evidence, processing=load_register(file)), "By person")
    assert sorted((row[2], *row[8:]) for row in rows) == [
        ("mdl-fin-risk-v3", "applications", "a score that a person reads"),
        ("other", "the register does not say", "the register does not say"),
    ]


def test_register_that_names_nobody_says_so(file: Path) -> None:
    """The register that comes with Sluice is no operator's: the report warns."""
    evidence = NightLog.of(quota("acme")).evidence()
    warned = [block for block in under(gdpr_of(evidence), "Records of processing (Art. 30)") if isinstance(block, Paragraph)]
    assert "names no controller" in english(warned[0].text)
    assert warned[0].style == "warning"
    register = load_register(file)
    assert "names no controller" not in whole_text(gdpr_of(evidence, processing=register))
    nobody = replace(register, activities=())
    assert "no activity as a controller" in whole_text(gdpr_of(evidence, processing=nobody))


def test_register_that_comes_with_sluice_is_in_the_repository() -> None:
    """It loads, and says of each activity how long data is kept and how it is protected."""
    assert FILE.is_file()
    assert all(each.retention and each.security and each.automated for each in load_register().activities)
