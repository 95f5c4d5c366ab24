"""The rules that docs/how-to/write-a-rule.md writes, checked and tested as a reader would."""

import json
import re
import shutil
from pathlib import Path

from app.policy.check import compile_policy
from app.policy.coverage import run_tests
from app.policy.modes import NO_MODES
from app.policy.reads import names_of
from app.policy.trial import lines, try_question
from app.settings import RULES

QUESTION = Path(__file__).resolve().parents[3] / "examples" / "questions" / "batch.json"
GUIDE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "write-a-rule.md"


RULE = re.compile(r"```rego\n((?:#[^\n]*\n)*package sluice\.rules\.(\w+)\n.*?)```", re.DOTALL)


def with_the_rules_of_the_guide(tmp_path):
    """The shipped rules, and beside them rules and tests as they stand in the guide."""
    folder = tmp_path / "rego"
    shutil.copytree(RULES, folder)
    for text, name in RULE.findall(GUIDE.read_text("utf-8")):
        path = folder / "rules" / name.removesuffix("_test") / f"{name}.rego"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


async def test_the_rules_of_the_guide_pass_their_checks(opa_binary, tmp_path):
    """Rules and tests as they stand in the guide are accepted beside the shipped ones, in shadow, every line of them tested."""
    folder = with_the_rules_of_the_guide(tmp_path)

    compiled = await compile_policy(folder, opa_binary)
    tested = await run_tests(folder, opa_binary)

    told = {rule.name: (names_of(rule.reads), rule.mode) for group in compiled.groups for rule in group.rules}
    assert told["batch_later"] == (("readings", "request"), "shadow")
    assert told["memory_batch"] == (("model.preallocates", "readings.memory_floor", "request.priority"), "shadow")
    assert (tested.failed, [line for line in tested.uncovered if "batch" in line]) == ((), [])


async def test_the_question_of_the_guide_is_answered_as_it_says(opa_binary, tmp_path):
    """Batch work at 65 % of the cache: the guide's rule, in shadow, would shed half, and nothing is shed."""
    trial = await try_question(with_the_rules_of_the_guide(tmp_path), opa_binary, NO_MODES, json.loads(QUESTION.read_text("utf-8")))

    assert [line for line in lines(trial) if line in GUIDE.read_text("utf-8").splitlines()] == ["batch_later (shadow)", "  shed: 0.5"]
    assert trial["terms"]["shed"] == 0
