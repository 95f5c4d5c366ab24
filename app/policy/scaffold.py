"""A new rule: a folder with a rule that compiles, its METADATA, and a test that passes; in shadow, since saving it loads it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.errors import BadRequest
from app.policy.kinds import NODES, REQUESTS, Kind
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
	"message": "refused by the rule {name}",{status}
}} if {{
	input.{section} == refused
}}
"""

_TEST = """package sluice.{folder}.{name}_test

import data.sluice.{folder}.{name}

test_{output}_when_it_matches if {{
	{name}.{output} == {{{{
		"code": "{name}",
		"message": "refused by the rule {name}",{test_status}
	}}}} with input.{section} as {value}
}}

test_nothing_otherwise if {{
	{name}.{output} == set() with input.{section} as {other}
}}
"""

_FIELDS = {
    REQUESTS.folder: {
        "request": "request.priority",
        "tenant": "tenant.sla_class",
        "model": "model.id",
        "readings": "readings.live",
        "subject": "subject.attributes.group",
        "time": "time.weekday",
    },
    NODES.folder: {"readings": "readings.waiting", "node": "node.kind", "model": "model.id"},
}
"""For each section the field that a new rule begins with, where it names none itself; the first where it names no section."""

_ANSWERS = {
    REQUESTS.folder: {"output": "deny", "status": '\n\t"status": 403,', "test_status": '\n\t\t"status": 403,'},
    NODES.folder: {"output": "avoid", "status": "", "test_status": ""},
}
"""What a new rule of each kind answers."""

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
    reads = reads or (next(iter(_FIELDS[kind.folder])),)
    try:
        declared = parse_reads(list(reads), kind.sections)
    except ValueError as wrong:
        raise BadRequest(f"--reads {wrong}", field="reads") from None
    room = folder / kind.folder / name
    if room.exists():
        raise BadRequest(f"{room} exists", hint="Choose another name, or edit the rule that is there.", field="name")
    room.mkdir(parents=True)
    field, value, other = _condition(reads[0], kind)
    title = name.replace("_", " ").capitalize()
    told = {"name": name, "title": title, "folder": kind.folder, "reads": ", ".join(names_of(declared))}
    values = {**told, **_ANSWERS[kind.folder], "section": field, "value": value, "other": other}
    files = {room / f"{name}.rego": _RULE, room / f"{name}_test.rego": _TEST}
    for path, text in files.items():
        path.write_text(text.format(**values), "utf-8")
    return list(files)


def _condition(read: str, kind: Kind) -> tuple[str, str, str]:
    """The field that the rule looks at, the value that it refuses, and another."""
    path = _FIELDS[kind.folder].get(read, read).split(".")
    schema: Mapping[str, Any] = question_schema(kind.sections)
    for step in path:
        schema = schema.get("properties", {}).get(step, {"type": "string"})
    while "properties" in schema:
        step, schema = next(iter(schema["properties"].items()))
        path.append(step)
    return ".".join(path), *_VALUES[schema["type"]]
