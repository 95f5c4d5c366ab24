"""`sluice policy`: check, test, try and begin rules; none of it needs a running server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from app.cli.options import Config, Overrides, Var, settings_of
from app.errors import BadRequest, PolicyRefused

if TYPE_CHECKING:
    from app.policy.bundle import Compiled
    from app.settings import Settings

app = typer.Typer(help="Rules: check, test, evaluate, begin.", no_args_is_help=True)

Folder = Annotated[Path | None, typer.Argument(help="policy folder; without it policy.path of the settings")]
FolderOption = Annotated[Path | None, typer.Option(help="policy folder; without it policy.path of the settings")]
Output = Annotated[Literal["table", "json"], typer.Option(help="for people or for programs")]


@app.command()
def check(
    path: Folder = None, *, var: Var = Path("var"), config: Config = None, overrides: Overrides = None, output: Output = "table"
) -> None:
    """Check a policy folder as serve does before it loads it, and warn of what is allowed but costly or risky."""
    import asyncio

    from app.policy.advice import advise
    from app.policy.check import compile_policy
    from app.policy.reads import names_of

    settings = settings_of(config, var, overrides)
    folder, binary = _where(path, settings, output)

    async def run() -> tuple["Compiled", list[str]]:
        compiled = await compile_policy(folder, binary, settings.policy.rules)
        return compiled, await advise(compiled, binary)

    compiled, warnings = asyncio.run(run())
    if output == "json":
        return _print_json({"folder": str(folder), **_checked(compiled), "warnings": warnings})
    for group in compiled.groups:
        print(f"{', '.join(rule.name for rule in group.rules)}: {group.mode}, reads {', '.join(names_of(group.reads))}")
    for warning in warnings:
        print(f"warning: {warning}")
    print(f"ok, revision {compiled.revision}")
    return None


@app.command("test")
def run_tests_beside(
    path: Folder = None,
    *,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
    threshold: Annotated[float, typer.Option(help="per cent of the rules' lines that tests must reach")] = 0.0,
) -> None:
    """Run the tests beside the rules and say which lines none of them reaches."""
    import asyncio

    from app.policy.coverage import run_tests, show_command

    folder, binary = _where(path, settings_of(config, var, overrides))
    ran = asyncio.run(run_tests(folder, binary))
    if ran.failed:
        raise PolicyRefused("\n".join(f"{each} failed" for each in ran.failed), hint=show_command(folder, binary))
    for place in ran.uncovered:
        print(f"not reached: {place}")
    print(f"{ran.passed} passed, {ran.covered_percent:.1f} % of the rules' lines reached")
    if ran.covered_percent < threshold:
        raise PolicyRefused(f"{ran.covered_percent:.1f} % is below {threshold:g} %", hint="Add tests for the lines above.")


@app.command("eval")
def eval_(
    question: Annotated[
        Path, typer.Argument(help="JSON file with a question: tenant, model, readings, subject, request, time; or node, model, readings")
    ],
    *,
    path: FolderOption = None,
    readings: Annotated[Path | None, typer.Option(help="JSON file with readings, in place of those in the question")] = None,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
    output: Output = "table",
) -> None:
    """Show what each rule contributes to one question, and what they combine to: terms, or what a node may do."""
    import asyncio

    from app.policy.trial import lines, try_question

    settings = settings_of(config, var, overrides)
    folder, binary = _where(path, settings, output)
    asked = _read_object(question)
    if readings is not None:
        asked["readings"] = _read_object(readings)
    trial = asyncio.run(try_question(folder, binary, settings.policy.rules, asked))
    if output == "json":
        return _print_json({"folder": str(folder), **trial})
    for line in lines(trial):
        print(line)
    return None


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="name of the rule: small letters, digits and _")],
    *,
    reads: Annotated[
        list[str] | None, typer.Option(help="a section that it reads, or one field of a section such as tenant.sla_class; may be repeated")
    ] = None,
    kind: Annotated[
        Literal["rules", "nodes"], typer.Option(help="asked once a request, or once a node and change of its readings")
    ] = "rules",
    path: FolderOption = None,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Begin a rule: its folder with METADATA, a rule that compiles and a test that passes. It begins in shadow."""
    from app.policy.kinds import KINDS
    from app.policy.scaffold import write_rule

    for written in write_rule(_folder(path, settings_of(config, var, overrides)), name, reads or (), KINDS[kind]):
        print(written)
    print("in shadow: only recorded until `shadow: true` is removed from its METADATA")


@app.command()
def schemas(
    *,
    write: Annotated[bool, typer.Option("--write", help="write the files; without it only compare them")] = False,
    path: FolderOption = None,
    var: Var = Path("var"),
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Generate schemas/*.json, what rules may read, from the Python side; without --write say whether they are current."""
    from app.policy.schema_files import drifted, write_schemas

    folder = _folder(path, settings_of(config, var, overrides)) / "schemas"
    if write:
        write_schemas(folder)
    old = drifted(folder)
    if old:
        raise PolicyRefused(f"{folder}: {', '.join(old)} differ from the question", hint="Run `sluice policy schemas --write`.")
    print(f"{folder} is current")


def _folder(path: Path | None, settings: "Settings") -> Path:
    return (path or Path(settings.policy.path)).absolute()


def _where(path: Path | None, settings: "Settings", output: str = "table") -> tuple[Path, Path]:
    """Policy folder, which people are told, and opa program."""
    from app.policy.program import find_opa

    folder = _folder(path, settings)
    if output == "table":
        print(f"folder: {folder}")
    return folder, find_opa(settings.opa.binary)


def _checked(compiled: "Compiled") -> dict[str, Any]:
    """Revision, and rules by group and by mode, for programs."""
    groups = {group.name: [rule.name for rule in group.rules] for group in compiled.groups}
    modes = {rule.name: group.mode for group in compiled.groups for rule in group.rules}
    return {"revision": compiled.revision, "groups": groups, "modes": modes}


def _read_object(path: Path) -> dict[str, Any]:
    import json

    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BadRequest(f"{path}: {error}", hint="Name a file that holds a JSON object.") from None
    if not isinstance(document, dict):
        raise BadRequest(f"{path}: expected a JSON object")
    return document


def _print_json(document: Any) -> None:
    import json

    print(json.dumps(document, indent=2, ensure_ascii=False))
