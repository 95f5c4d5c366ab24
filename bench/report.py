"""Findings, and how they are shown: a table on stdout, and JSON for whoever compares runs."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

OUT = Path(__file__).resolve().parent / "out"
HEADINGS = ("row", "what", "measured", "against", "ratio (rounds)", "budget", "met")


@dataclass(frozen=True, slots=True)
class Finding:
    """One number, where it can be as a ratio to a peer's of the same run."""

    row: str
    what: str
    value: float
    unit: str
    against: str = ""
    peer: float | None = None
    ratio: float | None = None
    spread: tuple[float, float] | None = None
    """The smallest and the largest of the rounds: of the ratio where there is one, else of the value."""
    budget: float | None = None
    """The most that the ratio may be, or where there is none the value."""
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether it is within its budget; None without one."""
        if self.budget is None:
            return None
        return (self.value if self.ratio is None else self.ratio) <= self.budget


def table(findings: Sequence[Finding]) -> str:
    """The findings in columns, each note on a line of its own below."""
    rows = [_cells(finding) for finding in findings]
    widths = [max(map(len, column)) for column in zip(HEADINGS, *rows, strict=True)]
    lines = [_line(HEADINGS, widths), "  ".join("-" * width for width in widths)]
    for finding, row in zip(findings, rows, strict=True):
        lines.append(_line(row, widths))
        if finding.note:
            lines.append(f"{'':{widths[0]}}  {finding.note}")
    return "\n".join(lines)


def write(findings: Sequence[Finding], started: datetime) -> Path:
    """Write the findings as JSON, with what they were measured on; returns the file."""
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{started:%Y%m%dT%H%M%SZ}.json"
    document = {
        "started": started.isoformat(),
        "seconds": (datetime.now(UTC) - started).total_seconds(),
        "machine": {"cores": os.cpu_count(), "kernel": platform.release(), "load_average": os.getloadavg()},
        "findings": [{**asdict(finding), "met": finding.met} for finding in findings],
    }
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return path


def _cells(finding: Finding) -> tuple[str, ...]:
    peer = f"{finding.against} {_number(finding.peer)}" if finding.peer is not None else finding.against
    ratio = "" if finding.ratio is None else f"{finding.ratio:.2f}"
    spread = "" if finding.spread is None else f" ({_number(finding.spread[0])}–{_number(finding.spread[1])})"
    budget = "" if finding.budget is None else f"≤ {_number(finding.budget)}"
    met = {None: "", True: "yes", False: "NO"}[finding.met]
    return finding.row, finding.what, f"{_number(finding.value)} {finding.unit}", peer, ratio + spread, budget, met


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
