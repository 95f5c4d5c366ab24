"""Reads device memory: GPUs of this machine by NVML, or else by nvidia-smi, and those of others by DCGM exporters.

Of a GPU that several tell, NVML is believed first, then nvidia-smi, then the exporters in their order.
When down: a source that says it cannot tell makes its GPUs unknown, and one that does not answer lets their figures grow
old; the others go on. Rules then have the engines' own readings alone.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence

import aiohttp
import structlog

from app.clock import Clock
from app.observability.metrics import Metrics
from app.setting_sections import EngineSettings, GpuSettings
from app.telemetry.blocking import Blocking
from app.telemetry.board import Board
from app.telemetry.contact import FIRST_CONTACT_MS, Reminder
from app.telemetry.dcgm import DCGM, DcgmPages
from app.telemetry.device_memory import OTHER, SourceDown
from app.telemetry.exposition import PageBroken
from app.telemetry.gpu_table import GpuTable
from app.telemetry.nvidia_smi import DEADLINE_S, NVIDIA_SMI, NvidiaSmi
from app.telemetry.nvml import NVML, Nvml
from app.telemetry.scrape import ScrapeFailed, fetch, place
from app.telemetry.snapshot import Gpu

NVML_TIMEOUT_S = 2.0
"""A reading takes milliseconds, the first one, which wakes the driver, up to a second or two."""
SMI_TIMEOUT_S = DEADLINE_S + 1.0
"""It ends itself at its deadline; this is for one that cannot even be killed."""
ABSENT = frozenset(["no_library", "no_driver", "no_program"])
"""What a machine without GPUs says: trouble only where it worked before."""

Read = Callable[[], tuple[Gpu, ...] | None]

log = structlog.get_logger()


class GpuReadings:
    """Asks each source once when told to, and keeps the board, the metrics and the log up to date."""

    def __init__(
        self,
        board: Board,
        session: aiohttp.ClientSession,
        *,
        clock: Clock,
        metrics: Metrics,
        scrape_timeout_ms: float,
        nvidia_smi: NvidiaSmi | None = None,
    ) -> None:
        self._board = board
        self._session = session
        self._clock = clock
        self._metrics = metrics
        self._timeout_ms = scrape_timeout_ms
        self._nvml = Nvml(clock)
        self._nvidia_smi = nvidia_smi or NvidiaSmi(clock)
        self._blocking = {name: Blocking(name) for name in (NVML, NVIDIA_SMI)}
        self._worked: set[str] = set()
        self._table = GpuTable()
        self._reminder = Reminder(clock)
        self._settings = GpuSettings()
        self._states: dict[str, str] = {}
        self._introduced = False
        self._named: dict[str, str] = {}
        self._missed: set[str] = set()
        self._configured_ms = clock.monotonic_ms()
        self._measured: set[str] = set()

    def configure(self, settings: GpuSettings, engines: Iterable[EngineSettings]) -> None:
        """Ask these sources, and know which engines name which GPUs."""
        self._settings = settings
        self._named = {gpu: engine.name for engine in engines for gpu in engine.gpus}
        self._configured_ms = self._clock.monotonic_ms()
        for url in set(self._table.order) - {NVML, NVIDIA_SMI, *settings.dcgm}:
            self._table.drop(url)
        self._table.order = (NVML, NVIDIA_SMI, *settings.dcgm)

    async def close(self) -> None:
        """Let NVML go."""
        with contextlib.suppress(TimeoutError):  # it hangs, and does not keep the process
            await self._blocking[NVML].call(self._nvml.close, NVML_TIMEOUT_S)

    async def read(self) -> None:
        """Ask this machine once: nvidia-smi only where NVML does not tell."""
        works = False
        if self._settings.nvml == "off":
            self._table.drop(NVML)
        else:
            works = await self._ask(NVML, self._nvml.read, NVML_TIMEOUT_S)
        if works or self._settings.nvidia_smi == "off":
            self._table.drop(NVIDIA_SMI)
        else:
            await self._ask(NVIDIA_SMI, self._nvidia_smi.read, SMI_TIMEOUT_S)
        if not self._introduced:
            self._introduced = True
            asked = {source: self._states[source] for source in (NVML, NVIDIA_SMI) if source in self._states}
            log.info("gpus.sources", **asked, dcgm=[place(url) for url in self._settings.dcgm])
        self._publish()

    async def scrape(self, url: str, pages: DcgmPages) -> None:
        """Ask one exporter once."""
        started_ms = self._clock.monotonic_ms()
        try:
            raw = await fetch(self._session, url.rstrip("/") + "/metrics", self._timeout_ms)
            gpus = pages.read(raw.body, raw.content_type)
        except ScrapeFailed as error:
            self._late(url, error.problem, str(error))
        except PageBroken as error:
            self._late(url, "parse", error.message)
        except Exception as error:  # noqa: BLE001 - whatever an answer provokes, this exporter is asked again
            self._late(url, OTHER, repr(error))
        else:
            self._tell(url, gpus, started_ms)
        self._publish()

    async def _ask(self, source: str, read: Read, timeout_s: float) -> bool:
        """Whether the source told its GPUs, in time."""
        started_ms = self._clock.monotonic_ms()
        try:
            gpus = await self._blocking[source].call(read, timeout_s)
        except TimeoutError as error:
            self._late(source, "timeout", str(error) or f"no answer in {timeout_s:g} s")
        except SourceDown as error:
            self._fail(source, error.problem, str(error))
        except Exception as error:  # noqa: BLE001 - whatever a library or program answers, it is asked again
            self._fail(source, OTHER, repr(error))
        else:
            if gpus is not None:
                self._tell(source, gpus, started_ms)
            return gpus is not None
        return False

    def _tell(self, source: str, gpus: Sequence[Gpu], taken_ms: float) -> None:
        self._states[source] = f"{len(gpus)} GPUs"
        self._worked.add(source)
        self._table.tell(source, gpus, taken_ms=taken_ms, now_ms=self._clock.monotonic_ms())
        for problem in sorted({gpu.problem for gpu in gpus if gpu.problem}):
            ids = [gpu.id for gpu in gpus if gpu.problem == problem]
            self._count(source, problem, len(ids), gpus=ids)

    def _fail(self, source: str, problem: str, detail: str) -> None:
        self._states[source] = problem
        self._table.fail(source, problem, now_ms=self._clock.monotonic_ms())
        if problem not in ABSENT or source in self._worked:
            self._count(source, problem, detail=detail)

    def _late(self, source: str, problem: str, detail: str) -> None:
        self._states[source] = problem
        self._table.late(source, problem)
        self._count(source, problem, detail=detail)

    def _count(self, source: str, problem: str, times: int = 1, **detail: object) -> None:
        kind, where = (source, {}) if source in self._blocking else (DCGM, {"exporter": place(source)})
        self._metrics.gpu_errors.labels(kind, problem).inc(times)
        if self._reminder.due(source, problem):
            log.warning("gpus.unknown", source=kind, problem=problem, **where, **detail)

    def _publish(self) -> None:
        gpus = self._table.gpus()
        missing = self._missing({gpu.id for gpu in gpus})
        self._board.put_gpus([*gpus, *(Gpu(gpu, problem="not_reported") for gpu in missing)], self._table.taken_ms())
        ratios = {self._metrics.gpu(gpu.id): gpu.memory_ratio for gpu in gpus if gpu.memory_ratio is not None and gpu.problem is None}
        for gone in self._measured - ratios.keys():
            self._metrics.gpu_memory.remove(gone)
        for gpu, ratio in ratios.items():
            self._metrics.gpu_memory.labels(gpu).set(ratio)
        self._measured = set(ratios)

    def _missing(self, known: set[str]) -> set[str]:
        """GPUs that an engine names and nobody reports, when all sources had time to; a warning once of each."""
        if self._clock.monotonic_ms() - self._configured_ms < FIRST_CONTACT_MS:
            return set()
        missing = self._named.keys() - known
        if new := sorted(missing - self._missed):
            engines = sorted({self._named[gpu] for gpu in new})
            log.warning(
                "gpus.not_reported",
                gpus=new,
                engines=engines,
                hint="Look for gpus.unknown in this log, correct engines[].gpus, or add the exporter to gpus.dcgm.",
            )
        self._missed = missing
        return missing
