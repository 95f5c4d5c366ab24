"""The stand-in engine over HTTP: OpenAI's shapes, streamed and plain, aborts, and faults on demand."""

import asyncio
import contextlib
import json

import aiohttp
import pytest

from app.clock import SystemClock
from app.simulator.completions import build_app
from app.simulator.device import RESERVED_MIB, Device
from app.simulator.engine import Engine, EngineConfig
from app.simulator.faults import Fault, Load
from tests.fixtures.engine import serving
from tests.fixtures.waiting import until


@contextlib.asynccontextmanager
async def talking(**options):
    engine = Engine(EngineConfig("m", **({"blocks": 64, "ttft_ms": 4, "itl_ms": 2} | options)), SystemClock())
    async with serving(build_app(engine)) as url, aiohttp.ClientSession(url) as session:
        yield engine, session


async def ask(session, path="/v1/completions", **body):
    async with session.post(path, json={"model": "m", "prompt": "four", "max_tokens": 3} | body) as answer:
        return answer.status, await answer.json()


async def control(session, path, **body):
    async with session.post(path, json=body) as answer:
        return answer.status


async def events(answer):
    return [line.removeprefix("data: ") for line in (await answer.text()).split("\n\n") if line]


async def test_plain_completion():
    """A plain answer carries its text, why it ended, and the usage: 8 characters are 2 prompt tokens."""
    async with talking() as (_, session):
        status, body = await ask(session, prompt="8 chars.")

    assert status == 200
    assert body["choices"] == [{"index": 0, "text": "token token token ", "finish_reason": "length"}]
    assert body["usage"] == {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}


