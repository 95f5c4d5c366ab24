"""What a policy folder must pass, on the real opa program."""

import re
import time
from pathlib import Path

import pytest

from app.errors import PolicyRefused
from app.policy.advice import advise
from app.policy.check import compile_policy
from app.policy.coverage import run_tests
from app.policy.reads import names_of
from app.policy.scaffold import write_rule as begin_rule
from app.policy.schema import SECTION_SCHEMAS
from tests.fixtures.policy import write_rule

DENY = 'deny contains {"code": "x", "message": "m", "status": 403} if input.tenant.id == "x"'


async def refusal(folder: Path, binary: Path) -> str:
    with pytest.raises(PolicyRefused) as refused:
        await compile_policy(folder, binary)
    return refused.value.message


async def test_the_rules_that_come_with_sluice_pass_within_two_seconds(rego_folder: Path, opa_binary: Path) -> None:
    """The rules form groups by what they read, and their check is quick."""
    begun = time.perf_counter()
    compiled = await compile_policy(rego_folder, opa_binary)
    took_s = time.perf_counter() - begun

    groups = {group.name: [rule.name for rule in group.rules] for group in compiled.groups}
    assert groups == {
        "model_readings": ["kv_budget", "memory"],
        "model_readings_off": ["memory_line"],
        "node_model__id": ["set_points"],
        "node_model__preallocates_readings__kv__memory_off": ["max_num_seqs_line"],
        "node_model__preallocates_readings__kv_floor__memory_floor": ["max_num_seqs"],
        "node_model__preallocates_readings__memory_floor_off": ["isolation"],
        "readings": ["in_flight", "liveness", "pressure"],
        "tenant__sla_class_readings__ttft_ms": ["latency"],
        "tenant_model": ["known", "quota"],
        "tenant_model_subject_request_time_when_model_sensitive": ["sensitive_models"],
    }
    assert took_s < 2


async def test_rules_that_come_with_sluice_need_no_warning_and_are_covered(rego_folder: Path, opa_binary: Path) -> None:
    """Our own rules are warned of nothing, and their tests reach at least 95 % of their lines."""
    compiled = await compile_policy(rego_folder, opa_binary)

    assert await advise(compiled, opa_binary) == []
    tested = await run_tests(rego_folder, opa_binary)
    assert (tested.failed, tested.covered_percent >= 95) == ((), True)


async def test_the_same_folder_gives_the_same_bytes_and_tests_do_not_count(rego_folder: Path, opa_binary: Path) -> None:
    """The bundle is deterministic, its revision follows the content of rules, and tests are not in it."""
    first = await compile_policy(rego_folder, opa_binary)
    tests = rego_folder / "rules/known/known_test.rego"
    tests.write_text(tests.read_text() + "\n# a remark\n")
    second = await compile_policy(rego_folder, opa_binary)
    rule = rego_folder / "rules/known/known.rego"
    rule.write_text(rule.read_text() + "\n# a remark\n")
    third = await compile_policy(rego_folder, opa_binary)

    assert (first.revision, first.archive) == (second.revision, second.archive)
    assert third.revision != first.revision
    assert not [name for name in first.modules if name.endswith("_test.rego")]


