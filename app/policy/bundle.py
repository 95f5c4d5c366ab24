"""From rules to the bundle that OPA runs: groups of rules, the generated module that answers for them, the archive.

Rules that read the same sections and fields form a group: one memo key, one item of a call. The generated module is static (one
clause per group), because choosing a rule by name at run time costs a third more; answers are keyed by index, because an
undefined item dropped from an array would shift the answers of all others.
"""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from app.policy.folder import Rule
from app.policy.kinds import Kind
from app.policy.modes import Modes, mode_of
from app.policy.reads import Read
from app.setting_sections import RuleMode

ENTRY_PATH = "sluice/entry"
"""Path of the generated module under /v1/data."""

ENTRY_FILE = "entry.rego"
"""Name of the generated module in the bundle."""

_REVISION_PLACE = "sluice:revision"


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that read the same under the same condition, and are all in the same mode."""

    name: str
    kind: Kind
    reads: tuple[Read, ...]
    when: tuple[str, ...]
    mode: RuleMode
    rules: tuple[Rule, ...]

    def reading(self, section: str) -> Read | None:
        """What the group reads of `section`; None where that is nothing."""
        return next((read for read in self.reads if read.section == section), None)


def exists(value: Any, path: tuple[str, ...]) -> bool:
    """Whether `path` leads through nested objects to something in `value`; the empty path always does."""
    for step in path:
        if not isinstance(value, Mapping) or step not in value:
            return False
        value = value[step]
    return True


@dataclass(frozen=True, slots=True)
class Compiled:
    """A checked policy, ready to be offered: `revision` is the digest of its content."""

    revision: str
    groups: tuple[Group, ...]
    """Of all rules, those that are off among them."""
    modules: Mapping[str, str]
    """Rego texts of the bundle by file name, the generated one among them."""
    archive: bytes
    """The bundle, a deterministic tar.gz."""

    def groups_of(self, kind: Kind) -> tuple[Group, ...]:
        """The groups of one kind."""
        return tuple(group for group in self.groups if group.kind is kind)


def group_rules(rules: Iterable[Rule], modes: Modes) -> tuple[Group, ...]:
    """The groups, ordered by name; those of rules that are off, too, since they are checked like the others."""
    members: dict[tuple[Kind, tuple[Read, ...], tuple[str, ...], RuleMode], list[Rule]] = {}
    for rule in rules:
        members.setdefault((rule.kind, rule.reads, rule.when, mode_of(rule, modes)), []).append(rule)
    groups = (
        Group(_group_name(kind, reads, when, mode), kind, reads, when, mode, tuple(sorted(group, key=lambda rule: rule.name)))
        for (kind, reads, when, mode), group in members.items()
    )
    return tuple(sorted(groups, key=lambda group: group.name))


def _group_name(kind: Kind, reads: tuple[Read, ...], when: tuple[str, ...], mode: RuleMode) -> str:
    sections = ("__".join((read.section, *read.fields)) for read in reads)
    return kind.prefix + "_".join((*sections, *(("when", *when) if when else ()), *(() if mode == "on" else (mode,))))


def entry_module(groups: Iterable[Group], revision: str) -> str:
    """The Rego text that answers {group: {index: question}} with {group: {index: {rule: {output: [elements]}}}}."""
    lines = ["package sluice.entry", "", f'revision := "{revision}"']
    for group in groups:
        lines += ["", f"answer.{group.name}[index] := part if {{", f"\tsome index, question in input.{group.name}", "\tpart := {"]
        for rule in group.rules:
            outputs = ", ".join(f'"{output}": data.{rule.package}.{output}' for output in rule.outputs)
            lines.append(f'\t\t"{rule.name}": {{{outputs}}},')
        lines += ["\t} with input as question", "}"]
    return "\n".join(lines) + "\n"


def modules_of(texts: Mapping[str, str], groups: tuple[Group, ...]) -> tuple[str, dict[str, str]]:
    """Revision and all modules of the bundle, from the texts of rules and helpers by file name; rules that are off answer nothing."""
    digest = hashlib.sha256()
    asked = [group for group in groups if group.mode != "off"]
    unnamed = {**texts, ENTRY_FILE: entry_module(asked, _REVISION_PLACE)}
    for name in sorted(unnamed):
        digest.update(orjson.dumps([name, unnamed[name]]))
    revision = digest.hexdigest()[:24]
    return revision, {**texts, ENTRY_FILE: entry_module(asked, revision)}


def archive(revision: str, modules: Mapping[str, str]) -> bytes:
    """The tar.gz that OPA loads; the same content gives the same bytes."""
    manifest = orjson.dumps({"revision": revision, "roots": ["sluice"], "rego_version": 1}).decode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, text in sorted({**modules, ".manifest": manifest}.items()):
            content = text.encode()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)
