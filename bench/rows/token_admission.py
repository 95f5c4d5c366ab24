"""A limit of requests a second against one of tokens in flight (B6), before an engine whose card may run out of memory and one whose cache may."""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.arm import QUOTAS_ALONE, Arm, Pair, Plan, Scene, play
from bench.arrivals import Phase, Sizes, draw
from bench.experience import ended, overflowing, share, tokens
from bench.generator import percentile
from bench.plots import Line, Panel, per_second
from bench.plots import draw as draw_plot
from bench.report import Finding
from bench.rows import Run
from bench.stage import Stage

SECONDS = 30.0
ROOM_TOKENS = 4096
"""What fits beside the weights on the one card, and into the cache of the other."""
BLOCK = 16
WEIGHTS_MIB, DRIVER_MIB, KV_MIB = 1024, 512, ROOM_TOKENS * 128 // 1024
"""128 KiB a token, as the shape in the model's spec says; the card and the weights are scaled down with the cache."""
OFFERED, LIMIT = 18.0, 14.0
"""Requests a second that come, and that the quota lets in: at 14 of the mean size some 85 % of the room is in use, so that an
operator who knows only requests a second would take it for safe."""
RESTART_MS = 4000
"""Real engines take longer to load their weights: what a crash costs is understated here."""
UUID = "GPU-00000000-0000-4000-8000-000000000000"
SHORT, LONG = Sizes((32, 96), (24, 48), weight=0.8), Sizes((256, 512), (96, 160), weight=0.2)
MODEL = {"id": "llama-3-8b", "cost": 1, "layers": 32, "kv_heads": 8, "head_dim": 128, "kv_bytes": 2}
ENGINE = ("--max-num-seqs", "64", "--itl-ms", "20", "--ttft-ms", "40", "--block-size", str(BLOCK))
CRASHES, PREEMPTIONS, MEMORY, CACHE = (
    "sluice_engine_out_of_memory_total",
    "vllm:num_preemptions_total",
    "DCGM_FI_DEV_FB_USED",
    "vllm:kv_cache_usage_perc",
)


ARRIVALS = draw([Phase(SECONDS, OFFERED)], [SHORT, LONG], seed=6)


def _scene(*engine: str, model: Mapping[str, Any], entry: Mapping[str, Any], has_card: bool = False) -> Scene:
    return Scene(
        engine=(*ENGINE, *engine),
        quota={"qps": LIMIT, "tpm": 1_000_000_000, "concurrency": 1_000_000, "sla_class": "query"},
        arrivals=ARRIVALS,
        seconds=SECONDS,
        patience_s=10.0,
        model=model,
        entry=entry,
        has_card=has_card,
    )