@pytest.mark.parametrize(
    ("body", "line", "says"),
    [
        ("deny := true", 8, "deny must be a set"),
        ('deny contains "x" if input.readings.live == 0', 8, "undefined ref: input.readings.live. METADATA custom.reads lacks readings"),
        ('waive contains "x" if input.tenant.sla_clas == "gold"', 8, "undefined ref: input.tenant.sla_clas. Is sla_class meant"),
        ('waive contains "x" if input.tenants', 8, "undefined ref: input.tenants. Is tenant meant"),
        ("limit contains 5", 8, "limit must hold objects"),
        ('limit contains {"bucket": "tenant", "dimension": "tpm", "limit": "30000"}', 8, "limit.limit must be a number, not a text"),
        ("shed contains 1.5", 8, "shed must be from 0 to 1"),
        ("limits contains 5\n\n" + DENY, 8, "limits is no output; is limit meant?"),
        (
            DENY + '\n\navoid contains {"code": "x", "message": "m"} if input.tenant.id',
            10,
            "avoid is an output of nodes/, which rules in rules/",
        ),
        (DENY + "\n\nmax_num_seqs contains 0.5 if input.tenant.id", 10, "max_num_seqs is an output of nodes/"),
        (DENY + '\n\nset_point contains {"signal": "kv", "value": 0.8}', 10, "set_point is an output of nodes/.* nodes/<name>/<name>.rego"),
        (DENY + "\n\nunused(x) := 1", 10, "unused"),
        (DENY + "\n\nseen := data.other.place", 10, "data.other.place is outside of the rule"),
        ("import data.other.place\n\n" + DENY, 8, "outside of the rule"),
        (DENY + "\n\ntest_it if true", 10, "test_it is a test"),
        ('deny contains http.send({"method": "get", "url": "http://127.0.0.1:1"}).body', 8, "http.send"),
        ('deny contains net.lookup_ip_addr("localhost")', 8, "net.lookup_ip_addr"),
        ("deny contains opa.runtime().env", 8, "opa.runtime"),
        ("deny contains time.now_ns()", 8, "time.now_ns"),
        ('deny contains rand.intn("x", 5)', 8, "rand.intn"),
        ("deny contains )", 8, "unexpected"),
        ('level := "a"\n\nlevel := "b"\n\noblige contains {"code": level}', None, "multiple|conflict"),
    ],
)
async def test_what_is_wrong_is_refused_with_file_and_line(
    rego_folder: Path, opa_binary: Path, body: str, line: int | None, says: str
) -> None:
    """Wrong shapes, undeclared sections, foreign data and builtins that look outside are refused at their place."""
    write_rule(rego_folder, "mine", body)

    message = await refusal(rego_folder, opa_binary)

    assert re.search(says, message)
    assert f"rules/mine/mine.rego:{line or ''}" in message


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        ("rules/mine/data.json", "{}", "data files do not travel"),
        ("rules/mine/deep/deep.rego", "package sluice.rules.mine.deep", "do not nest"),
        ("rules/loose.rego", "package sluice.rules.loose", "folder of its own"),
        ("rules/mine/other.rego", "package sluice.rules.mine", "a rule is one file"),
        ("rules/Mine/Mine.rego", "package sluice.rules.Mine", "no rule name"),
        ("rules/mine/mine.rego", f"package sluice.rules.other\n\n{DENY}", "package sluice.rules.other must be sluice.rules.mine"),
        ("rules/mine/mine.rego", f"package sluice.rules.mine\n\n{DENY}", "no METADATA"),
        ("rules/mine/mine_test.rego", "package mine_test\n\ntest_wrong if false", "test_wrong failed"),
        ("lib/shared.rego", "package sluice.lib.shared\n\nopen if input.tenant.id", "take what they need as arguments"),
        ("lib/shared.rego", "package elsewhere\n\nopen(x) := x", "must be sluice.lib"),
    ],
)
async def test_what_lies_in_the_wrong_place_is_refused(rego_folder: Path, opa_binary: Path, path: str, text: str, says: str) -> None:
    """Data, nested rules, foreign packages, failing tests: each is refused with its file and the remedy."""
    (rego_folder / path).parent.mkdir(parents=True, exist_ok=True)
    (rego_folder / path).write_text(text)

    message = await refusal(rego_folder, opa_binary)

    assert says in message
    assert path in message


async def test_every_problem_is_named_at_once(rego_folder: Path, opa_binary: Path) -> None:
    """Two broken rules are both named in one refusal."""
    write_rule(rego_folder, "first", "shed contains 2")
    write_rule(rego_folder, "second", "shed contains 3")

    message = await refusal(rego_folder, opa_binary)

    assert "rules/first/first.rego:8" in message
    assert "rules/second/second.rego:8" in message


