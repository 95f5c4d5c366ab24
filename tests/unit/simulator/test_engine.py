"""The engine's loop, moved by hand: tokens, latencies, aborts, restarts, and its page as our own reader sees it."""

import asyncio
import contextlib

import pytest

from app.clock import ManualClock
from app.simulator.engine import Engine, EngineConfig, EngineRestarted
from app.simulator.faults import Fault, Load
from app.simulator.scheduler import Step
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


async def eventually_reads(one, **want):
    """Let the loop run until the page tells this."""
    for _ in range(1000):
        await asyncio.sleep(0)
        if all(getattr(reading(one), name) == value for name, value in want.items()):
            return
    raise AssertionError(f"never read {want}")


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


async def test_a_stuck_page_keeps_its_last_gauges_until_a_new_request_brings_a_step():
    """All requests are dropped, yet the page shows them for as long as nothing new comes; the next step tells the truth."""
    async with running(engine()) as one:
        lost = asyncio.create_task(drain(one, 16, 16))
        await eventually_reads(one, kv_ratio=0.5, running=1)
        one.set_fault(Fault("stuck"))
        with pytest.raises(EngineRestarted):
            await lost
        before = one.page.render()
        for _ in range(50):
            await asyncio.sleep(0)
        assert (one.page.render(), one.scheduler.kv_ratio) == (before, 0.0)
        assert (reading(one).kv_ratio, reading(one).running) == (0.5, 1)

        assert await drain(one, 4, 2) == [0, 1]

    assert (one.faults.current.mode, reading(one).kv_ratio, reading(one).running) == ("none", 0.0, 0)


async def test_stuck_keeps_forced_gauges_as_long():
    """Gauges that were forced before are kept too, and let go with the fault."""
    async with running(engine()) as one:
        one.load = Load(kv_ratio=0.99, waiting=15, running=106)
        one.set_fault(Fault("stuck"))
        assert (reading(one).kv_ratio, reading(one).waiting, reading(one).running) == (0.99, 15, 106)

        await drain(one, 4, 1)

    assert (reading(one).kv_ratio, reading(one).waiting, reading(one).running) == (0.0, 0, 0)


async def test_a_dead_engine_has_a_living_page():
    """Requests are taken and get no token; gauges and counters stay as they were, whatever comes, until the fault ends."""
    async with running(engine()) as one:
        task = asyncio.create_task(drain(one, 16, 16))
        await eventually_reads(one, kv_ratio=0.5, running=1)
        one.set_fault(Fault("dead"))
        before = one.page.render()
        late = asyncio.create_task(drain(one, 4, 2))
        for _ in range(50):
            await asyncio.sleep(0)
        assert one.page.render() == before
        assert not late.done()

        one.set_fault(Fault())

        assert (len(await task), await late) == (16, [0, 1])


@pytest.mark.parametrize("mode", ["frozen", "dead"])
async def test_a_step_by_hand_does_nothing_while_a_fault_forbids_it(mode):
    """Who steps the engine by hand meets the faults, too."""
    one = engine(ttft_ms=10)
    one.add(4, 4)
    one.set_fault(Fault(mode))
    assert one.step() == Step()

    one.set_fault(Fault())
    assert one.step().emitted == ("seq-1",)


def test_no_step_without_a_request():
    """An engine at rest makes no step: its page stays as it is."""
    one = engine()
    before = one.render()

    assert one.step() == Step()
    assert one.render() == before


async def test_stepping_by_hand_needs_no_loop():
    """Requests can be added, stepped and aborted without the loop: a simulation counts what each step answers."""
    one = engine(ttft_ms=10)
    first, second = one.add(4, 2), one.add(4, 9)

    steps = [one.step() for _ in range(2)]
    one.abort(first)  # has ended: nothing to drop
    one.abort(second)
    one.step()

    assert [step.emitted for step in steps] == [("seq-1", "seq-2")] * 2
    assert steps[1].finished == ("seq-1",)
    assert (one.scheduler.running, one.scheduler.kv_ratio) == (0, 0.0)


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
