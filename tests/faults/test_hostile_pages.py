"""Engines whose pages are large, or new in every line: they are asked less often or refused, and no other engine notices."""

import itertools

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from tests.fixtures.engine import serving
from tests.fixtures.telemetry import telemetry
from tests.fixtures.waiting import until
from tests.unit.telemetry.pages import OPENMETRICS, TEXT

GOOD = b'vllm:kv_cache_usage_perc{model_name="m"} 0.5\nvllm:num_requests_waiting{model_name="m"} 1\n'
STALE_MS = 1000.0


def engine(pages, content_type=TEXT):
    """An engine that writes one page after the other, and begins anew at the end."""
    turn = itertools.cycle(pages)

    async def metrics(_):
        return Response(next(turn), headers={"content-type": content_type})

    return serving(Starlette(routes=[Route("/metrics", metrics)]))


def invented(series, pages=6):
    """Pages whose labels are never those of a page before, more of them than are remembered."""
    return [
        b"# TYPE made gauge\n" + b"".join(b'made{a="%d_%d"} %d\n' % (page, n, n) for n in range(series)) + b"# EOF\n"
        for page in range(pages)
    ]


def of_models(count):
    """One page with the signals of so many models."""
    return [b"".join(GOOD.replace(b'"m"', b'"x%d"' % n) for n in range(count))]


@pytest.mark.parametrize(
    ("pages", "content_type", "problem"),
    [
        (invented(9_000), OPENMETRICS, "missing:kv"),
        (invented(30_000, pages=1), OPENMETRICS, "parse"),
        (of_models(4_000), TEXT, "missing:kv"),
        (of_models(10_000), TEXT, "parse"),
    ],
    ids=["new labels", "too many labels", "many models", "too many models"],
)
async def test_a_hostile_page_leaves_others_fresh(tmp_path, pages, content_type, problem):
    """While one engine writes the worst of pages, the readings of another stay far from stale."""
    async with (
        engine(pages, content_type) as hostile,
        engine([GOOD]) as good,
        telemetry(tmp_path, {"hostile": hostile, "good": good}) as running,
    ):
        await running.node("hostile", problem=problem, within_s=10)
        await running.node("good", problem=None)
        result = "parse" if problem == "parse" else "missing"
        before = running.count("sluice_scrapes_total", node="hostile", result=result)
        seen = []
        while running.count("sluice_scrapes_total", node="hostile", result=result) < before + 3:
            seen.append((await running.node("good")).age_ms)

        assert max(seen) < STALE_MS


async def test_a_costly_engine_is_asked_less_often(tmp_path):
    """A page that takes a tenth of a second to read is read about once a second, another engine's twenty times."""
    async with (
        engine(invented(9_000), OPENMETRICS) as costly,
        engine([GOOD]) as good,
        telemetry(tmp_path, {"costly": costly, "good": good}) as running,
    ):
        await running.node("costly", problem="missing:kv", within_s=10)
        read, others = (
            running.count("sluice_scrapes_total", node=node, result=result) for node, result in (("costly", "missing"), ("good", "ok"))
        )
        await until(lambda: running.count("sluice_scrapes_total", node="costly", result="missing") >= read + 2, within_s=20)

        assert running.count("sluice_scrapes_total", node="good", result="ok") >= others + 10


async def test_only_configured_models_are_published(tmp_path):
    """Of a page with many models, the snapshot has those that the engine is configured for and no other."""
    async with engine([GOOD + of_models(1_000)[0]]) as url, telemetry(tmp_path, {"a": url}) as running:
        node = await running.node("a", problem=None, within_s=10)
        assert {model: reading.kv_ratio for model, reading in node.readings.items()} == {"m": 0.5}