async def test_each_syntax_error_is_named_in_rules_helpers_and_tests(rego_folder: Path, opa_binary: Path) -> None:
    """Twelve broken tests, more than opa itself would name, beside a broken rule and helper: each has its place."""
    for number in range(12):
        write_rule(rego_folder, f"mine{number}", "shed contains 0.1")
        (rego_folder / f"rules/mine{number}/mine{number}_test.rego").write_text("package x {\n")
    write_rule(rego_folder, "broken", "shed contains")
    (rego_folder / "lib").mkdir(exist_ok=True)
    (rego_folder / "lib" / "shared.rego").write_text("package sluice.lib.shared\n\nf(x) :=\n")
    said = (await refusal(rego_folder, opa_binary)).splitlines()

    tests = {f"rules/mine{number}/mine{number}_test.rego:2" for number in range(12)}
    assert {line.split(": ", 1)[0] for line in said} == {"lib/shared.rego:4", "rules/broken/broken.rego:9", *tests}


async def test_functions_in_lib_serve_several_rules(rego_folder: Path, opa_binary: Path) -> None:
    """A helper that takes its values as arguments is allowed and travels in the bundle."""
    (rego_folder / "lib").mkdir(exist_ok=True)
    (rego_folder / "lib/shared.rego").write_text("package sluice.lib.shared\n\ntwice(x) := x * 2\n")
    write_rule(rego_folder, "mine", "shed contains data.sluice.lib.shared.twice(0.25)")

    assert "lib/shared.rego" in (await compile_policy(rego_folder, opa_binary)).modules


async def test_rules_that_multiply_keys_and_absences_that_open_are_warned_of(rego_folder: Path, opa_binary: Path) -> None:
    """A rule over tenant and readings, one over subjects, and one that opens without its field get a warning each."""
    write_rule(rego_folder, "both", "shed contains 0.1 if input.readings.kv_mean > input.tenant.qps", reads="tenant, readings")
    write_rule(
        rego_folder, "people", 'deny contains {"code": "x", "message": "m", "status": 403} if not input.subject.roles', reads="subject"
    )
    write_rule(rego_folder, "opens", "shed contains 0.2 if input.readings.waiting > 1", reads="readings")

    warnings = await advise(await compile_policy(rego_folder, opa_binary), opa_binary)

    assert len(warnings) == 3
    assert any("both.rego" in warning and "tenants times readings" in warning for warning in warnings)
    assert any("people.rego" in warning and "custom.when" in warning for warning in warnings)
    assert any("opens.rego" in warning and "without readings.waiting its shed is wider" in warning for warning in warnings)


async def test_a_rule_is_warned_of_what_it_loses_itself(rego_folder: Path, opa_binary: Path) -> None:
    """A rule that always slows, beside one in its group whose answer widens, is not taken for that one."""
    write_rule(rego_folder, "steady", 'scale contains {"dimension": "qps", "factor": 0.5} if input.time', reads="time")
    write_rule(rego_folder, "early", "shed contains 0.5 if input.time.hour > 8", reads="time")

    warnings = await advise(await compile_policy(rego_folder, opa_binary), opa_binary)

    assert [line.split(": ")[0] for line in warnings] == ["rules/early/early.rego"]


async def test_a_new_rule_compiles_and_its_test_passes(rego_folder: Path, opa_binary: Path) -> None:
    """What `sluice policy new` writes passes every check, whatever section or field it reads, and is only watched at first."""
    fields = [(section, field) for section, schema in SECTION_SCHEMAS.items() for field in schema["properties"]]
    reads = {f"fresh_{section}_{field}": f"{section}.{field}" for section, field in fields} | {
        f"fresh_{name}": name for name in SECTION_SCHEMAS
    }
    for name, read in reads.items():
        begin_rule(rego_folder, name, [read])

    compiled = await compile_policy(rego_folder, opa_binary)

    fresh = {rule.name: (names_of(rule.reads), group.mode) for group in compiled.groups for rule in group.rules if rule.name in reads}
    assert fresh == {name: ((read,), "shadow") for name, read in reads.items()}


