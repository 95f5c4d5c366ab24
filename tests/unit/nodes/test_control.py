"""Telling engines their max_num_seqs: once each, again where it was not taken, and never anybody else."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.clock import ManualClock
from app.nodes.control import EngineControl, Wish
from app.observability.metrics import Metrics
from app.telemetry.scrape import open_session
from app.telemetry.snapshot import Reading
from app.telemetry.view import NodeState, Standing, View
from tests.fixtures.engine import serving


class Engine:
    """Answers with `status`, and keeps what it was told."""

    def __init__(self) -> None:
        self.status = 200
        self.told: list[dict[str, int]] = []

    async def control(self, request: Request) -> Response:
        self.told.append(await request.json())
        return Response(status_code=self.status, headers={"location": "/elsewhere"})

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[Route("/control", self.control, methods=["POST"])])


class Setting:
    def __init__(self) -> None:
        self.engine, self.metrics = Engine(), Metrics()
        self.control = EngineControl(ManualClock(), self.metrics)
        self.session: aiohttp.ClientSession
        self.url = ""

    async def tell(self, size: int) -> None:
        await self.control.tell(self.session, {"a": Wish(self.url, size)})

    def counted(self, result: str) -> float | None:
        return self.metrics.registry.get_sample_value("sluice_engine_controls_total", {"node": "a", "result": result})


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    one = Setting()
    async with serving(one.engine.app) as url, open_session() as session:
        one.session, one.url = session, f"{url}/control"
        yield one


async def test_an_engine_is_told_once(setting: Setting) -> None:
    """What an engine has taken is not told again until it changes."""
    await setting.tell(45)
    await setting.tell(45)
    await setting.tell(44)

    assert setting.engine.told == [{"max_num_seqs": 45}, {"max_num_seqs": 44}]
    assert setting.counted("taken") == 2


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_what_was_not_taken_is_told_again(setting: Setting, status: int) -> None:
    """An engine that refuses keeps its figure, is counted, and hears it again; a redirect is not followed."""
    setting.engine.status = status
    await setting.tell(45)
    setting.engine.status = 200
    await setting.tell(45)

    assert setting.engine.told == [{"max_num_seqs": 45}] * 2
    assert (setting.counted("failed"), setting.counted("taken")) == (1, 1)


async def test_an_engine_that_is_gone_hinders_nobody(setting: Setting) -> None:
    """Nobody listens at the address: it is counted, and the other engine hears its figure."""
    await setting.control.tell(setting.session, {"gone": Wish("http://127.0.0.1:9/control", 3), "a": Wish(setting.url, 7)})

    assert setting.engine.told == [{"max_num_seqs": 7}]
    assert setting.metrics.registry.get_sample_value("sluice_engine_controls_total", {"node": "gone", "result": "failed"}) == 1


def state(name: str, url: str, size: int | None) -> NodeState:
    return NodeState(name, "m", Reading(), 1.0, control_url=url, standing=Standing(max_num_seqs=size))


def test_only_engines_with_an_address_and_a_figure_are_told() -> None:
    """Where rules have not spoken, or an engine has no such address, nobody is told anything."""
    control = EngineControl(ManualClock(), Metrics())
    control.see(View(1, nodes=(state("a", "http://a/control", 45), state("b", "", 45), state("c", "http://c/control", None))))

    assert control.wishes == {"a": Wish("http://a/control", 45)}
