"""The engine's loop, moved by hand: tokens, latencies, aborts, restarts, and its page as our own reader sees it."""

import asyncio
import contextlib

import pytest

from app.clock import ManualClock
from app.simulator.engine import Engine, EngineConfig, EngineRestarted
from app.simulator.faults import Fault, Load
from app.telemetry.pages import Pages
from app.telemetry.vllm import NAMES


def engine(**options):
    clock = ManualClock()
    config = EngineConfig("m", **({"blocks": 8, "block_size": 4, "ttft_ms": 20, "itl_ms": 10} | options))

    async def advance(ms):
        clock.advance(ms)
        await asyncio.sleep(0)

    return Engine(config, clock, advance)


@contextlib.asynccontextmanager
async def running(one):
    task = asyncio.create_task(one.run())
    yield one
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def reading(one):
    return Pages(NAMES).read(one.page.render(), "text/plain; version=0.0.4")["m"].reading


async def drain(one, prompt, most):
    return [token async for token in one.generate(prompt, most)]


async def test_tokens_come_in_order_and_are_counted():
    """A request gets all of its tokens, and the page counts prompt and generation."""
    async with running(engine()) as one:
        assert await drain(one, 6, 3) == [0, 1, 2]

    page = one.page.render().decode()
    assert 'vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 1.0' in page
    assert 'vllm:prompt_tokens_total{engine="0",model_name="m"} 6.0' in page
    assert 'vllm:generation_tokens_total{engine="0",model_name="m"} 3.0' in page


async def test_latencies_follow_the_settings():
    """First token after ttft_ms, the others itl_ms apart, in seconds on the page."""
    async with running(engine()) as one:
        await drain(one, 6, 3)

    page = one.page.render().decode()
    assert 'vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 0.02\n' in page
    assert 'vllm:inter_token_latency_seconds_sum{engine="0",model_name="m"} 0.02\n' in page
    assert 'vllm:inter_token_latency_seconds_count{engine="0",model_name="m"} 2.0\n' in page


async def test_our_reader_reads_its_page():
    """KV, waiting, running, free tokens of the stand-in are what its scheduler holds."""
    one = engine(max_num_seqs=1)
    tasks = [asyncio.create_task(drain(one, 16, 16)), asyncio.create_task(drain(one, 4, 4))]
    await asyncio.sleep(0)
    one.step()
    one.step()

    told = reading(one)
    assert (told.kv_ratio, told.waiting, told.running, told.free_tokens) == (0.5, 1, 1, 16)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_old_names():
    """Under the old names the page has no v1 name, and our reader reads it all the same."""
    one = engine(names="v0")
    page = one.page.render().decode()

    assert "vllm:gpu_cache_usage_perc" in page
    assert "vllm:kv_cache_usage_perc" not in page
    assert reading(one).kv_ratio == 0.0


async def test_closing_a_request_frees_its_blocks_in_the_next_step():
    """A client that goes away leaves no zombie: the next step frees its blocks and counts the abort."""
    one = engine()
    tokens = one.generate(16, 16)
    first = asyncio.create_task(anext(tokens))
    await asyncio.sleep(0)
    one.step()
    one.step()
    await first
    assert one.scheduler.kv_ratio == 0.5

    await tokens.aclose()
    one.step()

    assert one.scheduler.kv_ratio == 0.0
    assert 'finished_reason="abort",model_name="m"} 1.0' in one.page.render().decode()


async def test_preemption_is_counted():
    """Two requests that together outgrow the cache cost a preemption on the page, and both finish."""
    async with running(engine(blocks=3, block_size=2, ttft_ms=10)) as one:
        assert await asyncio.gather(drain(one, 2, 3), drain(one, 2, 3)) == [[0, 1, 2], [0, 1, 2]]

    assert 'vllm:num_preemptions_total{engine="0",model_name="m"} 1.0' in one.page.render().decode()


async def test_restart_loses_requests_and_counters():
    """A restart ends running requests with an error, and all counters begin at zero."""
    async with running(engine()) as one:
        await drain(one, 4, 4)
        lost = asyncio.create_task(drain(one, 4, 20))
        await asyncio.sleep(0)
        one.set_fault(Fault("restart"))
        with pytest.raises(EngineRestarted):
            await lost
        assert one.faults.current.mode == "none"
        assert 'vllm:prompt_tokens_total{engine="0",model_name="m"} 0.0' in one.page.render().decode()
        assert await drain(one, 4, 2) == [0, 1]


async def test_a_restart_forgets_the_size_of_the_batch():
    """A size that was set lives in the process: a restarted engine has the configured one again."""
    one = engine(max_num_seqs=8)
    one.set_max_num_seqs(2)
    assert "\nsluice_engine_max_num_seqs 2\n" in one.render().decode()

    one.set_fault(Fault("restart"))

    assert "\nsluice_engine_max_num_seqs 8\n" in one.render().decode()


async def test_forced_gauges_and_nan():
    """Forced gauges show on the page until they are let go; under NaN they are unknown to our reader, not 0."""
    one = engine()
    one.load = Load.of({"kv_ratio": 0.95, "waiting": 7})
    assert (reading(one).kv_ratio, reading(one).waiting, reading(one).running) == (0.95, 7, 0)

    one.set_fault(Fault("nan"))
    assert (reading(one).kv_ratio, reading(one).waiting, reading(one).running) == (None, None, 0)

    one.set_fault(Fault())
    one.load = Load.of({})
    assert reading(one).kv_ratio == 0.0


async def test_a_frozen_engine_makes_no_step_until_it_thaws():
    """While frozen no token comes; afterwards the request goes on where it was."""
    async with running(engine()) as one:
        one.set_fault(Fault("frozen"))
        task = asyncio.create_task(drain(one, 4, 2))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not task.done()
        one.set_fault(Fault())
        assert await task == [0, 1]


@pytest.mark.parametrize(
    ("kind", "document", "message"),
    [
        (Fault, {"mode": "loud"}, "mode: expected one of"),
        (Fault, {}, "mode: expected one of"),
        (Fault, {"mode": "slow", "delay_ms": -1}, "delay_ms: expected a number"),
        (Fault, {"mode": "slow", "delay_ms": True}, "delay_ms: expected a number"),
        (Load, {"kv_ratio": 1.5}, "kv_ratio: expected a number from 0 to 1"),
        (Load, {"waiting": "3"}, "waiting: expected a number"),
    ],
)
def test_controls_name_the_wrong_field(kind, document, message):
    """A control that cannot be meant is refused, naming the field."""
    with pytest.raises(ValueError, match=message):
        kind.of(document)


def test_settings_must_be_positive():
    """An engine without blocks, batch or speed is refused by name."""
    with pytest.raises(ValueError, match="itl_ms: must be greater than 0"):
        EngineConfig("m", itl_ms=0)
