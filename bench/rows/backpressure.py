"""No backpressure against the rules as they come (A2), while more requests come than the engine's cache can hold."""

from collections import Counter
from pathlib import Path

from bench.arm import QUOTAS_ALONE, Arm, Pair, Plan, Scene, play
from bench.arrivals import Phase, Sizes, draw
from bench.experience import Promise, ended, gaps_s, share, tokens
from bench.generator import percentile
from bench.plots import Panel, per_second
from bench.plots import draw as draw_plot
from bench.plots import ttft_p95_s as ttft_by_second
from bench.report import Finding
from bench.rows import Run
from bench.stage import Stage
from bench.traffic import End

PHASES = (Phase(8, 9), Phase(20, 24), Phase(12, 9))
"""Some two thirds of what the engine can do, then 1.6 times as much, then two thirds again."""
SECONDS = sum(phase.seconds for phase in PHASES)
CROWDED = (PHASES[0].seconds, PHASES[0].seconds + PHASES[1].seconds)
PROMISE = Promise(ttft_s=1.0, itl_s=0.05)
"""What a call must keep to count: its first token within a second, and 20 tokens a second from then on."""
PROMISED = f"first token within {PROMISE.ttft_s:g} s, {1 / PROMISE.itl_s:.0f} tokens/s from then on"
PREEMPTIONS, CACHE, WAITING = "vllm:num_preemptions_total", "vllm:kv_cache_usage_perc", "vllm:num_requests_waiting"
SCENE = Scene(
    engine=("--blocks", "256", "--max-num-seqs", "48", "--itl-ms", "25", "--ttft-ms", "75"),
    quota={"qps": 100_000, "tpm": 1_000_000_000, "concurrency": 1_000_000},  # the service class is standard: no rule slows it by TTFT
    arrivals=draw(PHASES, [Sizes((64, 192), (48, 96))], seed=2),
    seconds=SECONDS,
    patience_s=8.0,
    model={"id": "llama-3-8b", "cost": 1},
    entry={"max_num_seqs": 48},
)


def backpressure(stage: Stage, run: Run) -> list[Finding]:
    """Goodput, tokens, preemptions, gaps between tokens and refusals, in all arms under the same arrivals."""
    none, followed, shipped = play(
        stage,
        Plan("no backpressure", SCENE, QUOTAS_ALONE),
        Plan("without kv_budget", SCENE, {"kv_budget": "off"}),
        Plan("shipped rules", SCENE, {}),
    )
    if run.plots:
        _draw(run.plots, [none, followed, shipped])
    return [finding for arm in (shipped, followed) for finding in _findings(Pair("backpressure", arm, none))]


def _findings(pair: Pair) -> list[Finding]:
    """What one set of rules does, beside none."""
    name, report = pair.arm.name, pair.arm.report
    return [
        pair.finding(f"goodput, {name}", "1/s", lambda arm: len(_good(arm)) / SECONDS, PROMISED),
        pair.finding(f"tokens to clients while crowded, {name}", "1/s", _crowded_tokens),
        pair.finding(f"completed, {name}", "", lambda arm: ended(arm.report.calls, "completed"), f"of {len(report.calls)}; {report.note}"),
        pair.finding(f"preemptions, {name}", "", lambda arm: arm.grown(PREEMPTIONS)),
        pair.finding(f"ITL p99, as clients see it, {name}", "ms", lambda arm: _itl_ms(arm, 0.99)),
        pair.finding(f"ITL p99.9, as clients see it, {name}", "ms", lambda arm: _itl_ms(arm, 0.999)),
        pair.finding(f"refused, {name}", "%", lambda arm: _ended(arm, "refused"), _reasons(pair.arm)),
        pair.finding(f"left without a token, {name}", "%", lambda arm: _ended(arm, "aborted"), f"after {SCENE.patience_s:g} s"),
    ]


def _good(arm: Arm) -> list[float]:
    """When the calls that kept the promise ended."""
    return [call.ended_s for call in arm.report.calls if PROMISE.kept(call)]


def _crowded_tokens(arm: Arm) -> float:
    calls, (from_s, to_s) = arm.report.calls, CROWDED
    return (tokens(calls, to_s) - tokens(calls, from_s)) / (to_s - from_s)


def _itl_ms(arm: Arm, rank: float) -> float:
    return percentile(gaps_s(arm.report.calls), rank) * 1000


def _ended(arm: Arm, end: End) -> float:
    return share(ended(arm.report.calls, end), len(arm.report.calls))


def _reasons(arm: Arm) -> str:
    found = Counter(call.reason for call in arm.report.calls if call.reason)
    return ", ".join(f"{reason} {count}" for reason, count in sorted(found.items()))


def _draw(folder: Path, arms: list[Arm]) -> None:
    panels = [
        Panel("goodput: calls that ended within their promise (1/s)", per_second(_good, SECONDS), arms),
        Panel(
            "time to the first token, p95 of each second's arrivals (s); dashed: promise",
            ttft_by_second(SECONDS),
            arms,
            PROMISE.ttft_s,
            log=True,
        ),
        Panel("waiting at the engine", lambda arm: arm.series(WAITING), arms),
        Panel("cache in use (share)", lambda arm: arm.series(CACHE), arms),
    ]
    draw_plot(folder / "backpressure.png", panels, seconds=SECONDS, shaded=CROWDED)
