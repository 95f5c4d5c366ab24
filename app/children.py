"""The programs that serve starts when it listens, and keeps: the log's process, OPA, the telemetry process, stand-in engines.

A run that makes reports is a child, too, each time one is due.
When down: one that dies is started again with growing pauses; what its absence means is said by the room that talks to it.
"""

import asyncio
import contextlib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import structlog

from app import garbage
from app.api.status import Health
from app.clock import Clock
from app.errors import ConfigError
from app.examples import announce
from app.folders import private_dir
from app.main import Service
from app.observability.metrics import Metrics
from app.policy.embedded import start_opa
from app.processes import Kept, Launcher
from app.report_timer import ReportTimer
from app.reports.nights.night import Night
from app.reports.shelf.due import not_scheduled, time_of
from app.setting_sections import EMBEDDED, EngineSettings
from app.settings import Settings
from app.wiring import Surroundings

FEEDERS_STOP_S = 1.0
"""Of those that serve listens to. Each needs some milliseconds."""
POLICY_TIMEOUT_S = 10.0
"""OPA loads a bundle in milliseconds; past this the log says what is wrong, and /readyz stays 503."""
WELL_TIMEOUT_S = 5.0
"""Children that we started need one or two; engines elsewhere may be down for as long as they like."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Children:
    """The children that start when we listen: the log's process, OPA, the telemetry process, stand-in engines."""

    settings: Settings
    file: Path
    overrides: tuple[str, ...]
    var: Path
    launcher: Launcher
    clock: Clock
    metrics: Metrics
    around: Surroundings
    own_url: str
    started: list[Kept] = field(default_factory=list)

    async def start(self, service: Service) -> None:
        """Start what is ours to start, beside each other, and say that we are ready."""
        stand_ins = [self._stand_in(engine) for engine in self.settings.engines if engine.stand_in]
        await asyncio.gather(self._log(), self._opa(service), self._telemetry(), *stand_ins)
        await _all_well(service.health)
        garbage.settle()
        announce(self.own_url, self.var, self.settings.engines, embedded=self.settings.database.url == EMBEDDED)
        self._reports(service)

    async def stop(self) -> None:
        """Stop them again, before our socket closes and the database ends: both would only be missed in the log."""
        await asyncio.gather(*(child.stop(FEEDERS_STOP_S) for child in self.started))

    async def _opa(self, service: Service) -> None:
        if self.settings.opa.url == EMBEDDED:
            opa = await start_opa(
                self.launcher,
                self.metrics,
                binary=self.around.opa_binary,
                sockets=private_dir(self.var),
                persist=self.var / "opa",
                bundle_url=self.own_url,
                token=self.around.opa_token,
            )
            self.started.append(opa)
        await _first_policy(service)

    async def _telemetry(self) -> None:
        if self.settings.telemetry.url == EMBEDDED:
            arguments = _sluice("telemetry", *self._configuration, "--listen", self.around.telemetry)
            self.started.append(await self.launcher.keep("telemetry", arguments))

    async def _log(self) -> None:
        """The log's process. It ends when nobody writes any more, with the launcher, so that its last checkpoint has every entry."""
        if self.settings.database.url != EMBEDDED:
            return
        if self.settings.audit.passphrase.startswith("fd:"):
            raise ConfigError(
                "audit.passphrase: a descriptor is read once, but serve starts the log's process again when it dies",
                hint="Set it to file:PATH of a file outside of --var.",
                field="audit.passphrase",
            )
        await self.launcher.keep("audit", _sluice("audit", "run", *self._configuration, "--var", self.var))

    def _reports(self, service: Service) -> None:
        """Have the nightly reports made, each run by a child of its own, which opens the keys; ends with the service's background."""
        at = time_of(self.settings.report.at)
        if at is None:
            return
        if why := not_scheduled(self.settings):
            log.warning("reports.not_scheduled", why=why, hint="Set it to file:PATH; or report.at to off, where something else makes them.")
            return

        async def run(newest: Night) -> None:
            arguments = _sluice("report", "nightly", *self._configuration, "--var", self.var, "--until", newest.day)
            await self.launcher.run("report", arguments, stop_s=FEEDERS_STOP_S)

        timer = ReportTimer(self.settings.report.zone, at, service.missing_reports, run, self.clock, self.metrics)
        service.background.start("report timer", timer.keep)

    @property
    def _configuration(self) -> list[object]:
        """Options that give a child our settings; its lines become ours, in our format."""
        overrides = (*self.overrides, "log_format=json")
        return ["--config", self.file, *(part for override in overrides for part in ("--set", override))]

    async def _stand_in(self, engine: EngineSettings) -> None:
        port = urlsplit(engine.url).port or 80
        models = [part for model in engine.models for part in ("--model", model)]
        options = ["--port", port, "--kind", engine.kind, "--max-num-seqs", engine.max_num_seqs]
        self.started.append(await self.launcher.keep(engine.name, _sluice("engine", *options, *models)))


async def _first_policy(service: Service) -> None:
    """Offer the first bundle and wait until OPA runs it. Without any we stay up but unready, until the folder is corrected."""
    await service.loader.begin()
    if service.loader.state.offered is None:
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(POLICY_TIMEOUT_S):
            while service.loader.state.in_force is None:  # noqa: ASYNC110 - OPA's next poll tells, and has no event
                await asyncio.sleep(0.01)


async def _all_well(health: Health) -> None:
    """Wait until every part is well, but not for long: what is missing then is named in the log and by /readyz."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(WELL_TIMEOUT_S):
            while not all(part["ok"] for part in (await health.report())[1]["parts"].values()):  # noqa: ASYNC110 - parts have no event
                await asyncio.sleep(0.02)
    for name, part in (await health.report())[1]["parts"].items():
        if not part["ok"]:
            log.warning("started without a part", part=name, detail=part["detail"])


def _sluice(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "app.cli", *map(str, arguments)]
