"""`python -m bench`: measure the budgets beside their peers, print the table, keep it as JSON in bench/out."""

import argparse
import os
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.report import Finding, table, write
from bench.rows import DECISIONS, ROUNDS, Run, rows
from bench.servers import clean_environment
from bench.stage import Stage

FULL_DECISIONS = 1_000_000


def main() -> int:
    """Measure the rows that were asked for. Exit code 1: a budget was missed or a row could not be measured."""
    every = rows()
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", help=f"rows to measure, by commas: {','.join(every)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="times that each peer is measured")
    parser.add_argument("--full", action="store_true", help=f"{FULL_DECISIONS} decisions in the memory row: some 20 minutes")
    parser.add_argument("--plots", type=Path, help="folder for the plots of the proofs; without it none are drawn")
    asked = parser.parse_args()
    chosen = asked.only.split(",") if asked.only else list(every)
    if unknown := set(chosen) - set(every):
        parser.error(f"no row {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that every server is stopped
    plots = asked.plots and asked.plots.resolve()
    os.chdir(Path(__file__).resolve().parents[1])
    clean_environment()
    run = Run(rounds=asked.rounds, decisions=FULL_DECISIONS if asked.full else DECISIONS, plots=plots)
    started = datetime.now(UTC)
    findings, failed = _measure([name for name in every if name in chosen], run)
    print(table(findings))
    print(f"{write(findings, started)}; {(datetime.now(UTC) - started).total_seconds():.0f} s; load average {os.getloadavg()[0]:.1f}")
    return 1 if failed or any(finding.met is False for finding in findings) else 0


def _measure(chosen: list[str], run: Run) -> tuple[list[Finding], bool]:
    """A row that fails says why and leaves the others."""
    findings: list[Finding] = []
    failed = False
    with Stage() as stage:
        for name in chosen:
            began = time.perf_counter()
            try:
                findings += rows()[name](stage, run)
            except RuntimeError as error:
                failed = True
                print(f"{name}: {error}", file=sys.stderr)
            print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return findings, failed


if __name__ == "__main__":
    sys.exit(main())