@pytest.mark.parametrize(
    ("reads", "body", "says"),
    [
        (
            "tenant.sla_class, readings",
            "shed contains 0.1 if input.tenant.qps > 5",
            "8: undefined ref: input.tenant.qps. METADATA custom.reads names only tenant.sla_class; it lacks tenant.qps.",
        ),
        (
            "tenant.sla_class",
            'shed contains 0.1 if input.tenant.sla_clas == "x"',
            "8: undefined ref: input.tenant.sla_clas. Is sla_class meant?",
        ),
        (
            "tenant.sla_class",
            "shed contains 0.1 if input.readings.live == 0",
            "8: undefined ref: input.readings.live. METADATA custom.reads lacks readings.",
        ),
        ("tenant, tenant.id", DENY, "1: METADATA custom.reads names tenant and tenant.id: "),
        ("tenant.sla_clas", DENY, "1: METADATA custom.reads names tenant.sla_clas: tenant has no such field"),
        ("model.sensitive.roles", DENY, "1: METADATA custom.reads names model.sensitive.roles: "),
    ],
)
async def test_a_field_that_is_not_declared_is_refused(rego_folder: Path, opa_binary: Path, reads: str, body: str, says: str) -> None:
    """A rule that reads one field of a section is refused at the line that reads another; and wrong reads at METADATA."""
    write_rule(rego_folder, "mine", body, reads=reads)

    assert (await refusal(rego_folder, opa_binary)).startswith(f"rules/mine/mine.rego:{says}")


async def test_a_rule_is_checked_against_the_declared_field_and_answers_by_it(rego_folder: Path, opa_binary: Path) -> None:
    """Beside a rule on all of the tenant it is a group of its own, answers from the field, and its answers to examples are looked at."""
    write_rule(rego_folder, "mine", 'shed contains 0.1 if input.tenant.sla_class == "payment"', reads="readings, tenant.sla_class")
    compiled = await compile_policy(rego_folder, opa_binary)

    (group,) = [group for group in compiled.groups if "mine" in {rule.name for rule in group.rules}]
    assert (group.name, names_of(group.reads)) == ("tenant__sla_class_readings", ("tenant.sla_class", "readings"))

    write_rule(rego_folder, "mine", "shed contains 2 * 1 if input.tenant.sla_class", reads="tenant.sla_class")
    assert "shed must be from 0 to 1" in await refusal(rego_folder, opa_binary)


@pytest.mark.parametrize(
    ("reads", "warned"),
    [
        ("tenant, readings", "reads tenant and readings, so its answers are as many as tenants times readings"),
        ("tenant.id, readings", "reads tenant.id and readings, so"),
        ("tenant.id, tenant.sla_class, readings.kv_mean", "reads tenant.id, tenant.sla_class and readings.kv_mean, so"),
        ("tenant.sla_class, readings", None),
        ("tenant.region, tenant.zone, readings", None),
        ("tenant, readings.live", None),
        ("subject, request", "reads subject, so each subject needs an answer of its own"),
        ("subject.attributes", "reads subject.attributes, so each"),
        ("subject.roles", None),
    ],
)
async def test_what_fields_cost_is_what_they_multiply(rego_folder: Path, opa_binary: Path, reads: str, warned: str | None) -> None:
    """Fields that tenants, snapshots or subjects share multiply little and are not warned of; the others are as whole sections are."""
    write_rule(rego_folder, "mine", "shed contains 0.1", reads=reads)

    warnings = [line for line in await advise(await compile_policy(rego_folder, opa_binary), opa_binary) if "mine" in line]

    assert [warned in line for line in warnings if warned] == ([True] if warned else [])
    assert len(warnings) == (1 if warned else 0)


