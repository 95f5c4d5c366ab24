"""Running the opa program: finding it, and one short run with bounded time.

When down: a program that is absent, does not end or dies is a ConfigError or DependencyDown with its remedy, never a verdict on
the rules; no policy changes.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from app.errors import ConfigError, DependencyDown

RUN_TIMEOUT_S = 8.0
"""Runs take a tenth of it, or end by a shorter time-out of their own; what takes longer is stuck. And serve, which waits for it, must end within 10 s."""

_AT_ONCE = 2
"""Programs at once: each is one short CPU-bound run, and the requests of a serve that checks must be answered meanwhile."""

_NICENESS = "5"
"""Leaves three quarters of a busy processor to the OPA that answers requests."""

_NOT_STARTED = (126, 127)
"""Exit codes of `nice` where it cannot start the program."""

_REMEDY = "The machine may be overloaded or short of memory; serve tries again by itself."


@dataclass(frozen=True, slots=True)
class Ran:
    """How one run ended."""

    exit_code: int
    stdout: bytes
    stderr: str

    def json(self) -> Any:
        """Its JSON document: on stdout, or on stderr where it only has errors to tell. Raises DependencyDown with what it said instead."""
        try:
            return orjson.loads(self.stdout.strip() or self.stderr)
        except orjson.JSONDecodeError:
            said = self.stderr.strip() or f"exit code {self.exit_code}"
            raise DependencyDown(f"opa gave no JSON: {said}", hint=_REMEDY) from None


def find_opa(binary: str = "") -> Path:
    """The opa program: `binary` where it is set, else .tools/opa of this checkout, else the one on PATH. Raises ConfigError."""
    if binary:
        if not os.access(binary, os.X_OK):
            raise ConfigError(f"opa.binary: {binary} is not a program", hint="Name an executable opa 1.0 or newer, or leave it empty.")
        return Path(binary).absolute()
    local = Path(__file__).parents[2] / ".tools" / "opa"
    found = str(local) if os.access(local, os.X_OK) else shutil.which("opa")
    if not found:
        raise ConfigError("no opa program in .tools/ or on PATH", hint="Run `make setup`, or set opa.binary.")
    return Path(found)


class Program:
    """The opa program, run in one folder, a few at a time."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self._binary = binary
        nice = shutil.which("nice")
        self._command = [nice, "-n", _NICENESS, str(binary)] if nice else [str(binary)]
        self._folder = folder
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def run(self, *arguments: str, stdin: bytes = b"") -> Ran:
        """One run. Raises ConfigError when it cannot start and DependencyDown when it does not end.

        It runs in a thread: asyncio's own subprocesses may never end when they are cancelled while they start.
        """
        async with self._at_once:
            return await asyncio.to_thread(self._run, arguments, stdin)

    def _run(self, arguments: Sequence[str], stdin: bytes) -> Ran:
        try:
            ran = subprocess.run(
                [*self._command, *arguments],
                cwd=self._folder,
                input=stdin,
                capture_output=True,
                timeout=RUN_TIMEOUT_S,
                check=False,
            )
        except OSError as error:
            raise self._not_started(error) from None
        except subprocess.TimeoutExpired:
            raise DependencyDown(f"opa {arguments[0]} did not end within {RUN_TIMEOUT_S:g} s", hint=_REMEDY) from None
        stderr = ran.stderr.decode(errors="replace")
        if ran.returncode in _NOT_STARTED:
            raise self._not_started(stderr.strip())
        return Ran(ran.returncode, ran.stdout, stderr)

    def _not_started(self, why: object) -> ConfigError:
        return ConfigError(f"{self._binary} cannot be run: {why}", hint="Run `sluice doctor`.")
