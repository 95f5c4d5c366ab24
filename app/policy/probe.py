"""What rules answer in their own tests: these reach the conditions that no example question meets.

Each rule moves to another package, and a module takes its place that passes everything on and prints the elements of its
outputs. So tests run as they are. Whether they pass is told by a run on the rules themselves.
"""

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from app.policy.folder import Files, Rule
from app.policy.offline import Workspace

_MARK = "sluice-output"
_PACKAGE = re.compile(r"^package\s+sluice\.\w+\.", re.MULTILINE)

_PRINTED = """
{name} contains element if {{
	some element in {source}
	print("{mark}", "{rule}", "{name}", json.marshal(element))
}}
"""


async def answers_in_tests(
    work: Workspace, files: Files, rules: Sequence[Rule], trees: Mapping[str, Any], within: str
) -> list[tuple[str, str, str, Any]]:
    """(test, rule, output, element) of everything that tests made rules answer; empty where they do not run that way."""
    texts = {}
    for rule in rules:
        texts[f"probed/{rule.name}.rego"] = _PACKAGE.sub("package sluice.probed.", files.rules[rule.file], count=1)
        texts[f"probing/{rule.name}.rego"] = _passing_on(rule, trees[rule.file])
    await work.write(texts)
    ran = await work.run("test", "--format=json", f"--timeout={within}", work.capabilities, *texts, *files.lib, *files.tests)
    results = orjson.loads(ran.stdout) if ran.stdout.strip().startswith(b"[") else []
    return [found for result in results for found in _printed(result)]


def _printed(result: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    for line in base64.b64decode(result.get("output", "")).decode(errors="replace").splitlines():
        mark, *said = line.split(" ", 3)
        if mark == _MARK and len(said) == 3:
            rule, output, element = said
            yield str(result["name"]), rule, output, orjson.loads(element)


def _passing_on(rule: Rule, tree: Mapping[str, Any]) -> str:
    """The module in the rule's place: outputs are printed, everything else is what it was."""
    heads = {str(definition["head"]["ref"][0]["value"]): definition["head"] for definition in tree["rules"]}
    text = f"package {rule.package}\n"
    for name, head in heads.items():
        source = f"data.sluice.probed.{rule.name}.{name}"
        if name in rule.outputs:
            text += _PRINTED.format(name=name, source=source, rule=rule.name, mark=_MARK)
        else:
            arguments = ", ".join(f"argument{number}" for number in range(len(head.get("args", ()))))
            call = f"({arguments})" if arguments else ""
            text += f"\n{name}{call} := {source}{call}\n"
    return text
