"""Engines that misbehave: each is told apart, none delays another, and no bad page becomes a number."""

import asyncio
import contextlib
import json

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from app.clock import SystemClock
from app.simulator.completions import build_app
from app.simulator.engine import Engine, EngineConfig
from app.simulator.faults import Fault, Load
from tests.fixtures.engine import serving
from tests.fixtures.telemetry import raw_engine, telemetry
from tests.fixtures.waiting import until

PAGE = b'vllm:kv_cache_usage_perc{model_name="m"} 0.5\nvllm:num_requests_waiting{model_name="m"} 1\n'


@contextlib.asynccontextmanager
async def stand_in():
    engine = Engine(EngineConfig("m", blocks=64), SystemClock())
    engine.load = Load(kv_ratio=0.5, waiting=1)
    async with serving(build_app(engine)) as url:
        yield engine, url
        engine.set_fault(Fault())


def http(body, *headers, length=None):
    head = ["HTTP/1.1 200 OK", "Content-Type: text/plain", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


async def test_a_hung_engine_delays_no_other(tmp_path):
    """One engine accepts and never answers: it is a timeout, while the other is scraped at its own pace."""
    async with (
        raw_engine(b"", hold=True) as hung,
        stand_in() as (_, good),
        telemetry(tmp_path, {"hung": hung, "good": good}) as running,
    ):
        await running.node("hung", problem="timeout", age_ms=None)
        scraped = running.count("sluice_scrapes_total", node="good", result="ok")
        timeouts = running.count("sluice_scrapes_total", node="hung", result="timeout")
        await until(lambda: running.count("sluice_scrapes_total", node="hung", result="timeout") >= timeouts + 2)

        # two timeouts of 200 ms are at least 400 ms: the good one has been asked every 50 ms meanwhile
        assert running.count("sluice_scrapes_total", node="good", result="ok") >= scraped + 4


async def test_a_slow_engine_meets_its_own_deadline(tmp_path):
    """Slower than the deadline is a timeout, slower than the poll but in time is fine."""
    async with stand_in() as (slow, slow_url), stand_in() as (slower, slower_url):
        slow.set_fault(Fault("slow", delay_ms=100))
        slower.set_fault(Fault("slow", delay_ms=900))
        async with telemetry(tmp_path, {"slow": slow_url, "slower": slower_url}, scrape_timeout_ms=300) as running:
            await running.node("slower", problem="timeout")
            assert (await running.node("slow", problem=None)).readings["m"].kv_ratio == 0.5


async def test_an_engine_that_freezes_keeps_its_last_reading_and_its_age_grows(tmp_path):
    """The last good page stays, older and older, until the engine thaws."""
    async with stand_in() as (engine, url), telemetry(tmp_path, {"a": url}, scrape_timeout_ms=100) as running:
        await running.node("a", problem=None)
        engine.set_fault(Fault("frozen"))
        frozen = await running.node("a", problem="timeout")
        assert frozen.readings["m"].kv_ratio == 0.5
        assert frozen.age_ms >= 100
        engine.set_fault(Fault())
        thawed = await running.node("a", problem=None)
        assert thawed.age_ms < 100


async def test_stale_gauges_are_read_as_told_until_a_request_brings_the_truth(tmp_path):
    """A page whose requests were all dropped goes on telling of them, fresh and well; the first new request ends that."""
    async with stand_in() as (engine, url), telemetry(tmp_path, {"a": url}) as running, aiohttp.ClientSession(url) as caller:
        engine.set_fault(Fault("stuck"))
        polled = running.count("sluice_scrapes_total", node="a", result="ok")
        await until(lambda: running.count("sluice_scrapes_total", node="a", result="ok") >= polled + 5)
        assert (await running.node("a", problem=None)).readings["m"].kv_ratio == 0.5

        async with caller.post("/v1/completions", json={"prompt": "one", "max_tokens": 1}) as answer:
            assert answer.status == 200
        await running.reading("a", kv_ratio=0.0)


@pytest.mark.parametrize(
    ("fault", "problem", "kv"), [("error500", "status", 0.5), ("html", "parse", 0.5), ("nan", "missing:kv", None), ("restart", None, 0.5)]
)
async def test_faults_on_demand(tmp_path, fault, problem, kv):
    """A 500, a web page, NaN and a restart are told apart, and the engine comes back from each."""
    async with stand_in() as (engine, url), telemetry(tmp_path, {"a": url}) as running:
        await running.node("a", problem=None)
        engine.set_fault(Fault(fault))
        node = await running.node("a", problem=problem)
        assert node.readings["m"].kv_ratio == kv
        engine.set_fault(Fault())
        assert (await running.node("a", problem=None)).readings["m"].waiting == 1


async def test_an_unknown_reading_is_counted(tmp_path):
    """Under NaN the KV is unknown, and the unknown readings are counted."""
    async with stand_in() as (engine, url), telemetry(tmp_path, {"a": url}) as running:
        await running.node("a", problem=None)
        engine.set_fault(Fault("nan"))
        await running.reading("a", kv_ratio=None)
        assert running.count("sluice_readings_unknown_total", node="a", signal="kv") >= 1


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (http(PAGE, length=len(PAGE) + 50), "parse"),
        (http(PAGE[:40]), "parse"),
        (http(b"x" * 100, "Content-Encoding: gzip"), "parse"),
        (http(b"# " + b"x" * (5 * 1024 * 1024)), "parse"),
        (b"not HTTP at all\r\n\r\n", "connect"),
        (b"", "connect"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "status"),
    ],
)
async def test_broken_answers(tmp_path, answer, problem):
    """A page that is cut, compressed, huge, no HTTP, or empty is named and read as nothing."""
    async with raw_engine(answer) as url, telemetry(tmp_path, {"a": url}, scrape_timeout_ms=2000) as running:
        node = await running.node("a", problem=problem)
        assert (node.readings, node.age_ms) == ({}, None)