async def test_a_field_whose_absence_widens_is_warned_of_unless_it_is_optional(rego_folder: Path, opa_binary: Path) -> None:
    """Reading a field alone is warned of like reading its section, and METADATA names it in the same way."""
    body = "shed contains 0.2 if input.readings.waiting > 1"
    write_rule(rego_folder, "mine", body, reads="readings.waiting")
    write_rule(rego_folder, "known_to_open", body, reads="readings.waiting", extra="#   optional: [readings.waiting]\n")

    (warning,) = await advise(await compile_policy(rego_folder, opa_binary), opa_binary)

    assert warning.startswith("rules/mine/mine.rego: without readings.waiting its shed is wider")


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ("#   off: 1\n", "METADATA custom.off must be true or false"),
        ("#   shadow: maybe\n", "METADATA custom.shadow must be true or false"),
        ("#   off: true\n#   shadow: true\n", "METADATA custom.off and custom.shadow are both true"),
        ("#   mode: shadow\n", "METADATA custom.mode is unknown; known are row, reads, when, shadow, off, optional"),
        ("#   shadwo: true\n", "METADATA custom.shadwo is unknown; is shadow meant?"),
        ("#   Shadow: true\n", "METADATA custom.Shadow is unknown; is shadow meant?"),
        ("#   OFF: true\n", "METADATA custom.OFF is unknown; is off meant?"),
        ("#   optionl: [tenant.region]\n", "METADATA custom.optionl is unknown; is optional meant?"),
        ("#   whne: model.sensitive\n", "METADATA custom.whne is unknown; is when meant?"),
        ("# shadow: true\n", "METADATA shadow is unknown; is custom.shadow meant?"),
        ("# titel: mine\n", "METADATA titel is unknown; is title meant?"),
        ("#   when: model.sensitve\n", "METADATA custom.when names model.sensitve, which no question has. Is sensitive meant?"),
    ],
)
async def test_modes_and_conditions_that_cannot_be_are_refused(rego_folder: Path, opa_binary: Path, extra: str, says: str) -> None:
    """A rule would otherwise be in force, or never asked, without its author knowing."""
    write_rule(rego_folder, "mine", DENY, extra=extra)

    assert f"rules/mine/mine.rego:1: {says}" in await refusal(rego_folder, opa_binary)


async def test_a_key_that_stands_twice_is_named(rego_folder: Path, opa_binary: Path) -> None:
    """Who switches a rule off that is off already reads which key is doubled, at the end of its METADATA."""
    write_rule(rego_folder, "mine", DENY, extra="#   off: true\n#   off: true\n")

    assert await refusal(rego_folder, opa_binary) == "rules/mine/mine.rego:7: METADATA has off twice; leave out one of them"


async def test_custom_above_a_single_definition_is_refused(rego_folder: Path, opa_binary: Path) -> None:
    """A rule is in shadow as a whole; the flag above one of its definitions would do nothing."""
    write_rule(rego_folder, "mine", "# METADATA\n# custom:\n#   shadow: true\n" + DENY)

    assert "rules/mine/mine.rego:8: METADATA custom holds for the whole rule" in await refusal(rego_folder, opa_binary)


async def test_a_description_of_many_lines_has_no_keys(rego_folder: Path, opa_binary: Path) -> None:
    """Words before a colon in the description are the author's text, and what OPA itself knows is allowed."""
    path = write_rule(rego_folder, "mine", DENY)
    text = "# authors: [me]\n# description: |\n#   Shadow: what it keeps away.\n#   note: why.\n"
    path.write_text(path.read_text().replace("# description: A rule of a test.\n", text))

    assert "mine" in {rule.name for group in (await compile_policy(rego_folder, opa_binary)).groups for rule in group.rules}


