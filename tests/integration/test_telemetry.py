"""The telemetry process over stand-in engines: snapshots, long polls, reloads, access, and a reader that follows it."""

import asyncio
import contextlib
import os
import signal
import stat
import subprocess
import sys

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from app.background import Background
from app.catalog.models import ModelSpec
from app.clock import SystemClock
from app.observability.metrics import Metrics
from app.setting_sections import EngineSettings
from app.simulator.completions import build_app as build_engine
from app.simulator.engine import Engine, EngineConfig
from app.simulator.faults import Load
from app.telemetry.board import Board
from app.telemetry.configuration import load
from app.telemetry.follow import Follower, follow
from app.telemetry.poller import Poller
from app.telemetry.scrape import open_session
from app.telemetry.server import build_app
from tests.fixtures.engine import serving
from tests.fixtures.telemetry import raw_engine, telemetry, write_settings
from tests.fixtures.waiting import until

MODELS = {"m": ModelSpec(id="m")}


@contextlib.asynccontextmanager
async def stand_in(**options):
    engine = Engine(EngineConfig("m", **({"blocks": 64} | options)), SystemClock())
    async with serving(build_engine(engine)) as url:
        yield engine, url


@contextlib.asynccontextmanager
async def following(target, token=None, models=MODELS):
    views = []
    task = asyncio.create_task(
        follow(
            target,
            Follower([views.append], SystemClock(), Metrics(), lambda: models, stale_ms=1000),
            SystemClock(),
            token=token,
        )
    )
    yield views
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def live(views):
    return views[-1].models["m"].readings["live"] if views else None


async def test_a_snapshot_tells_what_the_engines_told(tmp_path):
    """Both engines' readings are in the snapshot, with the age of their pages."""
    async with stand_in() as (one, one_url), stand_in(names="v0") as (two, two_url):
        one.load, two.load = Load(kv_ratio=0.25, waiting=3), Load(kv_ratio=0.75, waiting=4)
        async with telemetry(tmp_path, {"a": one_url, "b": two_url}) as running:
            await running.reading("a", kv_ratio=0.25, waiting=3, running=0, capacity_tokens=1024, free_tokens=768)
            await running.reading("b", kv_ratio=0.75, waiting=4, running=0, capacity_tokens=1024, free_tokens=256)
            a, b = await running.node("a", problem=None), await running.node("b", problem=None)

            assert a.age_ms is not None
            assert b.age_ms is not None


async def test_the_page_of_the_process_tells_what_it_did_itself(tmp_path):
    """It counts scrapes and unknown readings; how engines are stands on the pages of those who decide, in one meaning."""
    async with stand_in() as (_, url), telemetry(tmp_path, {"a": url}) as running:
        await running.node("a", problem=None)
        async with running.session.get("/metrics") as answer:
            page = await answer.text()
        assert 'sluice_scrapes_total{node="a",result="ok"}' in page
        assert not [line for line in page.splitlines() if line.startswith("sluice_engine_")]


async def test_long_polls(tmp_path):
    """A poll of the newest generation waits for a change, or ends with the same one; another generation is answered at once."""
    async with stand_in() as (engine, url), telemetry(tmp_path, {"a": url}) as running:
        await running.reading("a", kv_ratio=0.0, waiting=0, running=0, free_tokens=1024)
        loop = asyncio.get_running_loop()
        # A generation that was being published when the node appeared is over after a poll that waits for it.
        first = await running.snapshot(after=(await running.snapshot()).generation, wait_ms=100)

        started_s = loop.time()
        same = await running.snapshot(after=first.generation, wait_ms=60)
        assert loop.time() - started_s >= 0.06
        assert same.generation == first.generation

        poll = asyncio.create_task(running.snapshot(after=first.generation, wait_ms=500))
        engine.load = Load(kv_ratio=0.5)
        changed = await poll
        assert changed.generation > first.generation
        assert changed.nodes[0].readings["m"].kv_ratio == 0.5
        assert (await running.snapshot(after=first.generation, wait_ms=500)).generation >= changed.generation


