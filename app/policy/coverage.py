"""Running a folder's own tests, and how many of its rules' lines they reach."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.policy.folder import PARTS, read_files
from app.policy.offline import Workspace, workspace
from app.policy.program import Ran


@dataclass(frozen=True, slots=True)
class Tested:
    """How the tests went. `covered_percent` counts lines of rules and helpers, not of tests."""

    passed: int
    failed: tuple[str, ...]
    """file:line: name of each test that failed."""
    covered_percent: float
    uncovered: tuple[str, ...]
    """file:line of each line that no test reaches."""


async def run_tests(folder: Path, binary: Path) -> Tested:
    """Run every test in `folder`. Raises PolicyRefused where it cannot even be compiled."""
    files = read_files(folder)
    async with workspace(binary, files.all()) as work:
        results = await _results(work, [*files.all()])
        failed = [result for result in results if result.get("fail") or result.get("error")]
        report = await _test(work, "--coverage", *files.all()) if not failed else None
    coverage = {name: lines for name, lines in (report.json()["files"] if report else {}).items() if name not in files.tests}
    covered = sum(each.get("covered_lines", 0) for each in coverage.values())
    missed = sum(each.get("not_covered_lines", 0) for each in coverage.values())
    return Tested(
        passed=len(results) - len(failed),
        failed=tuple(f"{result['location']['file']}:{result['location']['row']}: {result['name']}" for result in failed),
        covered_percent=100 * covered / (covered + missed) if covered + missed else 0.0,
        uncovered=tuple(
            dict.fromkeys(
                f"{name}:{span['start']['row']}" for name, lines in sorted(coverage.items()) for span in lines.get("not_covered", ())
            )
        ),
    )


def show_command(folder: Path, binary: Path) -> str:
    """What to do about a failed test: the command that shows what it and its rule said."""
    parts = [str(part) for part in (folder.absolute() / name for name in PARTS) if part.is_dir()]
    return f"To see why: {shlex.join([str(binary), 'test', '--var-values', *parts])}"


async def _results(work: Workspace, names: list[str]) -> list[dict[str, Any]]:
    ran = await _test(work, *names)
    results: list[dict[str, Any]] = ran.json() or []
    return results


async def _test(work: Workspace, *arguments: str) -> Ran:
    return await work.run("test", "--format=json", work.capabilities, *arguments)
