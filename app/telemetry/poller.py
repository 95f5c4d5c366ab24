"""Polls every configured engine, each in a task of its own, and puts what it says on the board.

When down: an engine that answers late, badly or not at all keeps its last good readings, whose age grows, and carries
the problem; no other engine waits for it. Whoever reads the snapshot drops what is stale.
"""

import asyncio
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import aiohttp
import structlog

from app.background import Background
from app.catalog.models import ModelSpec
from app.clock import Clock
from app.observability.metrics import Metrics
from app.setting_sections import EngineSettings
from app.telemetry import llamacpp, sglang, tgi, triton, trtllm, vllm
from app.telemetry.board import Board
from app.telemetry.contact import Contact
from app.telemetry.exposition import PageBroken
from app.telemetry.history import History
from app.telemetry.names import Names
from app.telemetry.pace import Pace
from app.telemetry.pages import Pages
from app.telemetry.scrape import ScrapeFailed, fetch
from app.telemetry.snapshot import Node, Reading
from app.telemetry.view import SIGNAL_FIELDS, missing_signal

log = structlog.get_logger()


NAMES: Mapping[str, Names] = {
    "vllm": vllm.NAMES,
    "sglang": sglang.NAMES,
    "llamacpp": llamacpp.NAMES,
    "tgi": tgi.NAMES,
    "triton": triton.NAMES,
    "trtllm": trtllm.NAMES,
}
"""Whose page is read by which table, by EngineSettings.kind."""

GOLDEN = (math.sqrt(5) - 1) / 2
"""Share of a period between engines in order of their coming: however many there are, their scrapes are spread evenly over it.
All at once would keep a core busy for half of each period, and the last of them waiting."""

MISSING_HINT = "Where an engine of this kind does not tell a signal, leave it out of `signals` in the model spec."
NAMED = 10
"""Models of a page that a line of the log names."""


def names_on_page(models: Sequence[str], told: Collection[str]) -> dict[str, str]:
    """What the page calls each configured model that it tells; the others on it are nobody's.

    A page that tells one model tells it under its first name or its path, so it stands for every model configured for the
    engine: they are names of that one.
    """
    if len(told) == 1:
        (name,) = told
        return dict.fromkeys(models, name)
    return {model: model for model in models if model in told}


def _node(engine: EngineSettings) -> Node:
    """The node of which nothing is known yet but what the settings say."""
    return Node(
        engine.name,
        tuple(engine.models),
        gpus=tuple(engine.gpus),
        max_num_seqs=engine.max_num_seqs,
        control_url=engine.control_url,
        kind=engine.kind,
        steps=NAMES[engine.kind].steps,
    )


class Poller:
    """One piece of work per engine, all writing on one board. `configure` may be called again at any time."""

    def __init__(
        self,
        board: Board,
        session: aiohttp.ClientSession,
        background: Background,
        *,
        clock: Clock,
        metrics: Metrics,
        scrape_timeout_ms: float,
    ) -> None:
        self.board = board
        self._session = session
        self._background = background
        self._clock = clock
        self._metrics = metrics
        self._timeout_ms = scrape_timeout_ms
        self._engines: dict[str, EngineSettings] = {}
        self._contacts: dict[str, Contact] = {}
        self._specs: Mapping[str, ModelSpec] = {}
        self._begun = 0

    def configure(self, engines: Iterable[EngineSettings], specs: Mapping[str, ModelSpec]) -> None:
        """Poll exactly these engines; those that stay as they were are not disturbed."""
        wanted = {engine.name: engine for engine in engines}
        self._specs = specs
        for name in [name for name, engine in self._engines.items() if wanted.get(name) != engine]:
            self._background.end(f"poll {name}")
            del self._contacts[name]
            if name not in wanted:
                self.board.remove(name)
                for counted in (self._metrics.scrapes, self._metrics.readings_unknown):
                    counted.remove_by_labels({"node": name})
        for name, engine in wanted.items():
            if name not in self._contacts:
                self.board.put(_node(engine), None)
                self._contacts[name] = Contact(self._clock)
                self._begun += 1
                phase = self._begun * GOLDEN % 1
                self._background.start(f"poll {name}", partial(self._poll, engine, phase))
        self._engines = wanted

    async def _poll(self, engine: EngineSettings, phase: float) -> None:
        """Scrape for ever, one scrape in flight, the next one `poll_ms` after the start of the last or when that is over.

        The first is made at once, and the second after `phase` (0..1) of that time; a page that costs much makes it longer.
        """
        pages, history, pace = Pages(NAMES[engine.kind]), History(), Pace(engine.name, engine.poll_ms, self._clock, phase)
        while True:
            started_ms = self._clock.monotonic_ms()
            await self._scrape(engine, pages, history, pace)
            took_ms = self._clock.monotonic_ms() - started_ms
            self._metrics.scrape_seconds.observe(took_ms / 1000)
            await asyncio.sleep(pace.pause_ms(took_ms) / 1000)

    async def _scrape(self, engine: EngineSettings, pages: Pages, history: History, pace: Pace) -> None:
        started_ms = self._clock.monotonic_ms()
        try:
            raw = await fetch(self._session, engine.url.rstrip("/") + "/metrics", self._timeout_ms)
            with pace.reading():
                told = pages.told(raw.body, raw.content_type)
                names = names_on_page(engine.models, told)
                of_page = history.push({name: pages.reading(told[name]) for name in set(names.values())}, started_ms)
            readings = {model: of_page[name] for model, name in names.items()}
        except ScrapeFailed as error:
            self._bad(engine, error.problem, str(error))
        except PageBroken as error:
            self._bad(engine, "parse", error.message)
        except Exception as error:  # noqa: BLE001 - whatever an answer provokes, this engine is asked again
            self._bad(engine, "parse", repr(error))
        else:
            self._good(engine, readings, told, started_ms)

    def _bad(self, engine: EngineSettings, problem: str, detail: str) -> None:
        node = self.board.node(engine.name)
        if self._contacts[engine.name].unheard(problem):
            log.warning("scrape.failed", node=engine.name, problem=problem, detail=detail)
        self.board.put(replace(node, problem=problem), None)
        self._metrics.scrapes.labels(engine.name, problem).inc()

    def _good(self, engine: EngineSettings, readings: Mapping[str, Reading], told: Collection[str], started_ms: float) -> None:
        missing = [(model, self._missing(model, readings)) for model in engine.models]
        problem = next((f"missing:{signal}" for _, signal in missing if signal), None)
        if self._contacts[engine.name].heard(problem):
            on_page = sorted(told)[:NAMED]
            log.warning("scrape.missing", node=engine.name, problem=problem, models=engine.models, told=on_page, hint=MISSING_HINT)
        # The age counts from the moment of asking: the engine may have written its page at any time since.
        self.board.put(replace(_node(engine), readings=readings, problem=problem), started_ms)
        self._metrics.scrapes.labels(engine.name, "missing" if problem else "ok").inc()
        for model in engine.models:
            self._count_unknown(engine.name, model, readings.get(model, Reading()))

    def _missing(self, model: str, readings: Mapping[str, Reading]) -> str | None:
        spec = self._specs.get(model)
        return missing_signal(readings.get(model), spec) if spec else None

    def _count_unknown(self, node: str, model: str, reading: Reading) -> None:
        for signal in self._specs[model].signals if model in self._specs else ():
            if getattr(reading, SIGNAL_FIELDS[signal]) is None:
                self._metrics.readings_unknown.labels(node, signal).inc()
