"""Telling engines their max_num_seqs: one post at a time each, again where it changed or after a while, and nobody waits for another."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.nodes import control
from app.nodes.control import EngineControl, Wish
from app.observability.metrics import Metrics
from app.telemetry.snapshot import Reading
from app.telemetry.view import NodeState, Standing, View
from tests.fixtures.engine import serving
from tests.fixtures.waiting import until

HUGE_BYTES = 1 << 30
CHUNK = b"x" * (1 << 16)


class Engine:
    """Answers with `status`, once `answers` is set, at /control. Keeps what it was told."""

    def __init__(self) -> None:
        self.status, self.answers = 200, asyncio.Event()
        self.answers.set()
        self.told: list[int] = []
        self.inside = self.most_inside = 0

    async def control(self, request: Request) -> Response:
        self.told.append((await request.json())["max_num_seqs"])
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        try:
            await self.answers.wait()
        finally:
            self.inside -= 1
        return Response(status_code=self.status, headers={"location": "/elsewhere"})

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[Route("/control", self.control, methods=["POST"])])


def state(name: str, url: str, size: int | None) -> NodeState:
    return NodeState(name, "m", Reading(), 1.0, control_url=url, standing=Standing(max_num_seqs=size))


class Setting:
    """Two engines, and what tells them."""

    def __init__(self) -> None:
        self.a, self.b, self.metrics = Engine(), Engine(), Metrics()
        self.control = EngineControl(self.metrics)
        self.urls: dict[str, str] = {}

    def see(self, **sizes: int) -> None:
        """Each engine named is to have this."""
        self.control.see(View(1, nodes=tuple(state(name, self.urls[name], size) for name, size in sizes.items())))

    def counted(self, node: str, result: str) -> float:
        return self.metrics.registry.get_sample_value("sluice_engine_controls_total", {"node": node, "result": result}) or 0

    def tasks(self) -> int:
        return sum(task.get_name().startswith("control of ") for task in asyncio.all_tasks())


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    one = Setting()
    async with serving(one.a.app) as a, serving(one.b.app) as b:
        one.urls = {"a": f"{a}/control", "b": f"{b}/control", "gone": "http://127.0.0.1:9/control"}
        following = asyncio.create_task(one.control.follow())
        yield one
        following.cancel()
        await asyncio.wait([following])
        assert following.cancelled()
        assert one.tasks() == 0
        one.a.answers.set()
        one.b.answers.set()


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is told again after 50 ms."""
    monkeypatch.setattr(control, "REPEAT_S", 0.05)


async def test_an_engine_is_told_once_until_it_changes(setting: Setting) -> None:
    """The same wish in the next view is no news; another one is told."""
    setting.see(a=45)
    await until(lambda: setting.counted("a", "taken") == 1)
    setting.see(a=45)
    setting.see(a=44)
    await until(lambda: setting.counted("a", "taken") == 2)

    assert setting.a.told == [45, 44]


@pytest.mark.usefixtures("often")
async def test_what_was_taken_is_told_again_after_a_while(setting: Setting) -> None:
    """An engine may have restarted with its own figure; that another one changes all the time keeps nobody from hearing."""
    setting.see(a=45, b=1)

    def repeated() -> bool:
        setting.see(a=45, b=1 + len(setting.a.told))
        return setting.a.told[:3] == [45, 45, 45]

    await until(repeated)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("status", [302, 404, 500])
async def test_what_was_not_taken_is_told_again(setting: Setting, status: int) -> None:
    """An engine that refuses keeps its figure, is counted, and hears it again; a redirect is not followed."""
    setting.a.status = status
    setting.see(a=45)
    await until(lambda: setting.counted("a", "failed") >= 2)
    setting.a.status = 200
    await until(lambda: setting.counted("a", "taken") >= 1)

    assert set(setting.a.told) == {45}


async def test_an_engine_that_hangs_delays_nobody(setting: Setting) -> None:
    """While the first post to one engine is unanswered, another hears of one change after the other, as fast as without it."""
    setting.a.answers.clear()
    setting.see(a=45, b=1)
    await until(lambda: setting.a.told == [45])

    waited_s = []
    for size in range(2, 7):
        setting.see(a=45, b=size)
        waited_s.append(await until(heard(setting.b, size)))

    assert (setting.a.told, setting.a.inside) == ([45], 1)
    assert sorted(waited_s)[2] < 0.15


def heard(engine: Engine, size: int) -> Callable[[], bool]:
    return lambda: engine.told[-1:] == [size]


async def test_what_changed_under_way_is_told_right_after(setting: Setting) -> None:
    """An engine that hangs has one post in flight and one task; then it hears the newest wish, and none of those between."""
    setting.a.answers.clear()
    setting.see(a=45)
    await until(lambda: setting.a.told == [45])
    for size in range(44, 34, -1):
        setting.see(a=size)
    assert setting.tasks() == 1
    setting.a.answers.set()
    await until(lambda: setting.counted("a", "taken") == 2)

    assert setting.a.told == [45, 35]
    assert setting.a.most_inside == 1


async def test_an_engine_that_never_answers_has_failed(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for no longer than the time limit, and is told anew as soon as there is something else to tell."""
    monkeypatch.setattr(control, "TIMEOUT_S", 0.05)
    setting.a.answers.clear()
    setting.see(a=45)
    await until(lambda: setting.counted("a", "failed") == 1)
    setting.see(a=44)
    await until(lambda: setting.counted("a", "failed") == 2)

    assert setting.a.told == [45, 44]


async def test_nothing_of_a_huge_answer_is_read(setting: Setting) -> None:
    """An answer of a gigabyte counts by its status, and is cut off within what the buffers of both sides hold."""
    sent: list[int] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % HUGE_BYTES)
        sent_bytes = 0
        with contextlib.suppress(ConnectionError):
            while sent_bytes < HUGE_BYTES:
                writer.write(CHUNK)
                await writer.drain()
                sent_bytes += len(CHUNK)
        sent.append(sent_bytes)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        setting.urls["huge"] = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/control"
        setting.see(huge=45)
        await until(lambda: setting.counted("huge", "taken") == 1 and sent)

    assert sent[0] < HUGE_BYTES / 50


async def test_an_engine_that_is_gone_hinders_nobody(setting: Setting) -> None:
    """Nobody listens at the address: it is counted, and the other engine hears its figure."""
    setting.see(gone=3, a=7)
    await until(lambda: setting.counted("gone", "failed") == 1 and setting.counted("a", "taken") == 1)

    assert setting.a.told == [7]


async def test_who_is_to_have_nothing_any_more_is_told_nothing(setting: Setting) -> None:
    """The task of an engine ends with its wish, and begins anew with the next."""
    setting.see(a=45, b=1)
    await until(lambda: setting.tasks() == 2)
    setting.see(b=1)
    await until(lambda: setting.tasks() == 1)
    setting.see(a=44, b=1)
    await until(lambda: setting.a.told == [45, 44])

    assert setting.b.told == [1]


def test_only_engines_with_an_address_and_a_figure_are_told() -> None:
    """Where rules have not spoken, or an engine has no such address, nobody is told anything."""
    control = EngineControl(Metrics())
    control.see(View(1, nodes=(state("a", "http://a/control", 45), state("b", "", 45), state("c", "http://c/control", None))))

    assert control.wishes == {"a": Wish("http://a/control", 45)}
