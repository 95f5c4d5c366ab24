"""Asking rules without a running OPA: a private copy of their texts, and the opa program beside it."""

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from app.errors import DependencyDown
from app.policy.bundle import ENTRY_FILE, Group, entry_module, exists
from app.policy.folder import Problems
from app.policy.program import Program, Ran
from app.policy.schema import why_undefined

_CAPABILITIES = "capabilities.json"
_UNDEFINED = "undefined ref: "
_DOUBLED = re.compile(r'yaml: .*mapping key "(?P<key>[^"]+)" already defined', re.DOTALL)
_EVAL_TIMEOUTS = ("2s", "5s")
"""All examples together take milliseconds. What is not done by then is asked once more with longer: a machine may have been
busy for seconds, which is no verdict on the rules, and a rule that does not end then either does not end."""
_CANCELLED = "eval_cancel_error"
"""OPA's code for what its time ended."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A private folder with texts in it, where the opa program runs under restricted capabilities."""

    folder: Path
    program: Program
    removed: frozenset[str]
    """Builtins that rules may not call: those that OPA marks nondeterministic."""
    current: Any
    """What this OPA can do, as it says itself."""

    capabilities = f"--capabilities={_CAPABILITIES}"

    async def run(self, *arguments: str, stdin: bytes = b"") -> Ran:
        """One run of the program in the folder."""
        return await self.program.run(*arguments, stdin=stdin)

    async def write(self, texts: Mapping[str, str]) -> None:
        """Put texts into the folder by relative path."""
        await asyncio.to_thread(self._write, texts)

    def _write(self, texts: Mapping[str, str]) -> None:
        for name, text in texts.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")


@asynccontextmanager
async def workspace(binary: Path, texts: Mapping[str, str], capabilities: Any = None) -> AsyncIterator[Workspace]:
    """A workspace that holds `texts`, removed afterwards. `capabilities` are those of an earlier workspace of this binary.

    Raises DependencyDown where there is no room for it.
    """
    try:
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="sluice-policy-"))
        try:
            yield await _filled(folder, binary, texts, capabilities)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    except OSError as error:
        raise DependencyDown(f"no workspace for the rules: {error}", hint="Free space there, or set TMPDIR to another folder.") from None


async def _filled(folder: Path, binary: Path, texts: Mapping[str, str], capabilities: Any) -> Workspace:
    program = Program(binary, folder)
    if capabilities is None:
        capabilities = (await program.run("capabilities", "--current")).json()
    removed = frozenset(builtin["name"] for builtin in capabilities["builtins"] if builtin.get("nondeterministic"))
    kept = [builtin for builtin in capabilities["builtins"] if builtin["name"] not in removed]
    work = Workspace(folder, program, removed, capabilities)
    await work.write({**texts, _CAPABILITIES: orjson.dumps({**capabilities, "builtins": kept, "allow_net": []}).decode()})
    return work


async def evaluate(
    work: Workspace, modules: Mapping[str, str], questions: Iterable[tuple[Group, Mapping[str, Mapping[str, Any]]]], problems: Problems
) -> dict[str, Any]:
    """Each group's answers by question name: {group: {name: {rule: {output: [elements]}}}}; empty with `problems` noted.

    Groups of rules that are off answer here as others do: the entry module is made anew for the groups that are asked.
    """
    questions = list(questions)
    if not questions:
        return {}
    await work.write({ENTRY_FILE: entry_module([group for group, _ in questions], revision="")})
    asked = {
        group.name: {name: restrict(question, group) for name, question in named.items() if applies(question, group)}
        for group, named in questions
    }
    document, stdin = {}, orjson.dumps(asked)
    for within in _EVAL_TIMEOUTS:
        document = await _evaluated(work, modules, stdin, within)
        if not any(error.get("code") == _CANCELLED for error in document.get("errors", ())):
            break
    else:
        problems.add("the rules", None, f"the examples are not answered within {_EVAL_TIMEOUTS[-1]}; a rule may not end")
        return {}
    if "errors" in document:
        note(document["errors"], problems, otherwise="the rules", removed=work.removed)
        return {}
    answers: dict[str, Any] = document["result"][0]["expressions"][0]["value"]
    return answers


async def _evaluated(work: Workspace, modules: Iterable[str], stdin: bytes, within: str) -> Any:
    data = (f"--data={name}" for name in modules)
    options = ["--format=json", f"--timeout={within}", work.capabilities, "--stdin-input"]
    return (await work.run("eval", *options, *data, "data.sluice.entry.answer", stdin=stdin)).json()


def restrict(question: Mapping[str, Any], group: Group) -> dict[str, Any]:
    """What the group is shown of a question: the sections and fields it declares."""
    return {read.section: read.of(question[read.section]) for read in group.reads if read.section in question}


def applies(question: Mapping[str, Any], group: Group) -> bool:
    """Whether the path of the group's `when` exists in the question."""
    return exists(question, group.when)


def note(
    errors: Any, problems: Problems, *, otherwise: str, removed: frozenset[str] = frozenset(), groups: Mapping[str, Group] | None = None
) -> None:
    """Note OPA's own errors at their places. `removed` are builtins that it was not given, `groups` the group of each file."""
    for error in errors:
        place = error.get("location") or {}
        group = (groups or {}).get(str(place.get("file")))
        message = str(error.get("message", error.get("code", "failed")))
        if message.removeprefix("undefined function ") in removed:
            message += ": rules may not look outside of the question, since the same question must give the same answer"
        if doubled := _DOUBLED.match(message):
            message = f"METADATA has {doubled['key']} twice; leave out one of them"
        undefined = group is not None and message.startswith(_UNDEFINED)
        why = why_undefined(message.removeprefix(_UNDEFINED), group.kind.sections, group.reads) if group and undefined else ""
        problems.add(place.get("file") or otherwise, place.get("row"), f"{message}. {why}" if why else message)
