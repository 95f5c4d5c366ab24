"""What a policy folder must pass before it is offered to OPA; the file and line of everything wrong are named.

Layout and METADATA, strict compilation against the sections each group declares, without any builtin that OPA marks
nondeterministic; its own tests; and the shape of every output, as it is written, on the example questions and in the tests.
What is checked is a copy, so what is checked is what is bundled. The programs run beside each other: the whole takes a
fraction of a second.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import orjson

from app.errors import DependencyDown
from app.policy.bundle import Compiled, Group, archive, group_rules, modules_of
from app.policy.coverage import show_command
from app.policy.folder import Files, Problems, Rule, check_lib, read_files, read_rule
from app.policy.modes import NO_MODES, Modes, check_names
from app.policy.offline import Workspace, applies, evaluate, note, workspace
from app.policy.probe import answers_in_tests
from app.policy.program import Ran
from app.policy.schema import question_schema
from app.policy.shapes import Shapes

T = TypeVar("T")

_TEST_TIMEOUT = "5s"

_SCHEMAS = "schemas"

_DECLARED = """# METADATA
# scope: subpackages
# schemas:
#   - input: schema.declared.{group}
package {package}
"""
"""A module beside a rule that says, in OPA's own words, what the rule may read."""


@dataclass(slots=True)
class Seen:
    """What the last check read and found out, so that the next one runs the program only for what has changed since.

    Rules take a run each and five more at first, and five in all after a change of one rule.
    """

    files: Files | None = None
    """None where they could not be read."""
    capabilities: Any = None
    trees: dict[tuple[str, str], Ran] = field(default_factory=dict)
    """Runs of the parser by file name and text."""
    parsed_tests: set[tuple[str, str]] = field(default_factory=set)


async def compile_policy(folder: Path, binary: Path, modes: Modes = NO_MODES, seen: Seen | None = None) -> Compiled:
    """Check `folder` and build its bundle. Raises PolicyRefused with one line per problem. `seen` is brought up to date."""
    seen = seen or Seen()
    seen.files = None
    seen.files = files = await asyncio.to_thread(read_files, folder)
    async with workspace(binary, files.all(), seen.capabilities) as work:
        seen.capabilities = work.current
        rules = await _parse(work, files, seen)
        groups = group_rules(rules, modes)
        revision, modules = modules_of({**files.rules, **files.lib}, groups)
        problems = Problems()
        check_names(modes, [rule.name for rule in rules], problems)
        shapes, trees = Shapes(problems), {name: ran.json() for (name, _), ran in seen.trees.items()}
        for rule in rules:
            shapes.look_at_text(rule, trees[rule.file])
        try:
            await _all(
                _check_reads(work, groups, files, problems),
                _run_tests(work, files, problems, show_command(folder, binary)),
                _ask_examples(work, modules, groups, shapes, problems),
                _watch_tests(work, files, rules, trees, shapes),
            )
        except DependencyDown:
            problems.refuse()  # a verdict, though another run gave none: a rule that does not end stops the tests, too
            raise
    problems.refuse()
    return Compiled(revision, groups, modules, archive(revision, modules))


