"""The rule that docs/how-to/write-a-rule.md writes, checked and tested as a reader would."""

import re
import shutil
from pathlib import Path

from app.policy.check import compile_policy
from app.policy.coverage import run_tests
from app.settings import RULES

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "write-a-rule.md"


async def test_the_rule_of_the_guide_passes_its_checks(opa_binary, tmp_path):
    """Rule and tests as they stand in the guide are accepted beside the shipped ones, in shadow, every line of them tested."""
    folder = tmp_path / "rego"
    shutil.copytree(RULES, folder)
    rule, test = re.findall(r"```rego\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    room = folder / "rules" / "batch_later"
    room.mkdir()
    (room / "batch_later.rego").write_text(rule)
    (room / "batch_later_test.rego").write_text(test)

    compiled = await compile_policy(folder, opa_binary)
    tested = await run_tests(folder, opa_binary)

    (group,) = [group for group in compiled.groups if "batch_later" in {rule.name for rule in group.rules}]
    assert (group.reads, group.shadow) == (("readings", "request"), True)
    assert (tested.failed, [line for line in tested.uncovered if "batch_later" in line]) == ((), [])
