"""Engines of each kind under load, polled over HTTP: what their pages tell is read right, and spoilt pages are counted."""

import asyncio
import contextlib

import aiohttp
import pytest
from structlog.testing import capture_logs

from app.clock import SystemClock
from app.simulator.completions import build_app
from app.simulator.engine import Engine, EngineConfig
from app.simulator.faults import Fault
from app.telemetry.poller import NAMES
from app.telemetry.snapshot import Reading
from tests.fixtures.engine import serving
from tests.fixtures.telemetry import telemetry
from tests.fixtures.waiting import until

SIGNALS = {
    "vllm": ("kv", "waiting", "running"),
    "sglang": ("kv", "waiting", "running"),
    "llamacpp": ("waiting", "running"),
    "tgi": ("waiting", "running"),
    "triton": ("waiting",),
    "trtllm": (),
}
"""What a model spec for each kind may declare."""
LATENCIES = {
    "vllm": {"iteration_ms", "ttft_ms"},
    "sglang": {"iteration_ms", "ttft_ms"},
    "llamacpp": {"iteration_ms"},
    "tgi": {"iteration_ms"},
    "triton": {"ttft_ms"},
    "trtllm": {"iteration_ms", "ttft_ms"},
}
CAPACITY = {"vllm": 1024, "sglang": 1024}
EVERY_KIND = pytest.mark.parametrize("kind", sorted(SIGNALS))


@contextlib.asynccontextmanager
async def polled(kind, folder):
    """An engine of 64 blocks of 16 tokens and two sequences, 20 ms to the first token and 10 ms between the others."""
    engine = Engine(EngineConfig("m", kind=kind, blocks=64, max_num_seqs=2, ttft_ms=20, itl_ms=10), SystemClock())
    async with (
        serving(build_app(engine)) as url,
        telemetry(folder, {"a": url}, kind=kind, signals=SIGNALS[kind]) as running,
        aiohttp.ClientSession(url) as caller,
    ):
        yield engine, running, caller


async def complete(caller, max_tokens):
    """A completion of 16 prompt tokens."""
    async with caller.post("/v1/completions", json={"prompt": "x" * 64, "max_tokens": max_tokens}) as answer:
        assert answer.status == 200
        await answer.read()


def told(kind, signal, value):
    return value if signal in SIGNALS[kind] else None


def test_every_kind_of_the_settings_is_tested():
    """A kind that settings can name has a table, and an engine here."""
    assert set(NAMES) == set(SIGNALS) == set(LATENCIES)


@EVERY_KIND
async def test_an_engine_under_load(tmp_path, kind):
    """Two run, two wait; latencies come in milliseconds whatever unit the page has; afterwards nothing runs and nothing moves."""
    async with polled(kind, tmp_path) as (_, running, caller):
        idle = await running.node("a", problem=None)
        assert idle.kind == kind

        load = asyncio.gather(*(complete(caller, 60) for _ in range(4)))
        if "waiting" in SIGNALS[kind]:
            busy = await running.reading("a", waiting=2, running=told(kind, "running", 2))
            assert busy.capacity_tokens == CAPACITY.get(kind)
            # Two sequences of 16 to 76 tokens, each in whole blocks of 16, of 1024 tokens.
            assert (32 / 1024 <= busy.kv_ratio <= 160 / 1024) if "kv" in SIGNALS[kind] else (busy.kv_ratio is None)
        await load

        latencies = {name: some_milliseconds if name in LATENCIES[kind] else None for name in ("iteration_ms", "ttft_ms")}
        done = {"kv_ratio": told(kind, "kv", 0.0), "waiting": told(kind, "waiting", 0), "running": told(kind, "running", 0)}
        await running.reading("a", **latencies, **done)
        await running.reading("a", still_ms=lambda still_ms: still_ms >= 200)


def some_milliseconds(value):
    """10 ms between tokens and 20 ms to the first are about the least; a busy machine and the wait for a place make it more."""
    return 9 <= value < 5000


@EVERY_KIND
async def test_a_dead_engine_stands_still(tmp_path, kind):
    """An engine that answers its page and makes no step is still from then on, and a step ends that."""
    async with polled(kind, tmp_path) as (engine, running, caller):
        await complete(caller, 3)
        engine.set_fault(Fault("dead"))
        call = asyncio.create_task(complete(caller, 3))
        await running.reading("a", still_ms=lambda still_ms: still_ms >= 300)

        engine.set_fault(Fault())
        await call
        await running.reading("a", still_ms=lambda still_ms: still_ms < 300)


@EVERY_KIND
async def test_impossible_readings_are_unknown_and_counted(tmp_path, kind):
    """Where gauges read NaN the declared signals are unknown, the node is missing them, and each is counted."""
    async with polled(kind, tmp_path) as (engine, running, _):
        await running.node("a", problem=None)
        engine.set_fault(Fault("nan"))
        spoilt = [signal for signal in SIGNALS[kind] if signal != "running"]
        node = await running.node("a", problem=f"missing:{spoilt[0]}" if spoilt else None)

        reading = node.readings.get("m", Reading())
        assert (reading.kv_ratio, reading.waiting) == (None, None)
        counts = {signal: running.count("sluice_readings_unknown_total", node="a", signal=signal) for signal in ("kv", "waiting")}
        assert {signal for signal, count in counts.items() if count} == set(spoilt)


async def test_a_signal_that_an_engine_cannot_tell(tmp_path):
    """A spec that declares KV of an engine without it keeps the node out, and one log line says what to change."""
    engine = Engine(EngineConfig("m", kind="llamacpp"), SystemClock())
    with capture_logs() as logs:
        async with serving(build_app(engine)) as url, telemetry(tmp_path, {"a": url}, kind="llamacpp") as running:
            await running.node("a", problem="missing:kv")
            await until(lambda: running.count("sluice_scrapes_total", node="a", result="missing") >= 3)

    (line,) = [line for line in logs if line["event"] == "scrape.missing"]
    assert (line["node"], line["problem"]) == ("a", "missing:kv")
    assert "`signals` in the model spec" in line["hint"]
