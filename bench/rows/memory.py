"""Resident memory after many decisions, each with a request id of its own, their leases settled as a gateway does."""

from dataclasses import replace

from bench.load import Load, Running
from bench.processes import resident_mb
from bench.questions import request, zipf
from bench.registry import numbered
from bench.report import Finding
from bench.rows import Run
from bench.servers import Sluice
from bench.stage import Stage

TENANTS = 10_000
MOST_MB = 250.0
FLAT = 1.05
"""What memory may be in the end of what it was after three quarters."""
LEAST_ALLOWED = 0.9
"""Rare tenants leave the memo, and OPA may be late on a busy machine; more refusals would be another measurement."""
PARTS = 4
LONGEST_S = 1800.0


def memory(stage: Stage, run: Run) -> list[Finding]:
    """Settings are the shipped ones: ended leases answer replays for their full time, within their bound."""
    with stage.new_sluice("Sluice", numbered=TENANTS, settings={}) as sluice:
        resident, refused = _by_parts(sluice, run.decisions // PARTS)
    grown = f"MB by quarters: {', '.join(f'{each:.0f}' for each in resident)}; {refused} refused"
    what = f"after {run.decisions} decisions"
    return [
        Finding("memory", f"resident, {TENANTS} tenants, {what}", resident[-1], "MB", budget=MOST_MB, note=grown),
        Finding("memory", "last quarter", resident[-1], "MB", "three quarters", resident[-2], resident[-1] / resident[-2], budget=FLAT),
    ]


def _by_parts(sluice: Sluice, part: int) -> tuple[list[float], int]:
    """Resident memory before the first and after each of PARTS parts of the decisions, and how many were refusals."""
    load = Load(
        sluice.port,
        "/decide",
        tuple(request(numbered(number), request_id="id-{n}") for number in range(TENANTS)),
        tuple(zipf(TENANTS)),
        sluice.credential(),
        seconds=LONGEST_S,
        most=part,
        settle=True,
    )
    resident, refused = [resident_mb(sluice.pid)], 0
    for number in range(PARTS):
        outcome = Running(replace(load, first=number * part)).outcome()
        if outcome.failed or outcome.allowed < LEAST_ALLOWED * part:
            raise RuntimeError(
                f"memory: of {part} decisions {outcome.allowed} were allowed, {outcome.failed} answers were no success; {outcome.odd}"
            )
        resident.append(resident_mb(sluice.pid))
        refused += part - outcome.allowed
    return resident, refused