async def _all(*runs: Awaitable[T]) -> list[T]:
    """What the runs give, beside each other. None is left running when one fails: the workspace is about to go."""
    results = await asyncio.gather(*runs, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


async def _parse(work: Workspace, files: Files, seen: Seen) -> list[Rule]:
    """The rules, from their syntax trees. Every syntax error is named, of helpers and tests, too."""
    problems = Problems()
    texts = list({**files.rules, **files.lib}.items())
    unknown = [(name, text) for name, text in texts if (name, text) not in seen.trees]
    runs = await _all(*(work.run("parse", "--format=json", "--json-include=locations", name) for name, _ in unknown))
    known = {**seen.trees, **dict(zip(unknown, runs, strict=True))}
    seen.trees = {file: known[file] for file in texts}
    rules = []
    for (name, _), ran in seen.trees.items():
        tree = _tree(name, ran, problems)
        if tree is None:
            continue
        if name in files.rules:
            rules.append(read_rule(name, tree, problems))
        else:
            check_lib(name, tree, problems)
    await _parse_tests(work, files, seen, problems)
    problems.refuse()
    return [rule for rule in rules if rule]


async def _parse_tests(work: Workspace, files: Files, seen: Seen, problems: Problems) -> None:
    """One run for all of them, since their trees are of no interest. Whether they compile is told when they are run."""
    unknown = [name for name, text in files.tests.items() if (name, text) not in seen.parsed_tests]
    if unknown:
        ran = await work.run("check", "--format=json", "--max-errors=0", *unknown)
        errors = ran.json()["errors"] if ran.exit_code else ()
        wrong = [error for error in errors if error["code"] == "rego_parse_error"]
        note(wrong, problems, otherwise="tests")
        seen.parsed_tests = set() if wrong else set(files.tests.items())


def _tree(name: str, ran: Ran, problems: Problems) -> Any:
    tree = ran.json()
    if "errors" in tree or ran.exit_code:
        note(tree.get("errors", ()), problems, otherwise=name)
        return None
    return tree


async def _check_reads(work: Workspace, groups: tuple[Group, ...], files: Files, problems: Problems) -> None:
    """Strict compilation of all rules in one run, each against the schema of what its group reads."""
    schemas = {
        f"{_SCHEMAS}/declared/{group.name}.json": orjson.dumps(question_schema(group.kind.sections, group.reads)).decode()
        for group in groups
    }
    by_file = {rule.file: group for group in groups for rule in group.rules}
    declared = {
        f"declared/{rule.name}.rego": _DECLARED.format(group=group.name, package=rule.package) for group in groups for rule in group.rules
    }
    await work.write({**schemas, **declared})
    sources = [*files.rules, *files.lib, *declared]
    ran = await work.run("check", "--strict", "--format=json", "--max-errors=0", work.capabilities, f"--schema={_SCHEMAS}", *sources)
    if ran.exit_code:
        note(ran.json().get("errors", ()), problems, otherwise="rules", removed=work.removed, groups=by_file)


async def _run_tests(work: Workspace, files: Files, problems: Problems, show: str) -> None:
    if not files.tests:
        return
    ran = await work.run("test", "--format=json", f"--timeout={_TEST_TIMEOUT}", work.capabilities, *files.all())
    if not ran.exit_code:
        return
    results = ran.json() if ran.stdout.strip() else []
    failed = [result for result in results if result.get("fail") or result.get("error")]
    problems.hint = show
    for result in failed:
        place = result.get("location") or {}
        problems.add(str(place.get("file")), place.get("row"), f"{result['name']} failed")
    if not failed:
        problems.add("tests", None, ran.stderr.strip() or "opa test failed")


async def _ask_examples(work: Workspace, modules: Mapping[str, str], groups: tuple[Group, ...], shapes: Shapes, problems: Problems) -> None:
    answers = await evaluate(work, modules, [(group, group.kind.examples) for group in groups], problems)
    for group in groups if answers else ():
        by_name, answered = {rule.name: rule for rule in group.rules}, answers.get(group.name, {})
        for example, question in group.kind.examples.items():
            if applies(question, group) and example not in answered:
                problems.add(group.rules[0].file, None, f"the rules {', '.join(by_name)} give no answer to example {example!r}")
            for name, outputs in answered.get(example, {}).items():
                shapes.look_at(by_name[name], outputs, f"example {example!r}")


async def _watch_tests(work: Workspace, files: Files, rules: list[Rule], trees: Mapping[str, Any], shapes: Shapes) -> None:
    if not files.tests:
        return
    by_name = {rule.name: rule for rule in rules}
    for test, name, output, element in await answers_in_tests(work, files, rules, trees, _TEST_TIMEOUT):
        shapes.look_at(by_name[name], {output: [element]}, test)