async def test_a_plain_value_may_be_called_as_an_output_of_the_other_kind(rego_folder: Path, opa_binary: Path) -> None:
    """Only a set answers; a constant max_num_seqs in a rule for requests is the author's own."""
    write_rule(rego_folder, "mine", "max_num_seqs := 8\n\nshed contains 0.1 if input.tenant.qps > max_num_seqs")

    assert "mine" in {rule.name for group in (await compile_policy(rego_folder, opa_binary)).groups for rule in group.rules}


async def test_a_rule_that_is_off_is_checked_and_not_asked(rego_folder: Path, opa_binary: Path) -> None:
    """Its text is in the bundle, so that a setting can turn it on; the entry module does not name it."""
    write_rule(rego_folder, "mine", DENY, extra="#   off: true\n")
    off = await compile_policy(rego_folder, opa_binary)
    on = await compile_policy(rego_folder, opa_binary, {"mine": "on"})

    assert ("rules/mine/mine.rego" in off.modules, "sluice.rules.mine" in off.modules["entry.rego"]) == (True, False)
    assert "sluice.rules.mine" in on.modules["entry.rego"]
    assert off.revision != on.revision


@pytest.mark.parametrize(
    ("body", "test", "says"),
    [
        ("deny := true", "", "deny must be a set"),
        (DENY.replace("id", "idd"), "", "undefined ref: input.tenant.idd"),
        ('waive contains input.tenant.qps if input.tenant.sla_class == "payment"', "", "waive must hold codes of denies"),
        (DENY, "package mine_test\n\ntest_wrong if false\n", "test_wrong failed"),
    ],
)
async def test_a_broken_rule_that_is_off_is_refused(rego_folder: Path, opa_binary: Path, body: str, test: str, says: str) -> None:
    """Compilation, shapes on the examples and tests are those of every other rule, so turning it on cannot surprise."""
    path = write_rule(rego_folder, "mine", body, extra="#   off: true\n")
    path.with_name("mine_test.rego").write_text(test or "package mine_test\n")

    assert says in await refusal(rego_folder, opa_binary)


async def test_the_setting_names_rules_for_requests_and_for_nodes(rego_folder: Path, opa_binary: Path) -> None:
    """Rules of both kinds are turned off by name, and a name that neither has is refused with the nearest."""
    compiled = await compile_policy(rego_folder, opa_binary, {"pressure": "shadow", "isolation": "off"})

    modes = {rule.name: group.mode for group in compiled.groups for rule in group.rules}
    assert (modes["pressure"], modes["isolation"], modes["quota"]) == ("shadow", "off", "on")
    with pytest.raises(PolicyRefused, match=r"setting policy\.rules: no rule is called isolatoin; is isolation meant"):
        await compile_policy(rego_folder, opa_binary, {"isolatoin": "off"})


NEVER = 'if input.tenant.sla_class == "bronze"'


@pytest.mark.parametrize(
    ("body", "line", "says"),
    [
        ('deny contains {"code": "x", "message": "m", "status": "403"} ' + NEVER, 8, "deny.status must be an HTTP status"),
        (DENY + '\n\ndeny contains {"code": "y", "message": input.tenant.id, "status": 700} ' + NEVER, 10, "deny.status"),
        ('share := "0.5"\n\nshed contains share ' + NEVER, 10, "shed must be a number, not a text"),
        ('deny contains no("x") ' + NEVER + '\n\nno(code) := {"code": code, "message": "m"}', 8, "deny.status is missing"),
        ("waive contains input.tenant.qps " + NEVER, 8, "waive must hold codes of denies, not a number (test_it)"),
    ],
)
async def test_a_wrong_shape_that_no_example_reaches_is_refused(
    rego_folder: Path, opa_binary: Path, body: str, line: int, says: str
) -> None:
    """Elements are checked as they are written, and as a rule's own tests make it answer, even where a test only counts them."""
    path = write_rule(rego_folder, "mine", body)
    output = body.split(" contains", maxsplit=1)[0].splitlines()[-1]
    path.with_name("mine_test.rego").write_text(
        "package mine_test\n\nimport data.sluice.rules.mine\n\n"
        f'test_it if count(mine.{output}) == 1 with input as {{"tenant": {{"id": "a", "qps": 1, "sla_class": "bronze"}}}}\n'
    )

    message = await refusal(rego_folder, opa_binary)

    assert message.startswith(f"rules/mine/mine.rego:{line}: rule mine: {says}")
    assert len(message.splitlines()) == 1


