"""`sluice policy` as an author calls it."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.policy import app
from app.errors import BadRequest, PolicyRefused
from app.policy.examples import EXAMPLES
from app.settings import RULES
from tests.fixtures.policy import write_rule

QUESTION = RULES.parent / "examples/questions/batch.json"

pytestmark = pytest.mark.usefixtures("opa_binary")


def call(*arguments: object) -> str:
    """What a command prints; its error is raised as it is, since the outermost command turns it into an exit code."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_check_names_groups_and_revision(rego_folder: Path) -> None:
    """The groups, the revision and no warning, as JSON."""
    document = json.loads(call("check", rego_folder, "--output", "json"))

    assert document["groups"]["readings"] == ["in_flight", "liveness", "pressure"]
    assert document["warnings"] == []
    assert len(document["revision"]) == 24


def test_check_refuses_with_exit_code_five(rego_folder: Path) -> None:
    """A broken rule is refused with its place, under the code of failed policies."""
    write_rule(rego_folder, "mine", "deny := true")

    with pytest.raises(PolicyRefused, match=r"rules/mine/mine\.rego:8") as refused:
        call("check", rego_folder)

    assert refused.value.exit_code == 5


@pytest.mark.parametrize("mode", ["on", "off", "shadow"])
def test_check_prints_the_mode_of_each_rule(rego_folder: Path, mode: str) -> None:
    """What --set says of a rule is told beside what it reads, and under `modes` as JSON; rules for nodes are no exception."""
    write_rule(rego_folder, "mine", "shed contains 0.1", reads="tenant.sla_class, tenant.region, readings")
    settings = ("--set", f"policy.rules.mine={mode}", "--set", f"policy.rules.isolation={mode}")

    assert f"\nmine: {mode}, reads tenant.region, tenant.sla_class, readings\n" in call("check", rego_folder, *settings)
    modes = json.loads(call("check", rego_folder, *settings, "--output", "json"))["modes"]
    assert (modes["mine"], modes["isolation"], modes["quota"]) == (mode, mode, "on")


def test_a_name_that_no_rule_has_is_refused_by_every_command(rego_folder: Path) -> None:
    """The nearest name is told, whether the folder is checked or a question is tried on it."""
    for command in (("check", rego_folder), ("eval", QUESTION, "--path", rego_folder)):
        with pytest.raises(PolicyRefused, match=r"policy\.rules: no rule is called presure; is pressure meant"):
            call(*command, "--set", "policy.rules.presure=off")


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
    """0.86 of the cache is half way between the watermarks: half is shed, and 1 - 0.6 x 0.86 is left of the tenant's 50 a second."""
    request = tmp_path / "request.json"
    request.write_text(json.dumps(EXAMPLES["quiet"]))
    readings = tmp_path / "readings.json"
    readings.write_text(json.dumps({"live": 1, "kv_mean": 0.86}))

    document = json.loads(call("eval", request, "--path", rego_folder, "--readings", readings, "--output", "json"))

    assert document["folder"] == str(rego_folder)
    assert document["rules"]["pressure"] == {"scale": [{"dimension": "qps", "factor": pytest.approx(0.484)}], "shed": [pytest.approx(0.5)]}
    assert document["terms"]["factors"] == [["qps", pytest.approx(0.484)]]
    assert (document["terms"]["shed"], document["terms"]["shed_rule"]) == (pytest.approx(0.5), "pressure")
    assert {"rule": "quota", "bucket": "tenant", "dimension": "qps", "limit": 50, "burst": None} in document["terms"]["limits"]
    assert "shed: probability=0.5, rule=pressure" in call("eval", request, "--path", rego_folder, "--readings", readings)


def test_eval_refuses_what_is_no_question(rego_folder: Path, tmp_path: Path) -> None:
    """A request as it goes to /decide is no question, and the message says which sections one has."""
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"tenant": "a", "model": "m"}))

    with pytest.raises(BadRequest, match="tenant is a text: this is a request") as refused:
        call("eval", request, "--path", rego_folder)

    assert "readings" in refused.value.advice
    assert "examples/questions/batch.json" in refused.value.advice


