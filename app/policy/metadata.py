"""What a rule says about itself: the METADATA above its package, checked against the sections of its kind."""

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from app.policy.reads import Read, parse_reads
from app.policy.schema import Sections, why_undefined
from app.setting_sections import RuleMode

Note = Callable[[str], None]
"""Takes one problem."""

_REQUIRED = ("title", "description")
_CUSTOM = ("row", "reads", "when", "shadow", "off", "optional")
"""All keys of `custom`. Others are refused: a misspelt `shadow` would put the rule in force in silence."""

_OUTER = ("title", "description", "custom", "scope", "authors", "organizations", "related_resources", "schemas", "entrypoint", "compile")
"""All keys beside and above them that OPA knows. It drops others without a word, so a `shadow` that is not indented, too."""

_OUTER_KEY = re.compile(r"^#( *)([\w-]+) *:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Metadata:
    """It, as far as it could be read."""

    title: str
    description: str
    row: str
    reads: tuple[Read, ...]
    when: tuple[str, ...]
    mode: RuleMode
    optional: frozenset[str]


def parse_metadata(notes: Mapping[str, Any], sections: Sections, note: Note) -> Metadata:
    """`notes` as OPA's parser gives them; everything wrong with them goes to `note`."""
    custom = notes.get("custom") or {}
    for key in _REQUIRED:
        if not notes.get(key):
            note(f"METADATA lacks {key}")
    for key in _outer_keys(notes):
        if key not in _OUTER:
            note(
                f"METADATA {key} is unknown; {_remedy(key, {each: each for each in _OUTER} | {each: f'custom.{each}' for each in _CUSTOM})}"
            )
    for key in custom:
        if key not in _CUSTOM:
            note(f"METADATA custom.{key} is unknown; {_remedy(key, {each: each for each in _CUSTOM})}")
    return Metadata(
        title=str(notes.get("title", "")),
        description=str(notes.get("description", "")).strip(),
        row=str(custom.get("row", "")),
        reads=_reads(custom, sections, note),
        when=_when(custom, sections, note),
        mode=_mode(custom, note),
        optional=frozenset(map(str, custom.get("optional") or ())),
    )


def _outer_keys(notes: Mapping[str, Any]) -> list[str]:
    """Keys that are indented as the first one is, from the text, since the parser gives only those that OPA knows."""
    found = _OUTER_KEY.findall(b64decode(notes["location"]["text"]).decode())
    return [key for indent, key in found if indent == found[0][0]]


def _remedy(key: str, known: Mapping[str, str]) -> str:
    """`known` has the full name of each key."""
    near = get_close_matches(key.lower(), known, n=1)
    return f"is {known[near[0]]} meant?" if near else f"known are {', '.join(known.values())}"


def _reads(custom: Mapping[str, Any], sections: Sections, note: Note) -> tuple[Read, ...]:
    try:
        return parse_reads(custom.get("reads"), sections)
    except ValueError as wrong:
        note(f"METADATA custom.reads {wrong}")
        return ()


def _when(custom: Mapping[str, Any], sections: Sections, note: Note) -> tuple[str, ...]:
    when = tuple(str(custom.get("when", "")).split(".")) if custom.get("when") else ()
    if when and (when[0] not in sections or len(when) < 2):
        note("METADATA custom.when must be a path in the question, for example model.sensitive")
    elif when and (why := why_undefined(".".join(("input", *when)), sections, None)):
        note(f"METADATA custom.when names {'.'.join(when)}, which no question has. {why}")
    return when


def _mode(custom: Mapping[str, Any], note: Note) -> RuleMode:
    flags = {key: custom.get(key, False) for key in ("off", "shadow")}
    for key, flag in flags.items():
        if type(flag) is not bool:
            note(f"METADATA custom.{key} must be true or false")
    if flags["off"] is True and flags["shadow"] is True:
        note("METADATA custom.off and custom.shadow are both true; leave out one of them")
    return "off" if flags["off"] else "shadow" if flags["shadow"] else "on"
