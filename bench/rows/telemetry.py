"""The telemetry process by itself: a hundred engines polled ten times a second, and the reading of one page."""

import time
from statistics import median

import yaml

from app.telemetry.history import History
from app.telemetry.pages import Pages
from app.telemetry.vllm import NAMES
from bench.page import engine_page
from bench.processes import cpu_s
from bench.questions import MODELS, MODELS_FILE
from bench.report import Finding
from bench.rows import Run
from bench.servers import many_engines, samples, telemetry_alone
from bench.stage import Stage

ENGINES = 100
POLL_MS = 100
CORES = 1.0
PAGE_US = 200.0
PAGES = 400
TEXT = "text/plain; version=0.0.4"


def telemetry(stage: Stage, run: Run) -> list[Finding]:
    """CPU in cores while ENGINES are polled, and microseconds for one page whose moving lines are new."""
    return [_polling(stage, run), _reading()]


def _polling(stage: Stage, run: Run) -> Finding:
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
    rate = (good_then - good) / seconds
    note = f"{rate:.0f} of {ENGINES * 1000 // POLL_MS} pages a second read well, {every - good_then:.0f} not"
    return Finding("telemetry", f"{ENGINES} engines every {POLL_MS} ms", cores, "cores", budget=CORES, note=note)


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