def test_eval_honours_the_modes_of_the_settings(rego_folder: Path, tmp_path: Path) -> None:
    """A deny in force, in shadow and off: it refuses, is shown beside the terms, is named and not asked. Rules for nodes are not named."""
    write_rule(rego_folder, "shut", 'deny contains {"code": "shut", "message": "not now", "status": 403} if input.tenant.qps == 5')
    modes = {mode: call("eval", QUESTION, "--path", rego_folder, "--set", f"policy.rules.shut={mode}") for mode in ("on", "shadow", "off")}
    denies = {mode: said.split("\nterms\n")[1].count("deny: rule=shut") for mode, said in modes.items()}
    config = tmp_path / "sluice.yaml"
    config.write_text("policy: {rules: {shut: off, isolation: off}}\n")

    assert denies == {"on": 1, "shadow": 0, "off": 0}
    assert '\nshut (shadow)\n  deny: code=shut, message="not now", status=403\n' in modes["shadow"]
    assert "\nshut (off)\n" in modes["off"]
    tried = json.loads(call("eval", QUESTION, "--path", rego_folder, "--config", config, "--output", "json"))
    assert ("shut" in tried["off"], "shut" in tried["rules"], "isolation" in tried["off"]) == (True, False, False)


def test_new_begins_a_rule_that_reads_fields(rego_folder: Path) -> None:
    """METADATA names them, the rule looks at the first, and a field that no section has is refused."""
    call("new", "late", "--reads", "tenant.sla_class", "--reads", "readings.ttft_ms", "--path", rego_folder)
    text = (rego_folder / "rules/late/late.rego").read_text()

    assert "#   reads: [tenant.sla_class, readings.ttft_ms]\n" in text
    assert "input.tenant.sla_class == refused" in text
    assert "\nlate: shadow, reads tenant.sla_class, readings.ttft_ms\n" in call("check", rego_folder)
    with pytest.raises(BadRequest, match=r"--reads names tenant\.sla: tenant has no such field") as refused:
        call("new", "later", "--reads", "tenant.sla", "--path", rego_folder)
    assert "docs/how-to/write-a-rule.md#what-a-rule-sees" in refused.value.advice


def test_new_compares_the_first_field_before_any_section(rego_folder: Path) -> None:
    """A rule on request and on the least share of device memory begins with the memory, which was asked for by name."""
    call("new", "full", "--reads", "request", "--reads", "readings.memory_floor", "--path", rego_folder)

    assert "input.readings.memory_floor == refused" in (rego_folder / "rules/full/full.rego").read_text()
    assert "\nfull: shadow, reads readings.memory_floor, request\n" in call("check", rego_folder)


def test_new_sends_authors_of_rules_for_nodes_to_their_own_guide(rego_folder: Path) -> None:
    """A field that nodes do not have is refused with the place that lists theirs."""
    with pytest.raises(BadRequest, match="readings has no such field") as refused:
        call("new", "hot", "--kind", "nodes", "--reads", "readings.kv_max", "--path", rego_folder)
    assert "docs/how-to/write-a-rule.md#rules-for-nodes" in refused.value.advice


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


def test_without_a_folder_it_is_the_one_of_the_server_beside(rego_folder: Path, tmp_path: Path) -> None:
    """What serve's own settings in --var name is checked, tested and begun in, and the folder is told."""
    var = tmp_path / "var"
    var.mkdir()
    (var / "sluice.yaml").write_text(f"policy: {{path: {rego_folder}}}\n")
    call("new", "night", "--reads", "time", "--var", var)

    assert (rego_folder / "rules/night/night.rego").is_file()
    assert f"folder: {rego_folder}\n" in call("check", "--var", var)
    assert f"folder: {rego_folder}\n" in call("test", "--var", var)
    assert json.loads(call("check", "--var", var, "--output", "json"))["folder"] == str(rego_folder)
    assert f"folder: {rego_folder}\n" in call("eval", QUESTION, "--var", var)


def test_a_folder_that_is_none_is_named_with_the_remedy(tmp_path: Path) -> None:
    """A folder that does not exist, one above or below the right one, and one that is empty are told apart."""
    (tmp_path / "rego" / "rules").mkdir(parents=True)

    for folder, says in (
        ("nowhere", "no such folder"),
        (".", "holds no rules/"),
        ("rego/rules", "holds no rules/"),
        ("rego", "in progress"),
    ):
        with pytest.raises(PolicyRefused, match=says):
            call("check", tmp_path / folder)


