"""A steady load at random times while readings change: latency, what it costs, how the memo does, and what disturbs it."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

from bench.measure import Beside, Peer, Round, compare, generator_note, in_turns, p99_ms, warm_up
from bench.questions import MODELS, hot_tenants, quota
from bench.report import Finding
from bench.rows import Run
from bench.rules import touch
from bench.servers import Sluice, changing, many_engines, repeated
from bench.stage import Stage, ask_opa, call_route, decide

RATE = 300.0
CONNECTIONS = 64
"""So many that a request never waits for a connection."""
P99_OF_OPA = 0.6
P99_OF_ROUTE = 1.3
P99_MS = 5.0
DISTURBED = 1.2
BUNDLE_EVERY_S = 1.5
QUOTA_EVERY_S = 0.25
MANY = 100


def steady(stage: Stage, run: Run) -> list[Finding]:
    """p99 and CPU at RATE, against the peers under the same arrivals."""
    hot, sluice = hot_tenants(), stage.sluice
    how = {"seconds": run.steady_seconds, "rate": RATE, "connections": CONNECTIONS}
    peers = [
        Peer("Sluice", decide(sluice, hot, **how), sluice.pid, beside=lambda: changing(stage.engines), may_refuse=True),
        Peer("OPA alone", ask_opa(stage.opa, hot, **how), stage.opa.pid),
        Peer("FastAPI route", call_route(stage.fastapi, hot, **how), stage.fastapi.pid),
    ]
    warm_up(peers)
    before = sluice.counters()
    decided, opa, route = in_turns(peers, run.rounds)
    after = sluice.counters()
    return [
        compare("steady", "p99", decided, "OPA alone", opa, attribute=p99_ms, budget=P99_OF_OPA, note=generator_note(decided)),
        compare("steady", "p99", decided, "FastAPI route", route, attribute=p99_ms, budget=P99_OF_ROUTE),
        _absolute(decided),
        compare("steady", "CPU per decision", decided, "OPA alone", opa),
        compare("steady", "CPU per decision", decided, "FastAPI route", route),
        *_memo({series: value - before.get(series, 0.0) for series, value in after.items()}),
    ]


def disturbed(stage: Stage, run: Run) -> list[Finding]:
    """p99 while a policy or a quota changes, and while many engines are polled."""
    sluice = stage.sluice
    load = decide(sluice, hot_tenants(), seconds=run.steady_seconds, rate=RATE, connections=CONNECTIONS)
    many = stage.keep(many_engines(MODELS[0], stage.folder / "many.log"))

    @contextlib.contextmanager
    def with_many() -> Iterator[None]:
        more = [
            {"name": f"many-{number}", "url": f"http://127.0.0.1:{many.port}/{number}", "models": [MODELS[0]]} for number in range(MANY)
        ]
        with _polling(sluice, stage.polled() + more, stage.polled()):
            yield

    besides: dict[str, Beside] = {
        "undisturbed": contextlib.nullcontext,
        "bundle change": lambda: repeated(lambda: touch(sluice.policy, time.perf_counter()), BUNDLE_EVERY_S),
        "quota change": lambda: repeated(_Quotas(sluice).change, QUOTA_EVERY_S),
        f"{MANY} engines": with_many,
    }
    peers = [Peer(name, load, sluice.pid, beside=_both(stage, beside), may_refuse=True) for name, beside in besides.items()]
    warm_up(peers[:1])
    rounds = in_turns(peers, run.rounds)
    return [
        compare(
            "disturbed",
            f"p99, {peer.name}",
            measured,
            "undisturbed",
            rounds[0],
            attribute=p99_ms,
            budget=DISTURBED,
        )
        for peer, measured in zip(peers[1:], rounds[1:], strict=True)
    ]


def _both(stage: Stage, beside: Beside) -> Beside:
    """`beside` while the two engines change, too."""

    @contextlib.contextmanager
    def both() -> Iterator[None]:
        with changing(stage.engines), beside():
            yield

    return both


class _Quotas:
    """Changes the quota of the hottest tenant, again and again."""

    def __init__(self, sluice: Sluice) -> None:
        self._sluice = sluice
        self._number = 0

    def change(self) -> None:
        """One change."""
        self._number += 1
        path = f"/quotas/{hot_tenants()[0]}"
        version = self._sluice.call("GET", path)["version"]
        self._sluice.call("PATCH", path, {"qps": quota(self._number)["qps"]}, **{"if-match": f'"{version}"'})


@contextlib.contextmanager
def _polling(sluice: Sluice, meanwhile: list[dict[str, Any]], afterwards: list[dict[str, Any]]) -> Iterator[None]:
    """Poll other engines during the block."""
    sluice.poll(meanwhile)
    sluice.wait_until(sluice.polls_all)
    yield
    sluice.poll(afterwards)
    sluice.wait_until(sluice.polls_all)


def _absolute(decided: list[Round]) -> Finding:
    values = sorted(each.p99_ms for each in decided)
    return Finding("steady", "p99", values[len(values) // 2], "ms", spread=(values[0], values[-1]), budget=P99_MS)


def _memo(grown: Mapping[str, float]) -> list[Finding]:
    """Hit rates by group, and how many questions a call to OPA carried, from what its counters grew by."""
    name = "sluice_policy_memo_lookups_total"
    groups = sorted({series.split('"')[1] for series in grown if series.startswith(name)})
    findings = []
    for group in groups:
        hits, misses = (grown.get(f'{name}{{group="{group}",result="{result}"}}', 0.0) for result in ("hit", "miss"))
        if hits + misses:
            findings.append(
                Finding("steady", f"memo hits, {group}", 100 * hits / (hits + misses), "%", note=f"{hits + misses:.0f} lookups")
            )
    calls, questions = grown.get("sluice_opa_batch_size_count", 0.0), grown.get("sluice_opa_batch_size_sum", 0.0)
    if calls:
        findings.append(Finding("steady", "questions per call to OPA", questions / calls, "", note=f"{calls:.0f} calls"))
    return findings
