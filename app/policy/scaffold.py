"""A new rule: a folder with a rule that compiles, its METADATA, and a test that passes; in shadow, since saving it loads it."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.errors import BadRequest
from app.policy.kinds import REQUESTS, Kind
from app.policy.reads import names_of, parse_reads
from app.policy.schema import question_schema

_RULE = """# METADATA
# title: {title}
# description: Says in one sentence what it keeps away, and why.
# custom:
#   row: ""
#   reads: [{reads}]
#   shadow: true
package sluice.{folder}.{name}

# What this rule refuses; change the field and the value to what you need.
refused := {value}

{output} contains {{
	"code": "{name}",
	"message": "refused by the rule {name}",{beside}
}} if {{
	input.{section} == refused
}}
"""

_TEST = """package sluice.{folder}.{name}_test

import data.sluice.{folder}.{name}

test_{output}_when_it_matches if {{
	{name}.{output} == {{{{
		"code": "{name}",
		"message": "refused by the rule {name}",{beside_in_test}
	}}}} with input.{section} as {value}
}}

test_nothing_otherwise if {{
	{name}.{output} == set() with input.{section} as {other}
}}
"""

_VALUES = {
    "string": ('"none"', '"other"'),
    "number": ("-1", "1"),
    "integer": ("-1", "1"),
    "boolean": ("true", "false"),
    "array": ('["none"]', '["other"]'),
    "object": ('{"none": 1}', '{"other": 1}'),
}
"""By type of a field the value that a new rule refuses, and another."""


def write_rule(folder: Path, name: str, reads: Sequence[str] = (), kind: Kind = REQUESTS) -> list[Path]:
    """Write rule and test of `name` into `folder`; the paths are returned. Raises BadRequest, never overwrites."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise BadRequest(f"{name!r} is no rule name", hint="Use small letters, digits and _, a letter first.", field="name")
    reads = reads or (next(iter(kind.begins)),)
    try:
        declared = parse_reads(list(reads), kind.sections)
    except ValueError as wrong:
        raise BadRequest(f"--reads {wrong}", hint=f"{kind.guide} has all that rules in {kind.folder}/ see.", field="reads") from None
    room = folder / kind.folder / name
    if room.exists():
        raise BadRequest(f"{room} exists", hint="Choose another name, or edit the rule that is there.", field="name")
    room.mkdir(parents=True)
    field, value, other = _condition(next((read for read in reads if "." in read), reads[0]), kind)
    title = name.replace("_", " ").capitalize()
    told = {"name": name, "title": title, "folder": kind.folder, "reads": ", ".join(names_of(declared))}
    output, beside = kind.refusal
    refusal = {"output": output, "beside": _fields(beside, "\t"), "beside_in_test": _fields(beside, "\t\t")}
    values = {**told, **refusal, "section": field, "value": value, "other": other}
    files = {room / f"{name}.rego": _RULE, room / f"{name}_test.rego": _TEST}
    for path, text in files.items():
        path.write_text(text.format(**values), "utf-8")
    return list(files)


def _fields(fields: Mapping[str, Any], indent: str) -> str:
    return "".join(f'\n{indent}"{name}": {json.dumps(value)},' for name, value in fields.items())


def _condition(read: str, kind: Kind) -> tuple[str, str, str]:
    """The field that the rule looks at, the value that it refuses, and another."""
    path = kind.begins.get(read, read).split(".")
    schema: Mapping[str, Any] = question_schema(kind.sections)
    for step in path:
        schema = schema.get("properties", {}).get(step, {"type": "string"})
    while "properties" in schema:
        step, schema = next(iter(schema["properties"].items()))
        path.append(step)
    return ".".join(path), *_VALUES[schema["type"]]