@pytest.mark.parametrize(("page", "problem"), [(PAGE, None), (PAGE[:-3], "parse"), (PAGE[:-1], "parse")])
async def test_a_page_that_ends_with_its_connection(tmp_path, page, problem):
    """Where nothing tells how long a page is, it is whole when its last line is: 1 may be the beginning of 15."""
    async with raw_engine(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n" + page) as url, telemetry(tmp_path, {"a": url}) as running:
        await running.node("a", problem=problem)


async def test_a_refused_connection(tmp_path):
    """An engine that is not there is a connect problem."""
    async with telemetry(tmp_path, {"a": "http://127.0.0.1:9"}) as running:
        assert (await running.node("a", problem="connect")).readings == {}


async def test_redirects_are_not_followed(tmp_path):
    """An answer that points elsewhere is a bad status; nothing but the configured address is ever asked."""
    asked = []

    async def elsewhere(request):
        asked.append(request.url.path)
        return Response(PAGE, media_type="text/plain")

    async with serving(Starlette(routes=[Route("/elsewhere", elsewhere)])) as target:

        async def redirect(_):
            return RedirectResponse(f"{target}/elsewhere")

        async with serving(Starlette(routes=[Route("/metrics", redirect)])) as url, telemetry(tmp_path, {"a": url}) as running:
            await running.node("a", problem="status")

    assert asked == []


async def test_a_page_of_other_models_is_missing_its_signals(tmp_path):
    """A page that tells only of several other models leaves the configured one unknown, not empty."""
    others = PAGE.replace(b'"m"', b'"x"') + PAGE.replace(b'"m"', b'"y"')
    async with raw_engine(http(others)) as url, telemetry(tmp_path, {"a": url}) as running:
        node = await running.node("a", problem="missing:kv")
        assert node.readings == {}


async def test_a_page_that_breaks_its_reader_is_asked_for_again(tmp_path, monkeypatch):
    """Whatever a page provokes in its reader, the engine is a parse problem and goes on being polled."""

    def broken(pages, body, content_type):
        raise ZeroDivisionError

    monkeypatch.setattr("app.telemetry.pages.Pages.told", broken)
    async with raw_engine(http(PAGE)) as url, telemetry(tmp_path, {"a": url}) as running:
        await running.node("a", problem="parse")
        await until(lambda: running.count("sluice_scrapes_total", node="a", result="parse") >= 3)


async def test_one_scrape_in_flight(tmp_path):
    """However slow the engine, it never has two scrapes of ours at once."""
    now, most = 0, 0

    async def metrics(_):
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.12)
        now -= 1
        return Response(PAGE, media_type="text/plain")

    async with serving(Starlette(routes=[Route("/metrics", metrics)])) as url, telemetry(tmp_path, {"a": url}, poll_ms=50) as running:
        await until(lambda: running.count("sluice_scrapes_total", node="a", result="ok") >= 4)

    assert most == 1


async def test_a_real_process_driven_over_http(start_engine, tmp_path):
    """The stand-in as its own process is read by the poller, driven by its controls, and its restart by kill is survived."""
    engine = start_engine(model="m", blocks=64)
    async with telemetry(tmp_path, {"a": engine.url}) as running:
        await running.node("a", problem=None, within_s=10)
        async with aiohttp.ClientSession() as session, session.post(f"{engine.url}/load", data=json.dumps({"kv_ratio": 0.95})) as answer:
            assert answer.status == 200
        await running.reading("a", kv_ratio=0.95)

        engine.process.kill()
        engine.process.wait(5)
        await running.node("a", problem="connect")
        start_engine(model="m", blocks=64, port=int(engine.url.rpartition(":")[2]))
        assert (await running.node("a", problem=None, within_s=10)).readings["m"].kv_ratio == 0.0
