"""The rule that docs/how-to/write-a-rule.md writes, checked and tested as a reader would."""

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


def with_the_rule_of_the_guide(tmp_path):
    """The shipped rules, and beside them rule and tests as they stand in the guide."""
    folder = tmp_path / "rego"
    shutil.copytree(RULES, folder)
    rule, test = re.findall(r"```rego\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    room = folder / "rules" / "batch_later"
    room.mkdir()
    (room / "batch_later.rego").write_text(rule)
    (room / "batch_later_test.rego").write_text(test)
    return folder


async def test_the_rule_of_the_guide_passes_its_checks(opa_binary, tmp_path):
    """Rule and tests as they stand in the guide are accepted beside the shipped ones, in shadow, every line of them tested."""
    folder = with_the_rule_of_the_guide(tmp_path)

    compiled = await compile_policy(folder, opa_binary)
    tested = await run_tests(folder, opa_binary)

    (group,) = [group for group in compiled.groups if "batch_later" in {rule.name for rule in group.rules}]
    assert (names_of(group.reads), group.mode) == (("readings", "request"), "shadow")
    assert (tested.failed, [line for line in tested.uncovered if "batch_later" in line]) == ((), [])


async def test_the_question_of_the_guide_is_answered_as_it_says(opa_binary, tmp_path):
    """Batch work at 65 % of the cache: the guide's rule, in shadow, would shed half, and nothing is shed."""
    trial = await try_question(with_the_rule_of_the_guide(tmp_path), opa_binary, NO_MODES, json.loads(QUESTION.read_text("utf-8")))

    assert [line for line in lines(trial) if line in GUIDE.read_text("utf-8").splitlines()] == ["batch_later (shadow)", "  shed: 0.5"]
    assert trial["terms"]["shed"] == 0
