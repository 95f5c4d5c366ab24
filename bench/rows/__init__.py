"""The rows of the table, by name, in the order in which they are measured; those that share servers stand together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.report import Finding
from bench.stage import Stage

ROUNDS = 3
DECISIONS = 100_000


@dataclass(frozen=True, slots=True)
class Run:
    """How thoroughly a run measures."""

    rounds: int = ROUNDS
    seconds: float = 2.0
    """Length of one load as fast as answers come."""
    steady_seconds: float = 5.0
    """Length of one load at a steady rate: at 300 a second, 15 answers are beyond the 99th percentile."""
    decisions: int = DECISIONS
    """How many decisions the memory row makes."""
    plots: Path | None = None
    """Where the proofs draw what they measured; None: nowhere."""


Row = Callable[[Stage, Run], list[Finding]]


def rows() -> Mapping[str, Row]:
    """Every row."""
    from bench.rows import (
        backpressure,
        change,
        dynamic_quota,
        log,
        memory,
        miss,
        proof,
        report,
        sensitive,
        steady,
        telemetry,
        tenants,
        token_admission,
        warm,
    )

    return {
        "warm": warm.warm,
        "batch": warm.batch,
        "steady": steady.steady,
        "disturbed": steady.disturbed,
        "change": change.change,
        "rules": warm.rules,
        "tenants": tenants.tenants,
        "miss": miss.miss,
        "memory": memory.memory,
        "telemetry": telemetry.telemetry,
        "log": log.log,
        "proof": proof.proof,
        "report": report.report,
        "sensitive": sensitive.sensitive,
        "dynamic_quota": dynamic_quota.dynamic_quota,
        "token_admission": token_admission.token_admission,
        "backpressure": backpressure.backpressure,
    }
