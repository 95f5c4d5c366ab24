"""`sluice policy` as an author calls it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.policy import app
from app.errors import BadRequest, PolicyRefused
from app.policy.examples import EXAMPLES
from tests.fixtures.policy import write_rule

pytestmark = pytest.mark.usefixtures("opa_binary")


def call(*arguments: object) -> str:
    """What a command prints; its error is raised as it is, since the outermost command turns it into an exit code."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_check_names_groups_and_revision(rego_folder: Path) -> None:
    """The groups, the revision and no warning, as JSON."""
    document = json.loads(call("check", rego_folder, "--output", "json"))

    assert document["groups"]["readings"] == ["pressure"]
    assert document["warnings"] == []
    assert len(document["revision"]) == 24


def test_check_refuses_with_exit_code_five(rego_folder: Path) -> None:
    """A broken rule is refused with its place, under the code of failed policies."""
    write_rule(rego_folder, "mine", "deny := true")

    with pytest.raises(PolicyRefused, match=r"rules/mine/mine\.rego:8") as refused:
        call("check", rego_folder)

    assert refused.value.exit_code == 5


def test_test_tells_coverage_and_what_no_test_reaches(rego_folder: Path) -> None:
    """All of our lines are reached; a rule without tests is named, and refused below a threshold."""
    assert "100.0 %" in call("test", rego_folder)

    write_rule(rego_folder, "mine", 'oblige contains {"code": "x"} if input.tenant.id == "a"')
    assert "not reached: rules/mine/mine.rego:8" in call("test", rego_folder)
    with pytest.raises(PolicyRefused, match="below 100 %"):
        call("test", rego_folder, "--threshold", "100")


def test_test_names_what_failed(rego_folder: Path) -> None:
    """A failed test is named with its file and line."""
    (rego_folder / "rules/known/more_test.rego").write_text("package more_test\n\ntest_wrong if 1 == 2\n")

    with pytest.raises(PolicyRefused, match=r"rules/known/more_test\.rego:3: test_wrong failed"):
        call("test", rego_folder)


def test_eval_shows_each_rule_and_the_combination(rego_folder: Path, tmp_path: Path) -> None:
    """0.86 of the cache is half way between the watermarks, so pressure sheds half; quota limits the tenant to 50 a second."""
    request = tmp_path / "request.json"
    request.write_text(json.dumps(EXAMPLES["quiet"]))
    readings = tmp_path / "readings.json"
    readings.write_text(json.dumps({"live": 1, "kv_mean": 0.86}))

    document = json.loads(call("eval", request, "--path", rego_folder, "--readings", readings, "--output", "json"))

    assert document["rules"]["pressure"] == {"shed": [pytest.approx(0.5)]}
    assert (document["terms"]["shed"], document["terms"]["shed_rule"]) == (pytest.approx(0.5), "pressure")
    assert {"rule": "quota", "bucket": "tenant", "dimension": "qps", "limit": 50, "burst": None} in document["terms"]["limits"]
    assert "shed_rule: pressure" in call("eval", request, "--path", rego_folder, "--readings", readings)


def test_eval_refuses_what_is_no_question(rego_folder: Path, tmp_path: Path) -> None:
    """A request as it goes to /decide is no question, and the message says which sections one has."""
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"tenant": "a", "model": "m"}))

    with pytest.raises(BadRequest, match="tenant is no section") as refused:
        call("eval", request, "--path", rego_folder)

    assert "readings" in refused.value.advice


def test_new_begins_a_rule_and_never_overwrites(rego_folder: Path) -> None:
    """The files are printed; a second time is refused."""
    printed = call("new", "night", "--reads", "time", "--path", rego_folder)

    assert "rules/night/night_test.rego" in printed
    assert "night" in call("check", rego_folder)
    with pytest.raises(BadRequest, match="exists"):
        call("new", "night", "--path", rego_folder)


@pytest.mark.parametrize("name", ["Night", "9pm", "two words", "../up"])
def test_new_refuses_names_that_are_no_package(rego_folder: Path, name: str) -> None:
    """A name must be usable as folder and package."""
    with pytest.raises(BadRequest, match="no rule name"):
        call("new", name, "--path", rego_folder)


def test_schemas_drift_is_refused_and_mended(rego_folder: Path) -> None:
    """A schema changed by hand is named until --write renews it."""
    assert "current" in call("schemas", "--path", rego_folder)
    (rego_folder / "schemas/time.json").write_text("{}")

    with pytest.raises(PolicyRefused, match=r"time\.json"):
        call("schemas", "--path", rego_folder)

    assert "current" in call("schemas", "--path", rego_folder, "--write")
