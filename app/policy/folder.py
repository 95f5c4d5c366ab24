"""A policy folder as it lies on disk: which files are rules, helpers and tests, and what has no place in them.

rules/<name>/<name>.rego        one rule, package sluice.rules.<name>, with METADATA
rules/<name>/<any>_test.rego    its tests, never in the bundle
nodes/<name>/…                  the same for a rule that is asked once a node, package sluice.nodes.<name>
lib/**/*.rego                   functions for several rules, package sluice.lib.…
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from app.errors import PolicyRefused
from app.policy.kinds import KINDS, REQUESTS, Kind
from app.policy.metadata import parse_metadata
from app.policy.reads import Read
from app.setting_sections import RuleMode
from app.watching import files_under

PARTS = (*KINDS, "lib")
"""Folders of a policy folder; what lies beside them is nobody's business."""

_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_DATA = (".json", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as its METADATA and its text describe it."""

    name: str
    title: str
    description: str
    row: str
    reads: tuple[Read, ...]
    when: tuple[str, ...]
    """Path in the question that must exist for the rule to be asked, e.g. ("model", "sensitive"); empty: always asked."""
    mode: RuleMode
    """By its METADATA; modes.py has the mode that holds."""
    optional: frozenset[str]
    """Paths whose absence may widen the answer, by the author's word."""
    outputs: tuple[str, ...]
    file: str
    lines: Mapping[str, int] = field(default_factory=dict)
    """Line of the first definition of each output."""
    kind: Kind = REQUESTS

    @property
    def package(self) -> str:
        """Its package, below which OPA has its outputs."""
        return f"sluice.{self.kind.folder}.{self.name}"


@dataclass(frozen=True, slots=True)
class Files:
    """Texts by path relative to the policy folder."""

    rules: Mapping[str, str]
    """Of every kind."""
    lib: Mapping[str, str]
    tests: Mapping[str, str]

    def all(self) -> dict[str, str]:
        """Every file."""
        return {**self.rules, **self.lib, **self.tests}


class Problems:
    """Everything wrong with a folder, so that one check names all of it."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.hint: str | None = None
        """What to do, where that is more than to correct the named lines."""

    def add(self, file: str, line: int | None, problem: str) -> None:
        """Note one problem at its place."""
        text = f"{file}:{line}: {problem}" if line else f"{file}: {problem}"
        if text not in self._lines:
            self._lines.append(text)

    def refuse(self) -> None:
        """Raise PolicyRefused with all problems, where there are any."""
        if self._lines:
            raise PolicyRefused("\n".join(self._lines), hint=self.hint)


def read_files(folder: Path) -> Files:
    """The folder's files. Raises PolicyRefused for whatever has no place in it."""
    problems = Problems()
    rules: dict[str, str] = {}
    lib: dict[str, str] = {}
    tests: dict[str, str] = {}
    for path in _paths(folder):
        name = path.relative_to(folder)
        problem = _misplaced(name)
        if problem:
            problems.add(str(name), None, problem)
            continue
        texts = tests if path.name.endswith("_test.rego") else rules if name.parts[0] in KINDS else lib
        texts[str(name)] = _text(path, str(name), problems)
    for kind in KINDS.values():
        if not any(Path(name).parts[0] == kind.folder for name in rules) and (problem := _why_none(folder, kind)):
            problems.add(str(folder), None, problem)
    _check_names(rules, problems)
    problems.refuse()
    return Files(rules, lib, tests)


def _why_none(folder: Path, kind: Kind) -> str | None:
    """What is wrong with a folder that has no rule of this kind; None where it needs none."""
    if (folder / kind.folder).is_dir():
        return f"{kind.folder}/ holds no rule; an empty folder is taken for a write in progress, not for a wish"
    if not kind.required:
        return None
    if not folder.is_dir():
        return f"no such folder; name the one that holds {kind.folder}/"
    return f"holds no {kind.folder}/; name the folder that does"


def _check_names(rules: Iterable[str], problems: Problems) -> None:
    """One name is one rule, whatever its kind: settings, metrics and the log name rules by nothing else."""
    known: dict[str, str] = {}
    for file in rules:
        other = known.setdefault(Path(file).stem, file)
        if other != file:
            problems.add(file, None, f"{other} has the same name; settings and metrics could not tell them apart")


def _paths(folder: Path) -> list[Path]:
    try:
        found = [path for part in PARTS if os.path.lexists(folder / part) for path in files_under(folder / part)]
    except OSError as error:
        raise PolicyRefused(f"{error.filename or folder}: cannot be read: {error.strerror}") from None
    return [path for path in found if path.suffix in (".rego", *_DATA)]


def _misplaced(name: Path) -> str | None:
    """Why a file has no place where it lies; None where it has one."""
    if name.suffix in _DATA:
        return "data files do not travel with rules; write the value as a named constant in the rule"
    if name.parts[0] == "lib":
        return None
    if len(name.parts) != 3:
        return f"a rule has a folder of its own, and folders of rules do not nest: {KINDS[name.parts[0]].layout}"
    rule = name.parts[1]
    if not _NAME.match(rule):
        return f"{rule!r} is no rule name; use small letters, digits and _"
    if name.stem != rule and not name.stem.endswith("_test"):
        return f"a rule is one file, {rule}.rego; move shared functions to lib/"
    return None


def _text(path: Path, name: str, problems: Problems) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problems.add(name, None, f"cannot be read: {error}")
        return ""


def read_rule(file: str, tree: Mapping[str, Any], problems: Problems) -> Rule | None:
    """The rule in `file` from its syntax tree, or None with the reasons noted in `problems`."""
    kind, name = KINDS[Path(file).parts[0]], Path(file).stem
    _check_package(file, tree, ["sluice", kind.folder, name], problems, exact=True)
    _check_references(file, tree, ["sluice", kind.folder, name], problems)
    outputs = _outputs(kind, file, tree, problems)
    if not outputs:
        problems.add(file, None, f"answers nothing; a rule in {kind.folder}/ defines at least one of {', '.join(kind.outputs)}")
    annotations = tree.get("annotations", ())
    for each in annotations:
        if each.get("scope") != "package" and each.get("custom"):
            problems.add(file, _line(each), "METADATA custom holds for the whole rule; move it to the METADATA above the package")
    notes = next((each for each in annotations if each.get("scope") == "package"), None)
    if notes is None:
        problems.add(file, 1, "has no METADATA above its package; `sluice policy new` writes it")
        return None
    described = parse_metadata(notes, kind.sections, partial(problems.add, file, _line(notes)))
    return Rule(
        name=name,
        title=described.title,
        description=described.description,
        row=described.row,
        reads=described.reads,
        when=described.when,
        mode=described.mode,
        optional=described.optional,
        outputs=tuple(output for output in kind.outputs if output in outputs),
        file=file,
        lines=outputs,
        kind=kind,
    )


def check_lib(file: str, tree: Mapping[str, Any], problems: Problems) -> None:
    """Note what a helper file may not do: live elsewhere, or read the question by itself."""
    _check_package(file, tree, ["sluice", "lib"], problems, exact=False)
    _check_references(file, tree, ["sluice", "lib"], problems)
    for reference in _references(tree):
        if reference[0].get("value") == "input":
            problems.add(file, _line(reference[0]), "functions in lib/ take what they need as arguments; only rules read input")


def _outputs(kind: Kind, file: str, tree: Mapping[str, Any], problems: Problems) -> dict[str, int]:
    """Line of the first definition of each output; whatever is no set is a problem, since Rego would drop it in silence."""
    lines: dict[str, int] = {}
    for rule in tree.get("rules", ()):
        head = rule["head"]
        name, line = str(head["ref"][0]["value"]), _line(rule)
        if name.startswith("test_"):
            problems.add(file, line, f"{name} is a test; move it to a file that ends in _test.rego")
        if name not in kind.outputs:
            if _is_set(head):
                _check_other_set(kind, file, line, name, problems)
            continue
        if not _is_set(head) or len(head["ref"]) > 1:
            problems.add(file, line, f"{name} must be a set: write `{name} contains …`")
        lines.setdefault(name, line or 1)
    return lines


def _is_set(head: Mapping[str, Any]) -> bool:
    return "key" in head and "value" not in head


def _check_other_set(kind: Kind, file: str, line: int | None, name: str, problems: Problems) -> None:
    """A set that is an output of the other kind, or is called almost like one of this kind, would vanish in silence."""
    for other in KINDS.values():
        if name in other.outputs:
            moved = f"answer it in a rule of its own, {other.layout}, or give the set another name"
            problems.add(file, line, f"{name} is an output of {other.folder}/, which rules in {kind.folder}/ do not answer; {moved}")
            return
    meant = get_close_matches(name, kind.outputs, n=1, cutoff=0.8)
    if meant:
        problems.add(file, line, f"{name} is no output; is {meant[0]} meant? Otherwise give the set a name less alike")


def _check_package(file: str, tree: Mapping[str, Any], wanted: list[str], problems: Problems, *, exact: bool) -> None:
    path = [str(part["value"]) for part in tree["package"]["path"][1:]]
    if path != wanted if exact else path[: len(wanted)] != wanted:
        problems.add(file, _line(tree["package"]), f"package {'.'.join(path)} must be {'.'.join(wanted)}{'' if exact else '…'}")


def _check_references(file: str, tree: Mapping[str, Any], own: list[str], problems: Problems) -> None:
    for reference in _references(tree):
        if reference[0].get("value") != "data":
            continue
        path = [str(part.get("value")) for part in reference[1:]]
        if path[:2] != ["sluice", "lib"] and path[: len(own)] != own:
            problems.add(file, _line(reference[0]), f"data.{'.'.join(path)} is outside of the rule; only data.sluice.lib is shared")


def _references(tree: Any) -> Iterator[list[Mapping[str, Any]]]:
    """Every reference in a syntax tree, but for the package's own name."""
    if isinstance(tree, dict):
        if tree.get("type") == "ref" and tree["value"][0].get("type") == "var":
            yield tree["value"]
        for key, branch in tree.items():
            if key not in ("package", "annotations", "comments"):
                yield from _references(branch)
    elif isinstance(tree, list):
        for branch in tree:
            yield from _references(branch)


def _line(node: Mapping[str, Any]) -> int | None:
    line = (node.get("location") or {}).get("row")
    return int(line) if line else None