def test_the_command_that_shows_a_failed_test_works(rego_folder: Path) -> None:
    """Check and test both name it; run as it stands, it says which expression failed on which values."""
    write_rule(rego_folder, "mine", 'waive contains "x" if input.tenant.id').with_name("mine_test.rego").write_text(
        'package mine_test\n\nimport data.sluice.rules.mine\n\ntest_two if count(mine.waive) == 2 with input as {"tenant": {"id": "a"}}\n'
    )
    told = []
    for command in ("check", "test"):
        with pytest.raises(PolicyRefused, match="test_two failed") as refused:
            call(command, rego_folder)
        told.append(refused.value.advice)
    assert told[0] == told[1]

    shown = subprocess.run(shlex.split(told[0].removeprefix("To see why: ")), capture_output=True, text=True, check=False).stdout

    assert "data.mine_test.test_two: FAIL" in shown
    assert "FAIL: 1/" in shown


@pytest.mark.parametrize(
    ("section", "fields", "says", "advice"),
    [
        ("readings", {"kv_men": 0.5}, "readings.kv_men is no field", "Is kv_mean meant"),
        ("model", {"sensitive": {"rolls": []}}, "model.sensitive.rolls is no field", "Is roles meant"),
        ("wishes", {}, "wishes is no field", "Known here: tenant"),
        ("readings", {"kv_mean": None}, "readings.kv_mean is null", "Leave out"),
        ("tenant", {"tpm": "30000"}, "tenant.tpm must be of type number, not '30000'", "schemas/question.json"),
        ("subject", {"roles": ["a", 5]}, r"subject.roles\[1\] must be of type string", "schemas/question.json"),
        ("node", {"kind": 1}, "node.kind must be of type string", "schemas/node_question.json"),
        ("request", {"stream": 1}, "request.stream must be of type boolean", "schemas/question.json"),
    ],
)
def test_eval_refuses_questions_that_decide_never_asks(tmp_path: Path, section: str, fields: object, says: str, advice: str) -> None:
    """An unknown field is refused with the one that is meant, another type and null with the remedy: rules would not see them so."""
    question = tmp_path / "question.json"
    question.write_text(json.dumps({section: fields}))

    with pytest.raises(BadRequest, match=says) as refused:
        call("eval", question)

    assert advice in refused.value.advice


def test_eval_shows_parts_and_terms_as_lines(rego_folder: Path) -> None:
    """The question that comes with Sluice: batch work of a tenant with 5 requests a second while the cache is at 0.65 and 2 wait."""
    write_rule(rego_folder, "batch", 'shed contains 0.25 if input.request.priority == "P2"', reads="request", extra="#   shadow: true\n")
    write_rule(rego_folder, "shut", 'deny contains {"code": "shut", "message": "not now", "status": 403} if input.tenant.qps == 5')

    shown = call("eval", QUESTION, "--path", rego_folder)

    assert "\nbatch (shadow)\n  shed: 0.25\n" in shown
    assert "\npressure\n  scale: dimension=qps, factor=0.53\n" in shown  # 1 - 0.6 x 0.65 - 0.4 x 2 / 10
    assert "\nliveness\n  nothing\n" in shown
    assert '\nshut\n  deny: code=shut, message="not now", status=403\n' in shown
    terms = shown.split("\nterms\n")[1].splitlines()
    assert terms == [
        '  deny: rule=shut, code=shut, message="not now", status=403, waivable=false',
        "  limit: rule=kv_budget, bucket=model, dimension=request_tokens, limit=55250",
        "  limit: rule=kv_budget, bucket=model, dimension=tokens_in_flight, limit=34000, burst=55250",
        "  limit: rule=quota, bucket=tenant, dimension=concurrency, limit=2",
        "  limit: rule=quota, bucket=tenant, dimension=qps, limit=5",
        "  limit: rule=quota, bucket=tenant, dimension=tpm, limit=2000",
        "  cost: requests=1, input=1, output=1, cached=1",
        "  scale: dimension=qps, factor=0.53",
        "  shed: probability=0",
    ]
