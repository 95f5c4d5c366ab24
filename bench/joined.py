"""The peer's policy: all rules of a folder joined in Rego, so that one question to OPA alone gives what terms need."""

import asyncio
from pathlib import Path

from app.policy.bundle import ENTRY_PATH
from app.policy.check import compile_policy
from app.policy.folder import Rule
from app.policy.kinds import REQUESTS
from app.policy.program import find_opa

PATH = "/v1/data/joined/terms"


def joined(rules: Path, folder: Path) -> list[Path]:
    """Write the modules of the policy in `rules`, and the one that joins them, into `folder`."""
    compiled = asyncio.run(compile_policy(rules, find_opa()))
    entry = f"{ENTRY_PATH.rpartition('/')[2]}.rego"
    texts = {name: text for name, text in compiled.modules.items() if name != entry}
    texts["joined.rego"] = _module([rule for group in compiled.groups_of(REQUESTS) if group.mode == "on" for rule in group.rules])
    files = []
    for name, text in texts.items():
        file = folder / name.replace("/", "_")
        file.write_text(text, "utf-8")
        files.append(file)
    return files


def _module(rules: list[Rule]) -> str:
    """One rule with all that is always asked, and one more for each condition: a condition costs nothing where it does not hold."""
    lines = ["package joined", ""]
    always = [rule for rule in rules if not rule.when]
    lines += ["terms.always := {", *(f'\t"{rule.name}": {_outputs(rule)},' for rule in always), "}", ""]
    lines += [f"terms.{rule.name} := {_outputs(rule)} if input.{'.'.join(rule.when)}\n" for rule in rules if rule.when]
    return "\n".join(lines)


def _outputs(rule: Rule) -> str:
    return "{" + ", ".join(f'"{output}": data.sluice.rules.{rule.name}.{output}' for output in rule.outputs) + "}"
