"""The stand-in GPU: memory as the engine takes it, and what happens when there is no more."""

import asyncio
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.clock import ManualClock
from app.simulator.device import RESERVED_MIB, Device
from app.simulator.engine import Engine, EngineConfig, EngineRestarted
from app.telemetry.dcgm import DcgmPages

WEIGHTS_MIB = 100


def engine(room_blocks, *, preallocates=False, **options):
    """Eight blocks of four tokens, a MiB each, on a card with room for so many of them."""
    device = Device(RESERVED_MIB + WEIGHTS_MIB + room_blocks, preallocates, WEIGHTS_MIB, kv_kib_per_token=256, uuid="GPU-1")
    config = EngineConfig("m", device=device, restart_ms=1000, **({"blocks": 8, "block_size": 4, "ttft_ms": 10} | options))
    return Engine(config, ManualClock())


def used_mib(one):
    return one.used_mib(one.config.device)


def told(one):
    page = one.config.device.render(used_mib(one)).decode()
    return {name: int(value) for name, value in re.findall(r"^DCGM_FI_DEV_FB_(\w+)\{.*\} (\d+)$", page, re.MULTILINE)}


def test_the_exporters_page():
    """Used, free and reserved are whole MiB that make up the card, labelled as an exporter labels its first GPU."""
    one = engine(10)
    page = one.config.device.render(used_mib(one)).decode()

    assert told(one) == {"USED": 100, "FREE": 10, "RESERVED": 512}
    labels = 'gpu="0",UUID="GPU-1",device="nvidia0",modelName="Stand-in GPU",Hostname="stand-in"'
    assert f"# TYPE DCGM_FI_DEV_FB_USED gauge\nDCGM_FI_DEV_FB_USED{{{labels}}} 100\n" in page


def test_memory_of_an_engine_that_preallocates_is_flat():
    """The whole cache is taken from the start: weights of 100 MiB and eight blocks, busy or not."""
    one = engine(8, preallocates=True)
    at_rest = used_mib(one)
    one.add(16, 4)
    one.step()

    assert (at_rest, used_mib(one)) == (108, 108)


def test_memory_of_an_engine_that_does_not_follows_its_blocks():
    """Only blocks in use take memory: a prompt of eight tokens is two of them, its fourth token a third one's first."""
    one = engine(8)
    one.add(8, 2)

    seen = [used_mib(one)]
    for _ in range(2):
        one.step()
        seen.append(used_mib(one))

    assert seen == [100, 102, 100]


def test_more_work_than_memory_kills_the_engine():
    """Six blocks where five fit: every request is lost, the death is counted, and counters begin at zero."""
    one = engine(5)
    one.add(4, 1)
    one.step()
    assert 'vllm:prompt_tokens_total{engine="0",model_name="m"} 4.0' in one.render().decode()
    requests = [one.add(12, 4), one.add(12, 4)]

    step = one.step()

    assert step.lost == ("seq-2", "seq-3")
    assert (step.emitted, step.finished) == ((), ())
    assert [request.tokens.get_nowait() for request in requests] == [False, False]
    assert one.out_of_memory == 1
    assert "\nsluice_engine_out_of_memory_total 1\n" in one.render().decode()
    assert 'vllm:prompt_tokens_total{engine="0",model_name="m"} 0.0' in one.render().decode()


def test_five_blocks_where_five_fit_are_fine():
    """The card can be filled to its last MiB."""
    one = engine(5)
    one.add(12, 1)
    one.add(8, 1)

    assert one.step().finished == ("seq-1", "seq-2")


def test_blocks_that_end_with_the_step_count():
    """Memory is needed while the model runs: sequences that finish in the very step are no excuse."""
    one = engine(5)
    one.add(12, 1)
    one.add(12, 1)

    assert one.step().lost == ("seq-1", "seq-2")


def test_an_engine_that_died_comes_back():
    """For a second it takes nothing and holds no memory; then it works as a new one, and deaths go on being counted."""
    one = engine(5)
    one.add(24, 1)
    one.step()
    assert (one.down, used_mib(one), told(one)["FREE"]) == (True, 0, 105)
    with pytest.raises(EngineRestarted, match="the engine is starting"):
        one.add(4, 1)
    one._clock.advance(999)
    assert one.down

    one._clock.advance(1)

    assert (one.down, used_mib(one)) == (False, 100)
    one.add(4, 1)
    assert one.step().finished == ("seq-2",)
    one.add(24, 1)
    one.step()
    assert one.out_of_memory == 2


async def test_who_waits_for_tokens_learns_of_the_death():
    """A running stream ends in the error that a restart ends it with."""
    one = engine(5)
    stream = asyncio.create_task(anext(one.generate(24, 1)))
    await asyncio.sleep(0)
    one.step()

    with pytest.raises(EngineRestarted, match="lost this request"):
        await stream


@settings(deadline=None)  # each death makes a new page
@given(
    room_blocks=st.integers(0, 9),
    blocks=st.integers(1, 8),
    arrivals=st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=10),
)
def test_every_request_ends_and_memory_is_never_exceeded(room_blocks, blocks, arrivals):
    """Whatever comes, the card holds no more than it has, and each request finishes or is lost with a counted death."""
    one = engine(room_blocks, blocks=blocks)
    device, deaths, ended, asked = one.config.device, 0, [], 0
    for prompt, most in arrivals:
        if prompt + most <= one.scheduler.capacity_tokens and not one.down:
            one.add(prompt, most)
            asked += 1
        step = one.step()
        ended += [*step.finished, *step.lost]
        deaths += bool(step.lost)
        one._clock.advance(500)
        assert used_mib(one) <= device.memory_mib - RESERVED_MIB
    while (step := one.step()).computed_tokens or step.lost:
        ended += [*step.finished, *step.lost]
        deaths += bool(step.lost)

    assert sorted(ended) == sorted(f"seq-{n + 1}" for n in range(asked))
    assert deaths == one.out_of_memory


def test_the_default_card_of_80_gib_holds_the_default_engine():
    """15 GiB of weights and 524 288 tokens of 128 KiB are 79 GiB."""
    device = Device(80 * 1024)

    assert EngineConfig("m", device=device).device is device
    assert device.engine_mib(524_288) == 79 * 1024


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ({"memory_mib": 0}, "memory_mib: must be greater than 0"),
        ({"memory_mib": 15_871}, "memory_mib: expected 15872 or more"),
        ({"memory_mib": 80_000, "weights_mib": -1}, "weights_mib: must be greater than 0"),
        ({"memory_mib": 80_000}, "blocks: with the whole cache the engine takes 80896 MiB, more than its card has; give it fewer"),
    ],
)
def test_a_card_that_is_too_small_is_refused(device, message):
    """An engine that could not start is refused by name: weights alone, or the cache that it would take at its start."""
    with pytest.raises(ValueError, match=message):
        EngineConfig("m", device=Device(**device))


def test_a_restart_takes_no_negative_time():
    """A time to come back that lies before the death is refused."""
    with pytest.raises(ValueError, match="restart_ms: must not be negative"):
        EngineConfig("m", restart_ms=-1)


def test_our_reader_of_exporters_reads_its_page():
    """The reader of DCGM pages finds the card by its UUID: 102 MiB of the 110 that programs can have."""
    one = engine(10)
    one.add(8, 2)
    one.step()

    (gpu,) = DcgmPages().read(one.config.device.render(used_mib(one)), "text/plain; version=0.0.4")

    assert (gpu.id, gpu.used_bytes, gpu.total_bytes) == ("GPU-1", 102 * 2**20, 110 * 2**20)
