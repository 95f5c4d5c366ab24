"""How doctor looks at things: bounded in time, changing nothing."""

import os
import subprocess
from pathlib import Path

from app.errors import ConfigError

TIMEOUT_S = 5  # how long doctor waits for anything that it asks


def nearest(folder: Path) -> Path:
    """`folder`, or the first of its parents that is there for this user: what lies in a closed folder is not."""
    return next(part for part in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(part))


def output_of(command: list[str | Path]) -> str:
    """What a program prints. Raises ConfigError where it does not run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(f"{command[0]} does not run: {error}", hint="Run `make setup`.") from None
