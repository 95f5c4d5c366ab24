"""A new rule: a folder with a rule that compiles, its METADATA, and a test that passes; in shadow, since saving it loads it."""

import re
from collections.abc import Sequence
from pathlib import Path

from app.errors import BadRequest
from app.policy.question import SECTIONS

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

_CONDITIONS = {
    "tenant": ("tenant.sla_class", '"none"', '"other"'),
    "model": ("model.id", '"none"', '"other"'),
    "readings": ("readings.live", "-1", "1"),
    "subject": ("subject.attributes.group", '"none"', '"other"'),
    "request": ("request.priority", '"none"', '"other"'),
    "time": ("time.weekday", '"none"', '"other"'),
}
"""For each section a field, a value that no request has, and another: the condition that a new rule starts with."""


def write_rule(folder: Path, name: str, reads: Sequence[str] = ("request",)) -> list[Path]:
    """Write rule and test of `name` into `folder`; the paths are returned. Raises BadRequest, never overwrites."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise BadRequest(f"{name!r} is no rule name", hint="Use small letters, digits and _, a letter first.", field="name")
    unknown = sorted(set(reads) - set(SECTIONS))
    if unknown or not reads:
        raise BadRequest(f"{', '.join(unknown) or 'nothing'} is no section", hint=f"Sections: {', '.join(SECTIONS)}.", field="reads")
    room = folder / "rules" / name
    if room.exists():
        raise BadRequest(f"{room} exists", hint="Choose another name, or edit the rule that is there.", field="name")
    room.mkdir(parents=True)
    field, value, other = _CONDITIONS[reads[0]]
    title = name.replace("_", " ").capitalize()
    values = {"name": name, "title": title, "reads": ", ".join(reads), "section": field, "value": value, "other": other}
    files = {room / f"{name}.rego": _RULE, room / f"{name}_test.rego": _TEST}
    for path, text in files.items():
        path.write_text(text.format(**values), "utf-8")
    return list(files)