async def test_a_poll_never_waits_longer_than_half_a_second(tmp_path):
    """Whatever wait a reader asks for, it hears within 500 ms that the process lives."""
    async with telemetry(tmp_path, {}) as running:
        generation = (await running.snapshot()).generation
        async with asyncio.timeout(2):
            assert (await running.snapshot(after=generation, wait_ms=60_000)).generation == generation


@pytest.mark.parametrize("query", ["after=x", "after=-1", "wait_ms=1.5", "after=" + "9" * 30])
async def test_bad_parameters_are_named(tmp_path, query):
    """A parameter that is no whole number is a 400 that names it."""
    async with telemetry(tmp_path, {}) as running, running.session.get(f"/snapshot?{query}") as answer:
        assert answer.status == 400
        assert (await answer.text()).startswith(query.partition("=")[0])


async def test_engines_follow_the_file(tmp_path):
    """An engine added to the file is polled, one taken out is gone, and the one that stays keeps its readings."""
    async with stand_in() as (_, one), stand_in() as (_, two), telemetry(tmp_path, {"a": one}) as running:
        await running.node("a", problem=None)
        await until(lambda: write_settings(tmp_path, {"a": one, "b": two}) and running.count("sluice_scrapes_total", node="b", result="ok"))
        write_settings(tmp_path, {"b": two})
        await until(lambda: running.count("sluice_config_loads_total", file="sluice.yaml", result="ok") >= 2)
        assert [node.name for node in (await running.snapshot()).nodes] == ["b"]


async def test_a_node_that_is_gone_leaves_no_series(tmp_path):
    """However often engines are renamed, the process's metrics have those of now alone, and counts of one that stays go on."""
    poller_metrics = Metrics()
    spec = {"m": ModelSpec(id="m", signals=("kv", "running"))}
    page = b'vllm:num_requests_waiting{model_name="m"} 1\n'
    async with raw_engine(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n" + page) as url, open_session() as session:
        board, background = Board(SystemClock()), Background(SystemClock(), poller_metrics)
        poller = Poller(board, session, background, clock=SystemClock(), metrics=poller_metrics, scrape_timeout_ms=500)

        def series(name):
            return [
                sample for family in poller_metrics.registry.collect() for sample in family.samples if sample.labels.get("node") == name
            ]

        try:
            for name in ("a", "b", "c"):
                poller.configure([EngineSettings(name=one, url=url, models=["m"], poll_ms=50) for one in (name, "stays")], spec)
                await until(lambda name=name: series(name))
            assert (series("a"), series("b")) == ([], [])
            assert {sample.name for sample in series("c")} >= {"sluice_scrapes_total", "sluice_readings_unknown_total"}
            assert series("stays")
        finally:
            await background.stop()


async def test_a_token_guards_snapshots_and_metrics(tmp_path):
    """Without the token nothing is told but that the process lives; the follower with the token gets views."""
    file = write_settings(tmp_path, {})
    app = build_app(file, load(file), clock=SystemClock(), metrics=Metrics(), token="sesame")
    async with serving(app, str(tmp_path / "s")) as target, following(target, "sesame") as views:
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(tmp_path / "s"))) as session:
            for path, headers, status in [
                ("/snapshot", {}, 401),
                ("/metrics", {}, 401),
                ("/snapshot", {"authorization": "Bearer sesam"}, 401),
                ("/healthz", {}, 200),
                ("/metrics", {"authorization": "Bearer sesame"}, 200),
            ]:
                async with session.get(f"http://telemetry{path}", headers=headers) as answer:
                    assert answer.status == status
                    assert "sesame" not in await answer.text()
        await until(lambda: len(views) > 1)


async def test_an_engine_under_pressure_is_seen_in_a_quarter_of_a_second(tmp_path):
    """From the engine's gauge to the reader's view it takes one poll and two short hand-overs."""
    async with stand_in() as (engine, url), telemetry(tmp_path, {"a": url}, poll_ms=100) as running, following(running.url) as views:
        await until(lambda: live(views) == 1)
        loop = asyncio.get_running_loop()
        engine.load = Load(kv_ratio=0.95)
        started_s = loop.time()
        await until(lambda: views[-1].models["m"].readings.get("kv_max") == 0.95)

        assert loop.time() - started_s < 0.25


