"""What doctor finds: one line each, with a remedy where something is to do."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `remedy` is empty where nothing needs doing."""

    name: str
    level: Literal["ok", "warn", "fail"]
    message: str
    remedy: str = ""
