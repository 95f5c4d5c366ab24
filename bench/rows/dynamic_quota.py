"""A static quota against one that follows the time to the first token (B4), while the engine loses most of its batch and gets it back."""

import math
from pathlib import Path
from statistics import fmean

from bench.arm import QUOTAS_ALONE, Arm, Pair, Plan, Scene, play
from bench.arrivals import Phase, Sizes, draw
from bench.experience import Batch, due, possible_tokens, recovery_s, share, tokens, ttfts
from bench.generator import percentile
from bench.plots import Panel, per_second
from bench.plots import draw as draw_plot
from bench.plots import ttft_p95_s as ttft_by_second
from bench.report import Finding
from bench.rows import Run
from bench.stage import Stage

SECONDS = 36.0
SLOW_FROM_S, SLOW_TO_S = 10.0, 20.0
SEQUENCES = 16
"""In the engine's batch."""
SLOW = {"half": 8, "quarter": 4}
"""Sequences that are left of it while the engine is slow. Half of the base is the least that the rule leaves of the quota: an
engine that keeps half of its batch can do that much, one that keeps a quarter cannot."""
ITL_MS = 20.0
OFFERED, BASE = 26.0, 16.0
"""Requests a second that come, and that the quota lets in: 16 of 30 tokens are some 60 % of what the engine can do, the usual
reserve of a limit that cannot follow the load; 26 are a little more than it can do."""
TARGET_S = 0.25
"""Of class payment in rego/rules/latency."""
WINDOW_S = 2.0
PATIENCE_S = 15.0
"""Then a client leaves; for one that never got a token this counts as the time to it."""
CLAIMED = "claimed: {0} static, {1} dynamic"


def _scene(slow_sequences: int) -> Scene:
    return Scene(
        engine=("--blocks", "4096", "--max-num-seqs", str(SEQUENCES), "--itl-ms", str(ITL_MS), "--ttft-ms", "40"),
        quota={"qps": BASE, "tpm": 1_000_000_000, "concurrency": 1_000_000, "sla_class": "payment"},
        arrivals=draw([Phase(SECONDS, OFFERED)], [Sizes((50, 150), (30, 50))], seed=4),
        seconds=SECONDS,
        patience_s=PATIENCE_S,
        model={"id": "llama-3-8b", "cost": 1},
        entry={"max_num_seqs": SEQUENCES},
        changes=((SLOW_FROM_S, slow_sequences), (SLOW_TO_S, SEQUENCES)),
    )


def dynamic_quota(stage: Stage, run: Run) -> list[Finding]:
    """Response, recovery and use of the engine, in both arms under the same arrivals; twice, by how slow the engine gets."""
    findings: list[Finding] = []
    for left, slow_sequences in SLOW.items():
        scene = _scene(slow_sequences)
        arms = play(stage, Plan("static quota", scene, QUOTAS_ALONE), Plan("dynamic quota", scene, {**QUOTAS_ALONE, "latency": "on"}))
        if run.plots:
            _draw(run.plots / f"dynamic-quota-{left}.png", arms)
        findings += _findings(Pair("dynamic_quota", arms[1], arms[0]), left, slow_sequences)
    return findings


def _findings(pair: Pair, left: str, slow_sequences: int) -> list[Finding]:
    report = pair.arm.report
    unserved = ", ".join(str(sum(call.admitted and not call.tokens_s for call in arm.report.calls)) for arm in (pair.against, pair.arm))
    possible = possible_tokens(
        [Batch(0, SEQUENCES), Batch(SLOW_FROM_S, slow_sequences), Batch(SLOW_TO_S, SEQUENCES)], ITL_MS / 1000, SECONDS
    )
    return [
        *_responses(pair, f"before a {left} is left", 0, SLOW_FROM_S),
        *_responses(pair, f"while a {left} is left", SLOW_FROM_S, SLOW_TO_S),
        *_responses(pair, f"after a {left} was left", SLOW_TO_S, SECONDS),
        pair.finding(f"recovery to p95 ≤ {TARGET_S * 1000:.0f} ms from a {left}", "s", _recovery_s, _recovery_note(pair)),
        pair.finding(
            f"utilisation, a {left}", "%", lambda arm: share(tokens(arm.report.calls, SECONDS), possible), CLAIMED.format("32 %", "76 %")
        ),
        pair.finding(f"let in, a {left}", "%", _let_in, f"of {len(report.calls)}; of these never served: {unserved}; {report.note}"),
    ]


def _responses(pair: Pair, when: str, from_s: float, to_s: float) -> list[Finding]:
    def times(arm: Arm) -> list[float]:
        return [time_s * 1000 for time_s in ttfts(due(arm.report.calls, from_s, to_s), PATIENCE_S)]

    return [
        pair.finding(f"TTFT mean, {when}", "ms", lambda arm: fmean(times(arm)), CLAIMED.format("2 s", "300 ms")),
        pair.finding(f"TTFT p95, {when}", "ms", lambda arm: percentile(times(arm), 0.95)),
    ]


def _recovery_s(arm: Arm) -> float:
    """One that does not come within the run counts as all of what is left of it."""
    return min(_recovered_s(arm), SECONDS - SLOW_TO_S)


def _recovered_s(arm: Arm) -> float:
    return recovery_s(arm.report.calls, since_s=SLOW_TO_S, until_s=SECONDS, target_s=TARGET_S, window_s=WINDOW_S)


def _recovery_note(pair: Pair) -> str:
    missed = [f"{arm.name}: not within the run" for arm in (pair.arm, pair.against) if math.isinf(_recovered_s(arm))]
    return "; ".join([CLAIMED.format("47 min", "90 s"), *missed])


def _let_in(arm: Arm) -> float:
    return share(sum(call.admitted for call in arm.report.calls), len(arm.report.calls))


def _draw(path: Path, arms: list[Arm]) -> None:
    panels = [
        Panel(
            "time to the first token, p95 of each second's arrivals (s); dashed: target", ttft_by_second(SECONDS), arms, TARGET_S, log=True
        ),
        Panel("let in (requests/s); dashed: base of the quota", per_second(_admissions, SECONDS), arms, BASE),
        Panel("tokens to clients (1/s)", per_second(_moments, SECONDS), arms),
    ]
    draw_plot(path, panels, seconds=SECONDS, shaded=(SLOW_FROM_S, SLOW_TO_S))


def _admissions(arm: Arm) -> list[float]:
    return [call.arrival.due_s for call in arm.report.calls if call.admitted]


def _moments(arm: Arm) -> list[float]:
    return [moment for call in arm.report.calls for moment in call.tokens_s]
