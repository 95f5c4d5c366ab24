"""How long a change takes until decisions follow it: of a policy, of a quota, of an engine's load."""

import json
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from bench.questions import MODELS, hot_tenants, quota
from bench.report import Finding
from bench.rows import Run
from bench.rules import touch
from bench.servers import Sluice, ask, set_load
from bench.stage import Stage

POLICY_MS, QUOTA_MS, ENGINE_MS = 1000.0, 100.0, 300.0
GIVE_UP_S = 10.0
CALM, FULL = 0.3, 0.95
"""Shares of the KV cache: below every watermark, and above the one from which all is shed."""


def change(stage: Stage, run: Run) -> list[Finding]:
    """The time from the change to the first decision that follows it; the largest counts."""
    sluice, engine = stage.sluice, stage.engines[0]
    set_load(engine, kv_ratio=CALM)
    _until(sluice, _allowed)
    times: dict[str, list[float]] = {"policy": [], "patch": [], "full": [], "calm": []}
    for number in range(run.rounds):
        before = _decision(sluice)["policy"]
        times["policy"].append(_timed(partial(touch, sluice.policy, number), sluice, partial(_new_policy, before)))
        times["patch"].append(_timed(partial(_patch, sluice, number, before["quota_version"]), sluice, partial(_new_quota, before)))
        times["full"].append(_timed(partial(set_load, engine, kv_ratio=FULL), sluice, _refused))
        times["calm"].append(_timed(partial(set_load, engine, kv_ratio=CALM), sluice, _allowed))
    return [
        _finding("policy saved to in force", times["policy"], POLICY_MS),
        _finding("PATCH of a quota to in force", times["patch"], QUOTA_MS),
        _finding("engine at 0.95 KV to 429", times["full"], ENGINE_MS),
        _finding("engine calm again to allowed", times["calm"], ENGINE_MS),
    ]


def _finding(what: str, times_ms: list[float], budget: float) -> Finding:
    note = f"median {median(times_ms):.3g} ms of {len(times_ms)}"
    return Finding("change", what, max(times_ms), "ms", spread=(min(times_ms), max(times_ms)), budget=budget, note=note)


def _timed(act: Callable[[], None], sluice: Sluice, follows: Callable[[dict[str, Any]], bool]) -> float:
    start = time.perf_counter()
    act()
    _until(sluice, follows)
    return (time.perf_counter() - start) * 1000


def _until(sluice: Sluice, follows: Callable[[dict[str, Any]], bool]) -> None:
    """Decide again and again until a decision follows. Raises RuntimeError after GIVE_UP_S."""
    deadline = time.perf_counter() + GIVE_UP_S
    while not follows(_decision(sluice)):
        if time.perf_counter() > deadline:
            raise RuntimeError(f"no decision followed the change within {GIVE_UP_S:g} s")


def _new_policy(before: dict[str, Any], decision: dict[str, Any]) -> bool:
    return bool(decision["policy"]["revision"] != before["revision"])


def _new_quota(before: dict[str, Any], decision: dict[str, Any]) -> bool:
    return bool(decision["policy"]["quota_version"] > before["quota_version"])


def _refused(decision: dict[str, Any]) -> bool:
    return bool(decision["status"] == 429)


def _allowed(decision: dict[str, Any]) -> bool:
    return bool(decision["allow"])


def _decision(sluice: Sluice) -> dict[str, Any]:
    request = {"tenant": hot_tenants()[1], "model": MODELS[0], "prompt_tokens": 10, "max_tokens": 10}
    decision: dict[str, Any] = json.loads(ask(sluice.port, "POST", "/decide", request, sluice.credential())[1])
    return decision


def _patch(sluice: Sluice, number: int, version: int) -> None:
    sluice.call("PATCH", f"/quotas/{hot_tenants()[1]}", {"qps": quota(number + 100)["qps"]}, **{"if-match": f'"{version}"'})