CARD = _scene(
    # As TGI's, its page tells neither blocks nor a share of the cache: the room follows from the card's memory and the model's shape.
    *("--kind", "tgi", "--blocks", str(16 * ROOM_TOKENS // BLOCK), "--no-preallocates", "--restart-ms", str(RESTART_MS)),
    *("--gpu-memory-mib", str(WEIGHTS_MIB + DRIVER_MIB + KV_MIB), "--weights-mib", str(WEIGHTS_MIB), "--gpu-uuid", UUID),
    model={**MODEL, "preallocates": False, "signals": ["waiting"], "kv_tokens": ROOM_TOKENS},
    entry={"kind": "tgi", "gpus": [UUID], "max_num_seqs": 64},
    has_card=True,
)
PREALLOCATED = _scene("--blocks", str(ROOM_TOKENS // BLOCK), model=MODEL, entry={"max_num_seqs": 64})


def token_admission(stage: Stage, run: Run) -> list[Finding]:
    """Crashes, preemptions and what of the overflows was intercepted, in both arms under the same arrivals."""
    card, cache = (
        play(stage, Plan("QPS limit", scene, QUOTAS_ALONE), Plan("QPS limit and KV budget", scene, {**QUOTAS_ALONE, "kv_budget": "on"}))
        for scene in (CARD, PREALLOCATED)
    )
    if run.plots:
        _draw(run.plots, card, cache)
    on_card, in_cache = (Pair("token_admission", arms[1], arms[0]) for arms in (card, cache))
    return [
        on_card.finding("out-of-memory crashes, growing memory", "", lambda arm: arm.grown(CRASHES)),
        on_card.finding(
            "lost by crashes, growing memory",
            "",
            lambda arm: ended(arm.report.calls, "failed"),
            "in flight, or sent to an engine that was down",
        ),
        *_gains("growing memory", on_card),
        in_cache.finding("preemptions, preallocated cache", "", lambda arm: arm.grown(PREEMPTIONS)),
        *_gains("preallocated cache", in_cache),
    ]


def _gains(where: str, pair: Pair) -> list[Finding]:
    """What both engines are measured by."""
    overflows, refused, p99_ms = (
        ", ".join(format(of(arm), form) for arm in (pair.against, pair.arm))
        for of, form in ((_overflows, ".0f"), (_refused, ".0f"), (_decision_p99_ms, ".1f"))
    )
    return [
        pair.finding(
            f"overflows intercepted, {where}", "%", _intercepted, f"claimed: 12 %, 99.7 %; arrivals that did not fit: {overflows}"
        ),
        pair.finding(
            f"completed, {where}",
            "",
            lambda arm: ended(arm.report.calls, "completed"),
            f"of {len(pair.arm.report.calls)}; refused: {refused}; {pair.arm.report.note}",
        ),
        pair.finding(f"long requests let in, {where}", "%", _long_let_in),
        pair.finding(f"tokens to clients, {where}", "", lambda arm: tokens(arm.report.calls, SECONDS)),
        pair.finding(f"decision, {where}", "ms", lambda arm: fmean(_decisions_ms(arm)), f"claimed: 3.2 ms; p99: {p99_ms} ms"),
    ]


def _overflows(arm: Arm) -> float:
    return len(overflowing(arm.report.calls, ROOM_TOKENS))


def _intercepted(arm: Arm) -> float:
    """Of the arrivals that would not have fitted at their full length, those that were refused."""
    overflows = overflowing(arm.report.calls, ROOM_TOKENS)
    return share(ended(overflows, "refused"), len(overflows))


def _refused(arm: Arm) -> float:
    return ended(arm.report.calls, "refused")


def _long_let_in(arm: Arm) -> float:
    """Of the kind that finds no room where a short one still does."""
    calls = [call for call in arm.report.calls if call.arrival.prompt_tokens >= LONG.prompt[0]]
    return share(sum(call.admitted for call in calls), len(calls))


def _decisions_ms(arm: Arm) -> list[float]:
    return [(call.decided_s - call.sent_s) * 1000 for call in arm.report.calls]


def _decision_p99_ms(arm: Arm) -> float:
    return percentile(_decisions_ms(arm), 0.99)


def _draw(folder: Path, card: list[Arm], cache: list[Arm]) -> None:
    panels = [
        Panel("memory that grows: in use beside the weights (MiB; 0: down); dashed: all of it", _cache_mib, card, KV_MIB),
        Panel("memory that grows: tokens to clients (1/s)", per_second(_moments, SECONDS), card),
        Panel("preallocated cache: in use (share)", lambda arm: arm.series(CACHE), cache, 1.0),
        Panel("preallocated cache: preemptions so far", lambda arm: arm.series(PREEMPTIONS), cache),
    ]
    draw_plot(folder / "token-admission.png", panels, seconds=SECONDS)


def _cache_mib(arm: Arm) -> Line:
    return [(at, max(0.0, used - WEIGHTS_MIB)) for at, used in arm.series(MEMORY)]


def _moments(arm: Arm) -> list[float]:
    return [moment for call in arm.report.calls for moment in call.tokens_s]
