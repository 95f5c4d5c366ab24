"""Runs of a program in the place of opa, as real processes."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from app.errors import ConfigError, DependencyDown
from app.policy.program import Program


def program(folder: Path, script: str) -> Program:
    """A program that runs this Python text."""
    binary = folder / "program"
    binary.write_text(f"#!{sys.executable}\n{script}\n")
    binary.chmod(0o755)
    return Program(binary, folder)


async def test_it_runs_with_less_priority_than_what_answers_requests(tmp_path: Path) -> None:
    """Its niceness is five above ours."""
    ran = await program(tmp_path, "import os; print(os.nice(0))").run()

    assert ran.json() == min(os.nice(0) + 5, 19)


async def test_no_more_than_two_run_at_once(tmp_path: Path) -> None:
    """Six runs that count who is there beside them never see more than one other."""
    script = """
import os, pathlib, time
mine = pathlib.Path(f"running{os.getpid()}")
mine.touch()
time.sleep(0.05)
print(len(list(pathlib.Path().glob("running*"))))
mine.unlink()
"""
    one = program(tmp_path, script)
    seen = [ran.json() for ran in await asyncio.gather(*(one.run() for _ in range(6)))]

    assert set(seen) <= {1, 2}


@pytest.mark.parametrize("binary", ["absent", "not_a_program"])
async def test_what_cannot_be_started_is_named(tmp_path: Path, binary: str) -> None:
    """It is a matter of the settings, not of the rules."""
    (tmp_path / "not_a_program").touch()
    with pytest.raises(ConfigError, match=f"{binary} cannot be run: .+"):
        await Program(tmp_path / binary, tmp_path).run()


async def test_a_program_that_dies_has_given_no_verdict(tmp_path: Path) -> None:
    """Killed for memory, say: what it said is told, and nothing is held against the rules."""
    ran = await program(tmp_path, "import os, sys; print('half', file=sys.stderr, flush=True); os.kill(os.getpid(), 9)").run()

    with pytest.raises(DependencyDown, match="opa gave no JSON: half"):
        ran.json()
