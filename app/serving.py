"""One running replica: its children, the HTTP server, and an orderly end.

Order matters: PostgreSQL before the schema, the schema before the first key, our socket before the OPA that loads its
bundle from it. At the end callers are told first, connections are drained then, the log is signed, and PostgreSQL goes last.
"""

import asyncio
import functools
import os
import secrets
import signal
import socket
from pathlib import Path
from types import FrameType
from typing import cast

import structlog
import uvicorn

from app import private_files
from app.access import secrets_folder
from app.api.protocol import Connection, look_at
from app.children import Children
from app.clock import Clock, SystemClock
from app.database import DatabaseUrls, external_urls
from app.errors import ConfigError
from app.examples import lay_down_keys, seed_tenants
from app.folders import SERVE_LOCK, FolderLock, private_dir, remove_private_dir
from app.listener import listen, own_url
from app.main import Service, build
from app.observability.metrics import Metrics
from app.policy.embedded import opa_url
from app.policy.program import find_opa
from app.postgres import EmbeddedPostgres
from app.processes import Launcher
from app.reports.shelf.shelf import REPORT_KEYS, shelf_folder
from app.schema import migrate
from app.setting_sections import EMBEDDED
from app.settings import Settings
from app.signing.key_files import root_file
from app.telemetry.configuration import token_of
from app.wiring import Surroundings

LINGER_S = 1.0
"""How long every decision is answered `draining` before connections end: who rests between two calls hears it, too."""
DRAIN_S = 1
DATABASE_STOP_S = 3.0
"""Then the children that serve listens to (FEEDERS_STOP_S), open requests, and the log's process with the database. Each needs some
milliseconds; where all of them hang, the whole still ends within 10 s, the last transactions and the least time of each child included."""
KEEP_ALIVE_S = 75
"""Longer than gateways keep idle connections, so that it is never us who closes one that is about to be used."""

log = structlog.get_logger()


async def serve_until_stopped(settings: Settings, file: Path, var: Path, overrides: tuple[str, ...] = ()) -> None:
    """Run until SIGTERM or SIGINT. Raises ConfigError, ChildFailed and DependencyDown where a part can't start."""
    clock, metrics = SystemClock(), Metrics()
    lock = FolderLock(var / SERVE_LOCK)
    lock.acquire()
    launcher = Launcher(clock)
    listener = listen(settings.listen)
    lock.note(settings.listen)
    try:
        around = await _surroundings(settings, var, launcher)
        service = build(settings, around, clock, metrics)
        await service.registry.load()
        await service.approvals.load()
        await service.keys.load()
        await service.people.check()
        if settings.database.url == EMBEDDED:
            await seed_tenants(service.registry)
            await lay_down_keys(service.keys, var)
        children = Children(settings, file, overrides, var, launcher, clock, metrics, around, own_url(listener))
        await _Server(service, children, clock).serve_on(listener)
    finally:
        listener.close()
        await launcher.stop_all(DATABASE_STOP_S)
        lock.release()
        log.info("stopped")


async def _surroundings(settings: Settings, var: Path, launcher: Launcher) -> Surroundings:
    secrets_dir = secrets_folder(settings, var)
    sockets = private_dir(var)
    launcher.afterwards(lambda: remove_private_dir(var))
    urls = await _database(settings, var, launcher, secrets_dir)
    embedded_opa, embedded_telemetry = settings.opa.url == EMBEDDED, settings.telemetry.url == EMBEDDED
    return Surroundings(
        urls=urls,
        opa_url=opa_url(sockets) if embedded_opa else settings.opa.url,
        opa_binary=find_opa(settings.opa.binary),
        opa_token=secrets.token_urlsafe(32) if embedded_opa else _kept_token(secrets_dir / "opa-bundle.token"),
        opa_cores=os.cpu_count() or 1,
        telemetry=f"unix:{sockets / 'telemetry.sock'}" if embedded_telemetry else settings.telemetry.url,
        telemetry_token=token_of(settings),
        secrets=secrets_dir,
        last_good=var / "policy" / "last-good",
        waiting=var / "audit" / "waiting.json",
        reports=shelf_folder(settings.report.path, var),
        report_root=root_file(Path(settings.report.keys or var / REPORT_KEYS)),
    )


async def _database(settings: Settings, var: Path, launcher: Launcher, secrets_dir: Path) -> DatabaseUrls:
    if settings.database.url == EMBEDDED:
        postgres = EmbeddedPostgres(var, launcher, secrets_dir)
        await postgres.start()
        urls = postgres.urls
    else:
        urls = external_urls(settings.database)
    await migrate(urls.owner)
    return urls


def _kept_token(path: Path) -> str:
    """The token with which an OPA of the operator's own loads our bundle, made once. Raises ConfigError."""
    token = private_files.write_once(path, secrets.token_urlsafe(32).encode()).decode("ascii", "replace").strip()
    if not token:
        raise ConfigError(f"{path}: empty, so that anybody could load the rules", hint="Remove it; the next start makes a new token.")
    return token


class _Server(uvicorn.Server):
    """uvicorn, with our start and our end: children after the socket, draining before the connections close."""

    def __init__(self, service: Service, children: Children, clock: Clock) -> None:
        super().__init__(
            uvicorn.Config(
                service.app,
                http=cast("type[asyncio.Protocol]", functools.partial(Connection, children.metrics)),  # only ever called
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # whoever calls could write them, and they would stand in the log
                lifespan="on",
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=DRAIN_S,
            )
        )
        self._service = service
        self._children = children
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._draining = False

    async def serve_on(self, listener: socket.socket) -> None:
        """Serve until a signal. Raises what kept a child from starting."""
        await self.serve(sockets=[listener])
        if self.force_exit:
            await self.lifespan.shutdown()  # uvicorn leaves it out then, and our tasks end in it
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._failure is not None:
            raise self._failure

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then start what needs our socket."""
        await super().startup(sockets)
        task = asyncio.create_task(self._children.start(self._service))
        self._tasks.add(task)
        task.add_done_callback(self._started)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second; every tenth time the library does its own slow work, too."""
        if counter % 10 == 0:
            look_at(self.server_state.connections, self._clock.monotonic_ms())
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the library's signature
        """First signal: drain and end in order. Second: end at once. Neither is raised again: our children still need us.

        It interrupts whatever runs. Where that is the writing of a log line, to write another here would wait for it for ever.
        """
        if self._draining:
            self.should_exit = self.force_exit = True
            return
        self._loop.call_soon_threadsafe(self._stopping, signal.Signals(sig).name)

    def _stopping(self, name: str) -> None:
        if not self._draining:
            log.info("stopping", signal=name)
            self._drain()

    def _drain(self) -> None:
        self._draining = True
        task = asyncio.create_task(self._drain_and_stop())
        self._tasks.add(task)
        task.add_done_callback(self._drained)

    async def _drain_and_stop(self) -> None:
        await self._service.drain()
        await asyncio.sleep(LINGER_S)
        await asyncio.gather(self._service.close(), self._children.stop())

    def _drained(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.should_exit = True

    def _started(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._failure = failure
            self._drain()