async def test_one_wrong_field_is_named_once(rego_folder: Path, opa_binary: Path) -> None:
    """A bucket that does not exist is one line, however many example questions show it."""
    write_rule(rego_folder, "mine", 'limit contains {"bucket": sprintf("tenants%v", [input.tenant.id]), "dimension": "qps", "limit": 5}')

    message = await refusal(rego_folder, opa_binary)

    assert len(message.splitlines()) == 1
    assert "limit.bucket must be one of site, model, tenant, tenant_model, subject, not 'tenantstenant-prod-a' (example " in message


async def test_what_the_text_alone_does_not_tell_is_left_to_questions(rego_folder: Path, opa_binary: Path) -> None:
    """A name that means something else inside of a definition is no constant; and tests may use all of a rule's names."""
    path = write_rule(
        rego_folder,
        "mine",
        'share := "text"\n\nseen := {"a": 1}\n\nhalf(x) := x / 2\n\nshed contains share if {\n\tsome share in [half(1)]\n\tseen[input.tenant.id]\n}',
    )
    path.with_name("mine_test.rego").write_text(
        "package sluice.rules.mine\n\nimport data.sluice.rules.mine as rule\n\n"
        'test_it if {\n\trule.shed == {half(1)} with input as {"tenant": {"id": "a"}}\n\tseen.a == 1\n\tshare == "text"\n}\n'
    )

    assert "rules/mine/mine.rego" in (await compile_policy(rego_folder, opa_binary)).modules


async def test_a_rule_that_does_not_end_is_refused_and_a_late_machine_is_not_blamed(
    rego_folder: Path, opa_binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Examples that are not answered in time are asked once more with longer; only what does not end then is refused."""
    monkeypatch.setattr("app.policy.offline._EVAL_TIMEOUTS", ("1ms", "5s"))
    await compile_policy(rego_folder, opa_binary)

    monkeypatch.setattr("app.policy.offline._EVAL_TIMEOUTS", ("1ms", "300ms"))
    loop = "some number in numbers.range(1, 100000000)\n\tnumber < 0"
    write_rule(rego_folder, "slow", f'deny contains {{"code": "slow", "message": "m", "status": 403}} if {{\n\t{loop}\n}}')
    assert await refusal(rego_folder, opa_binary) == "the rules: the examples are not answered within 300ms; a rule may not end"


async def test_a_rule_that_does_not_end_in_its_tests_either_is_refused(
    rego_folder: Path, opa_binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests then give no verdict in time; that of the examples is told, and nothing is tried again until the folder changes."""
    monkeypatch.setattr("app.policy.offline._EVAL_TIMEOUTS", ("1ms", "300ms"))
    monkeypatch.setattr("app.policy.program.RUN_TIMEOUT_S", 2.0)
    path = rego_folder / "rules" / "pressure" / "pressure.rego"
    loop = "never_ends if {\n\tsome number in numbers.range(1, 100000000)\n\tnumber < 0\n}\n"
    path.write_text(f"{path.read_text()}\n{loop}\nshed contains 0 if never_ends\n")
    assert "the rules: the examples are not answered within 300ms; a rule may not end" in await refusal(rego_folder, opa_binary)