async def test_chat_completion():
    """Chat messages are counted together and answered as a message."""
    messages = [{"role": "system", "content": "four"}, {"role": "user", "content": "8 chars."}]
    async with talking() as (_, session):
        _, body = await ask(session, "/v1/chat/completions", messages=messages, max_completion_tokens=2)

    assert body["choices"][0]["message"] == {"role": "assistant", "content": "token token "}
    assert body["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


@pytest.mark.parametrize(("path", "field"), [("/v1/completions", "text"), ("/v1/chat/completions", "delta")])
async def test_streamed_completion(path, field):
    """A stream has one event a token, the reason in the last, the usage where asked for, and its end."""
    body = {"model": "m", "prompt": [1, 2, 3], "messages": [{"role": "user", "content": "12 characters"[:12]}]}
    async with talking() as (_, session):
        options = {"max_tokens": 3, "stream": True, "stream_options": {"include_usage": True}}
        async with session.post(path, json=body | options) as answer:
            *chunks, usage, done = await events(answer)

    assert answer.content_type == "text/event-stream"
    assert [json.loads(chunk)["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "length"]
    assert all(field in json.loads(chunk)["choices"][0] for chunk in chunks)
    assert json.loads(usage)["usage"] == {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}
    assert done == "[DONE]"


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"model": "x"}, 404, "'x' is not served here"),
        ({"max_tokens": 0}, 400, "max_tokens: expected"),
        ({"max_tokens": 5000}, 400, "exceed the cache of 1024"),
        ({"prompt": None}, 400, "prompt (or messages): expected"),
        ({"stream": True, "max_tokens": 5000}, 400, "exceed the cache of 1024"),
    ],
)
async def test_bad_calls_name_the_field(body, status, message):
    """A call that cannot be served is refused before any token, in OpenAI's error shape."""
    async with talking() as (_, session):
        got, answer = await ask(session, **body)

    assert got == status
    assert message in answer["error"]["message"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_frees_its_blocks(stream):
    """A dropped connection, streamed or plain, frees the KV blocks within a second, and the abort is counted."""
    async with talking(itl_ms=20, ttft_ms=20) as (engine, session):
        body = {"model": "m", "prompt": "x" * 400, "max_tokens": 500, "stream": stream}
        call = asyncio.create_task(session.post("/v1/completions", json=body))
        await until(lambda: engine.scheduler.kv_ratio > 0)
        if stream:
            (await call).close()
        else:
            call.cancel()
        await until(lambda: engine.scheduler.kv_ratio == 0, within_s=1)

        assert 'finished_reason="abort",model_name="m"} 1.0' in engine.page.render().decode()


async def test_a_restart_ends_streams_with_an_error_event():
    """A stream that a restart cuts off says so, and has no usage and no [DONE]."""
    async with talking(itl_ms=20, ttft_ms=20) as (_, session):
        answer = await session.post("/v1/completions", json={"model": "m", "prompt": "x", "max_tokens": 500, "stream": True})
        await answer.content.readany()
        await control(session, "/faults", mode="restart")
        rest = await events(answer)

    assert json.loads(rest[-1])["error"]["code"] == 503


async def test_models_and_health():
    """The served model is listed, and health answers."""
    async with talking() as (_, session):
        async with session.get("/v1/models") as answer:
            assert [model["id"] for model in (await answer.json())["data"]] == ["m"]
        async with session.get("/health") as answer:
            assert answer.status == 200


async def test_faults_on_demand():
    """Each fault shows on the page, and none ends it."""
    async with talking() as (_, session):

        async def page(mode):
            assert await control(session, "/faults", mode=mode) == 200
            async with session.get("/metrics") as answer:
                return answer.status, await answer.text()

        assert (await page("error500"))[0] == 500
        assert "<html>" in (await page("html"))[1]
        assert 'vllm:kv_cache_usage_perc{engine="0",model_name="m"} NaN' in (await page("nan"))[1]
        assert 'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.0' in (await page("none"))[1]


async def test_the_size_of_the_batch_can_be_set():
    """A size of the batch is in force at once, answered, and told by the page."""
    async with talking(max_num_seqs=64) as (engine, session):
        async with session.post("/control", json={"max_num_seqs": 3}) as answer:
            assert (answer.status, await answer.json()) == (200, {"max_num_seqs": 3})
        async with session.get("/metrics") as answer:
            assert "\nsluice_engine_max_num_seqs 3\n" in await answer.text()
        assert await control(session, "/control", max_num_seqs=128) == 200
        assert engine.scheduler.max_num_seqs == 128


@pytest.mark.parametrize("size", [0, -1, 1_000_001, 2.0, "3", True, None])
async def test_a_size_that_makes_no_sense_is_refused(size):
    """A batch of none, of a fraction or of no number is a 400 naming the field and changes nothing."""
    async with talking(max_num_seqs=64) as (engine, session):
        async with session.post("/control", json={"max_num_seqs": size}) as answer:
            assert answer.status == 400
            assert (await answer.json())["error"]["message"] == "max_num_seqs: expected a whole number from 1 to 1000000"
        assert await control(session, "/control", max_num_seq=3) == 400
        assert engine.scheduler.max_num_seqs == 64


async def test_frozen_answers_nothing_and_thaws():
    """A frozen engine accepts connections and is silent, but its controls work; what hung is answered after it thaws."""
    async with talking() as (_, session):
        await control(session, "/faults", mode="frozen")
        hanging = asyncio.create_task(session.get("/metrics"))
        done, _ = await asyncio.wait([hanging], timeout=0.1)
        assert not done
        await control(session, "/faults", mode="none")
        async with await hanging as answer:
            assert answer.status == 200


async def test_a_dead_engine_answers_its_page_and_no_completion():
    """The page and health are answered, a completion hangs; once the fault ends it is answered."""
    async with talking() as (_, session):
        await control(session, "/faults", mode="dead")
        hanging = asyncio.create_task(ask(session))
        done, _ = await asyncio.wait([hanging], timeout=0.1)
        for path in ("/metrics", "/health"):
            async with session.get(path) as answer:
                assert answer.status == 200
        assert not done
        await control(session, "/faults", mode="none")
        assert (await hanging)[0] == 200


async def test_a_stuck_page_is_freed_by_the_next_completion():
    """Forced gauges are kept until a completion comes, which is answered as ever."""
    async with talking() as (_, session):
        await control(session, "/load", kv_ratio=0.99)
        await control(session, "/faults", mode="stuck")
        shown = []
        for _ in range(2):
            async with session.get("/metrics") as page:
                shown.append('vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.99\n' in await page.text())
            assert (await ask(session))[0] == 200

    assert shown == [True, False]


CARD = {"blocks": 8, "block_size": 4, "ttft_ms": 2}


def card(room_blocks):
    """A card with room for the weights and so many blocks of a MiB each, which are taken as they are used."""
    return Device(RESERVED_MIB + 100 + room_blocks, preallocates=False, weights_mib=100, kv_kib_per_token=256)


async def test_an_engine_without_a_card_has_no_exporter():
    """The exporter's page exists where a card was asked for."""
    async with talking() as (_, session), session.get("/dcgm/metrics") as answer:
        assert answer.status == 404


async def test_an_engine_that_runs_out_of_memory():
    """The call that was too much is a 503, and so is everything until the engine is back; its card's exporter goes on."""
    async with talking(**CARD, device=card(5), restart_ms=400) as (engine, session):
        assert (await ask(session, prompt=[1] * 24, max_tokens=1))[0] == 503
        async with session.get("/metrics") as page, session.get("/dcgm/metrics") as exporter:
            assert (page.status, exporter.status) == (503, 200)
            assert 'Hostname="stand-in"} 0\n' in await exporter.text()
        assert (await session.post("/v1/completions", json={"model": "m", "prompt": "x"})).status == 503

        await until(lambda: not engine.down)
        assert (await ask(session, max_tokens=1))[0] == 200
        async with session.get("/metrics") as page:
            assert "\nsluice_engine_out_of_memory_total 1\n" in await page.text()


async def test_a_frozen_engine_leaves_its_cards_exporter_alone():
    """The exporter is a process of its own: the engine's faults do not reach it."""
    async with talking(**CARD, device=card(5)) as (_, session):
        await control(session, "/faults", mode="frozen")
        async with session.get("/dcgm/metrics") as answer:
            assert 'Hostname="stand-in"} 100\n' in await answer.text()
        await control(session, "/faults", mode="none")


async def test_slow_delays_each_answer():
    """A slow engine answers each call later by the delay that was asked for."""
    async with talking() as (_, session):
        await control(session, "/faults", mode="slow", delay_ms=120)
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        async with session.get("/metrics"):
            assert loop.time() - started_s >= 0.12


async def test_bad_controls_are_refused():
    """A fault or load that makes no sense, or has a field of another name, is a 400 naming the field and changes nothing."""
    bad = [("/faults", "mode", "loud"), ("/faults", "delay", 10), ("/load", "kv_ratio", 2), ("/load", "kv", 0.3)]
    async with talking() as (engine, session):
        for path, field, value in bad:
            async with session.post(path, json={"mode": "slow", field: value} if path == "/faults" else {field: value}) as answer:
                assert answer.status == 400
                assert (await answer.json())["error"]["message"].startswith(f"{field}: ")
        assert (engine.load, engine.faults.current) == (Load(), Fault())
        async with session.post("/load", json=[]) as answer:
            assert answer.status == 400


async def test_real_requests_fill_the_cache():
    """The cache can be driven to 0.95 by requests alone: 61 blocks of 64 held are 0.953."""
    async with talking(itl_ms=30, ttft_ms=30) as (engine, session):
        body = {"model": "m", "prompt": list(range(61 * 16 - 8)), "max_tokens": 8, "stream": True}
        call = await session.post("/v1/completions", json=body)
        await until(lambda: engine.scheduler.kv_ratio >= 0.95)
        call.close()
