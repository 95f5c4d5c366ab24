"""Telemetry: a hundred engines polled ten times a second and followed, one page read, an engine told the size of its batch."""

import time
from statistics import median
from typing import Any

import yaml

from app.telemetry.history import History
from app.telemetry.pages import Pages
from app.telemetry.vllm import NAMES
from bench.controlled import Controlled
from bench.page import engine_page
from bench.processes import cpu_s, own_cpu_s
from bench.questions import MODELS, MODELS_FILE
from bench.report import Finding
from bench.rows import Run
from bench.rules import SHIPPED
from bench.servers import Sluice, many_engines, samples, telemetry_alone
from bench.stage import Stage

ENGINES = 100
POLL_MS = 100
CORES = 1.0
FOLLOWING_CORES = 0.15
SETTLE_S = 2.0
"""What a start leaves to do is over by then."""
TOLD_MS = 150.0
CALM, FULL = 0.3, 0.95
"""Shares of the KV cache: below the line from which a batch gets smaller, and where the least is left of it."""
LINE = {"policy": {"rules": {"max_num_seqs": "off", "max_num_seqs_line": "on"}}}
"""The rule that goes by the load of the moment: the steps wait until it has lasted 3 s."""
PAGE_US = 200.0
PAGES = 400
TEXT = "text/plain; version=0.0.4"


def telemetry(stage: Stage, run: Run) -> list[Finding]:
    """CPU in cores while ENGINES are polled and followed, microseconds for one page whose moving lines are new, the way to an engine."""
    return [*_polling(stage, run), _reading(), _telling(stage, run)]


def _polling(stage: Stage, run: Run) -> list[Finding]:
    with many_engines(MODELS[0], stage.folder / "engines.log") as many:
        urls = [f"http://127.0.0.1:{many.port}/{number}" for number in range(ENGINES)]
        engines = [{"name": f"engine-{n}", "url": url, "models": [MODELS[0]], "poll_ms": POLL_MS} for n, url in enumerate(urls)]
        file = stage.folder / "telemetry.yaml"
        file.write_text(yaml.safe_dump({"models": str(MODELS_FILE), "log_level": "error", "engines": engines}), "utf-8")
        with telemetry_alone(file, stage.folder / "telemetry.log") as server:
            server.wait_until(lambda: _scrapes(server.port)[1] >= ENGINES)
            start, cpu, (good, _) = time.perf_counter(), cpu_s(server.pid), _scrapes(server.port)
            time.sleep(run.steady_seconds)
            seconds, cores = time.perf_counter() - start, (cpu_s(server.pid) - cpu) / (time.perf_counter() - start)
            (good_then, every) = _scrapes(server.port)
            following = _following(stage, run, engines, f"http://127.0.0.1:{server.port}")
    rate = (good_then - good) / seconds
    note = f"{rate:.0f} of {ENGINES * 1000 // POLL_MS} pages a second read well, {every - good_then:.0f} not"
    return [Finding("telemetry", f"{ENGINES} engines every {POLL_MS} ms", cores, "cores", budget=CORES, note=note), following]


def _following(stage: Stage, run: Run, engines: list[dict[str, Any]], url: str) -> Finding:
    """What a server that nobody asks spends on them."""
    with Sluice("follower", stage.new_folder() / "var", policy=SHIPPED, engines=engines, settings={"telemetry": {"url": url}}) as sluice:
        time.sleep(SETTLE_S)
        start, own, cpu, before = time.perf_counter(), own_cpu_s(sluice.pid), cpu_s(sluice.pid), _generation(sluice.port)
        time.sleep(run.steady_seconds)
        seconds, generations = time.perf_counter() - start, _generation(sluice.port) - before
        cores, all_cores = (own_cpu_s(sluice.pid) - own) / seconds, (cpu_s(sluice.pid) - cpu) / seconds
    note = f"{generations / seconds:.0f} generations a second; {all_cores:.3g} cores with OPA and PostgreSQL"
    return Finding("telemetry", f"serve following {ENGINES} engines", cores, "cores", budget=FOLLOWING_CORES, note=note)


def _generation(port: int) -> float:
    return samples(port)["sluice_snapshot_generation"]


def _telling(stage: Stage, run: Run) -> Finding:
    """From the page that shows another load to the POST that tells the engine its batch; the largest counts."""
    with Controlled(MODELS[0]) as engine:
        polled = {
            "name": "controlled",
            "url": engine.url,
            "models": [MODELS[0]],
            "max_num_seqs": 64,
            "control_url": f"{engine.url}/control",
        }
        with stage.new_sluice("controller", engines=[polled], settings=LINE):
            engine.wait_until_told()
            times = [engine.change(kv_ratio) for _ in range(run.rounds) for kv_ratio in (FULL, CALM)]
    told_ms = [told for _, told in times]
    note = f"median {median(told_ms):.3g} ms of {len(told_ms)}; from the gauge itself {max(map(sum, times)):.0f} ms"
    spread = (min(told_ms), max(told_ms))
    return Finding("telemetry", "page to max_num_seqs told", max(told_ms), "ms", spread=spread, budget=TOLD_MS, note=note)


def _scrapes(port: int) -> tuple[float, float]:
    """Scrapes that went well, and all of them."""
    counted = {series: value for series, value in samples(port).items() if series.startswith("sluice_scrapes_total")}
    return sum(value for series, value in counted.items() if 'result="ok"' in series), sum(counted.values())


def _reading() -> Finding:
    page, pages, history = engine_page(MODELS[0]), Pages(NAMES), History()
    history.push(pages.read(page.at(0), TEXT), now_ms=0.0)
    times_us = []
    for step in range(1, PAGES):
        body = page.at(step)
        start = time.perf_counter()
        history.push(pages.read(body, TEXT), now_ms=step * POLL_MS)
        times_us.append((time.perf_counter() - start) * 1e6)
    return Finding(
        "telemetry", "one page, warm", median(times_us), "µs", budget=PAGE_US, note=f"{len(body)} bytes, {page.moving} lines new"
    )