async def test_engines_are_asked_one_after_the_other(tmp_path):
    """Though all are asked at once as the process starts, from then on their turns are spread over the period."""
    asked, loop = {}, asyncio.get_running_loop()

    async def page(request):
        asked.setdefault(request.path_params["name"], []).append(loop.time())
        return Response('vllm:kv_cache_usage_perc{model_name="m"} 0.5\n', media_type="text/plain")

    async with serving(Starlette(routes=[Route("/{name}/metrics", page)])) as url:
        engines = {name: f"{url}/{name}" for name in "abcd"}
        async with telemetry(tmp_path, engines, poll_ms=1000):
            await until(lambda: len(asked) == 4 and all(len(times) >= 3 for times in asked.values()))

    firsts, thirds = ([times[turn] for times in asked.values()] for turn in (0, 2))
    assert max(firsts) - min(firsts) < 0.5
    turns = sorted(third % 1.0 for third in thirds)
    gaps = [after - before for before, after in zip(turns, [*turns[1:], turns[0] + 1.0], strict=True)]
    assert min(gaps) > 0.05  # 0.146 of the period between the nearest two of four


async def test_a_killed_process_makes_everything_stale_and_a_new_one_brings_it_back(tmp_path):
    """After kill -9 of the process views go on for a second and then say that no node is live; a restart ends that."""
    environment = os.environ | {"SLUICE_TELEMETRY__TOKEN": "sesame"}

    def start():
        program = [sys.executable, "-c", "from app.cli.telemetry import app; app()"]
        return subprocess.Popen([*program, "--config", str(file), "--listen", target], env=environment, stderr=subprocess.DEVNULL)

    async with stand_in() as (_, url):
        file, target = write_settings(tmp_path, {"a": url}), f"unix:{tmp_path}/s"
        first = start()
        async with following(target, "sesame") as views:
            await until(lambda: live(views) == 1, within_s=20)
            assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
            first.kill()
            first.wait(5)
            before = views[-1].generation
            await until(lambda: live(views) == 0, within_s=2)
            assert views[-1].generation > before
            assert [state.why for state in views[-1].nodes] == ["stale"]

            second = start()
            await until(lambda: live(views) == 1, within_s=20)
            second.terminate()
            assert second.wait(5) in (0, -15)


async def test_a_frozen_process_makes_everything_stale(tmp_path):
    """A process that accepts polls and never answers is as good as gone: no node is live a second later, until it thaws."""
    async with stand_in() as (_, url):
        file, target = write_settings(tmp_path, {"a": url}), f"unix:{tmp_path}/s"
        program = [sys.executable, "-c", "from app.cli.telemetry import app; app()", "--config", str(file), "--listen", target]
        with subprocess.Popen(program, stderr=subprocess.DEVNULL) as process:  # noqa: ASYNC220 - starting is quick
            try:
                async with following(target) as views:
                    await until(lambda: live(views) == 1, within_s=20)
                    process.send_signal(signal.SIGSTOP)
                    await until(lambda: live(views) == 0, within_s=2)
                    process.send_signal(signal.SIGCONT)
                    await until(lambda: live(views) == 1, within_s=5)
            finally:
                process.kill()


def test_a_bad_file_or_address_is_said_at_the_start(tmp_path):
    """The process does not start on a bad configuration, and names what is wrong."""
    file = write_settings(tmp_path, {})
    program = [sys.executable, "-c", "from app.cli.telemetry import app; app(standalone_mode=False)"]
    for arguments, message in [
        (["--config", str(tmp_path / "none.yaml")], "no such file"),
        (["--config", str(file), "--listen", "127.0.0.1:x"], "--listen 127.0.0.1:x"),
    ]:
        ended = subprocess.run([*program, *arguments], capture_output=True, text=True, timeout=30, check=False)
        assert ended.returncode != 0
        assert message in ended.stderr
