"""The telemetry process: polls the engines and GPUs of a configuration file and answers snapshots by long polling.

GET /snapshot?after=GENERATION&wait_ms=N   the snapshot (wire.py has its shape) as soon as its generation is another than
                                           GENERATION, else the same one with fresh ages after N ms, 500 at most
GET /metrics                               our own metrics
GET /healthz                               200 while the process runs

When down: whoever follows it lets its last snapshot grow old; engines and GPUs are not asked by anybody else.
"""

import contextlib
import hmac
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import uvicorn
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.background import Background
from app.clock import Clock
from app.errors import BadRequest, ConfigError, SluiceError, Unauthorized
from app.observability.metrics import Metrics
from app.telemetry.board import Board
from app.telemetry.configuration import Configuration, changes
from app.telemetry.gpu_readings import GpuReadings
from app.telemetry.gpus import Gpus
from app.telemetry.poller import Poller
from app.telemetry.scrape import open_session
from app.telemetry.wire import encode

MOST_WAIT_MS = 500
"""Longest wait of one poll: a reader that hears nothing for longer knows that the process is gone."""
DRAIN_S = 2
"""Open polls end within MOST_WAIT_MS, so a stop needs less than this."""

Answer = Callable[[Request], Awaitable[Response]]


def build_app(file: Path, configuration: Configuration, *, clock: Clock, metrics: Metrics, token: str | None) -> Starlette:
    """The process's HTTP face; its lifespan polls engines and GPUs and follows the configuration file."""
    board = Board(clock)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with open_session() as session:
            timeout_ms = configuration.settings.telemetry.scrape_timeout_ms
            background = Background(clock, metrics)
            poller = Poller(board, session, background, clock=clock, metrics=metrics, scrape_timeout_ms=timeout_ms)
            gpus = Gpus(GpuReadings(board, session, clock=clock, metrics=metrics, scrape_timeout_ms=timeout_ms), background, clock)

            def configure(new: Configuration) -> None:
                poller.configure(new.engines, new.specs)
                gpus.configure(new.settings.gpus, new.engines)

            configure(configuration)
            background.start("configuration", lambda: _follow_file(file, configuration, board, configure, metrics))
            yield
            await background.stop()
            await gpus.close()

    async def snapshot(request: Request) -> Response:
        after, wait_ms = _number(request, "after"), min(_number(request, "wait_ms"), MOST_WAIT_MS)
        return Response(encode(await board.beyond(after, wait_ms)), media_type="application/json")

    async def own_metrics(request: Request) -> Response:
        metrics.snapshot_generation.set(board.generation)
        encoder, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encoder(metrics.registry), headers={"content-type": content_type})

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    routes = [
        Route("/snapshot", _guarded(snapshot, token)),
        Route("/metrics", _guarded(own_metrics, token)),
        Route("/healthz", healthz),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def run(file: Path, configuration: Configuration, listen: str, *, clock: Clock, metrics: Metrics, token: str | None) -> None:
    """Serve on `listen` (unix:/path or HOST:PORT) until SIGTERM. Raises ConfigError for a bad file or address."""
    served = build_app(file, configuration, clock=clock, metrics=metrics, token=token)
    config = uvicorn.Config(served, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=DRAIN_S)
    with _bind(listen) as listener:
        uvicorn.Server(config).run(sockets=[listener])


async def _follow_file(
    file: Path, configuration: Configuration, board: Board, configure: Callable[[Configuration], None], metrics: Metrics
) -> None:
    async for new, loads in changes(file, configuration, metrics):
        configure(new)
        board.report(loads)


def _bind(listen: str) -> socket.socket:
    """A listening socket; a unix one is for its owner alone and replaces what an earlier process left behind."""
    try:
        if listen.startswith("unix:"):
            path = Path(listen.removeprefix("unix:"))
            path.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(path))
            path.chmod(0o600)
        else:
            host, _, port = listen.rpartition(":")
            listener = socket.create_server((host.strip("[]"), int(port)), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, ValueError) as error:
        raise ConfigError(f"--listen {listen}: {error}", hint="Give unix:/path or HOST:PORT that is free.") from None
    return listener


def _guarded(answer: Answer, token: str | None) -> Answer:
    """`answer` for callers that know the token, where there is one."""

    async def guarded(request: Request) -> Response:
        try:
            if token is not None and not hmac.compare_digest(request.headers.get("authorization", "").encode(), f"Bearer {token}".encode()):
                raise Unauthorized("the telemetry token is missing or wrong", hint="Set telemetry.token to the same value on both sides.")
            return await answer(request)
        except SluiceError as error:
            return PlainTextResponse(f"{error.message}\n{error.advice}\n", error.status)

    return guarded


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "0")
    if not text.isdecimal() or len(text) > 15:
        raise BadRequest(f"{name}: expected a whole number", field=name)
    return int(text)
