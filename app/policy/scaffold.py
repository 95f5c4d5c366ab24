"""A new rule: a folder with a rule that compiles, its METADATA, and a test that passes; in shadow, since saving it loads it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.errors import BadRequest
from app.policy.reads import names_of, parse_reads
from app.policy.schema import SECTION_SCHEMAS, question_schema

_RULE = """# METADATA
# title: {title}
# description: Says in one sentence whom it refuses, and why.
# custom:
#   row: ""
#   reads: [{reads}]
#   shadow: true
package sluice.rules.{name}

# What this rule refuses; change the field and the value to what you need.
refused := {value}

deny contains {{
	"code": "{name}",
	"message": "refused by the rule {name}",
	"status": 403,
}} if {{
	input.{section} == refused
}}
"""

_TEST = """package sluice.rules.{name}_test

import data.sluice.rules.{name}

test_deny_when_it_matches if {{
	{name}.deny == {{{{
		"code": "{name}",
		"message": "refused by the rule {name}",
		"status": 403,
	}}}} with input.{section} as {value}
}}

test_allow_otherwise if {{
	{name}.deny == set() with input.{section} as {other}
}}
"""

_FIELDS = {
    "tenant": "tenant.sla_class",
    "model": "model.id",
    "readings": "readings.live",
    "subject": "subject.attributes.group",
    "request": "request.priority",
    "time": "time.weekday",
}
"""For each section the field that a new rule begins with, where it names none itself."""

_VALUES = {
    "string": ('"none"', '"other"'),
    "number": ("-1", "1"),
    "integer": ("-1", "1"),
    "boolean": ("true", "false"),
    "array": ('["none"]', '["other"]'),
    "object": ('{"none": 1}', '{"other": 1}'),
}
"""By type of a field the value that a new rule refuses, and another."""


def write_rule(folder: Path, name: str, reads: Sequence[str] = ("request",)) -> list[Path]:
    """Write rule and test of `name` into `folder`; the paths are returned. Raises BadRequest, never overwrites."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise BadRequest(f"{name!r} is no rule name", hint="Use small letters, digits and _, a letter first.", field="name")
    try:
        declared = parse_reads(list(reads), SECTION_SCHEMAS)
    except ValueError as wrong:
        raise BadRequest(f"--reads {wrong}", field="reads") from None
    room = folder / "rules" / name
    if room.exists():
        raise BadRequest(f"{room} exists", hint="Choose another name, or edit the rule that is there.", field="name")
    room.mkdir(parents=True)
    field, value, other = _condition(reads[0])
    title = name.replace("_", " ").capitalize()
    values = {"name": name, "title": title, "reads": ", ".join(names_of(declared)), "section": field, "value": value, "other": other}
    files = {room / f"{name}.rego": _RULE, room / f"{name}_test.rego": _TEST}
    for path, text in files.items():
        path.write_text(text.format(**values), "utf-8")
    return list(files)


def _condition(read: str) -> tuple[str, str, str]:
    """The field that the rule looks at, the value that it refuses, and another."""
    path = _FIELDS.get(read, read).split(".")
    schema: Mapping[str, Any] = question_schema(SECTION_SCHEMAS)
    for step in path:
        schema = schema.get("properties", {}).get(step, {"type": "string"})
    while "properties" in schema:
        step, schema = next(iter(schema["properties"].items()))
        path.append(step)
    return ".".join(path), *_VALUES[schema["type"]]
