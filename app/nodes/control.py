"""Telling engines their max_num_seqs, where one can take it: POST {"max_num_seqs": n} at engines[].control_url.

No widely used engine takes another batch size while it runs, so most have no such address, and the figure is only
published (GET /telemetry, sluice_engine_max_num_seqs). What an engine has taken is told again every REPEAT_S: one that
restarted begins with its own figure.

When down: an engine that does not take it keeps the figure it has; it is counted, said once, and tried again.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
import structlog

from app.clock import Clock
from app.observability.metrics import Metrics
from app.telemetry.scrape import open_session
from app.telemetry.trouble import Trouble
from app.telemetry.view import View

REPEAT_S = 5.0
TIMEOUT_S = 1.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Wish:
    """What one engine is to have."""

    url: str
    max_num_seqs: int


class EngineControl:
    """Keeps what each engine is to have, and tells it."""

    def __init__(self, clock: Clock, metrics: Metrics) -> None:
        self._clock = clock
        self._metrics = metrics
        self.wishes: dict[str, Wish] = {}
        """By node."""
        self._taken: dict[str, Wish] = {}
        self._troubles: dict[str, Trouble] = {}
        self._news = asyncio.Event()

    def see(self, view: View) -> None:
        """Take what rules leave of each node's batch; telling happens beside."""
        wishes = {
            state.node: Wish(state.control_url, state.standing.max_num_seqs)
            for state in view.nodes
            if state.control_url and state.standing.max_num_seqs is not None
        }
        if wishes != self.wishes:
            self.wishes = wishes
            self._news.set()

    async def follow(self) -> None:
        """Tell for ever: what is new at once, all of it every REPEAT_S."""
        async with open_session() as session:
            while True:
                try:
                    async with asyncio.timeout(REPEAT_S):
                        await self._news.wait()
                except TimeoutError:
                    self._taken.clear()
                self._news.clear()
                await self.tell(session, dict(self.wishes))

    async def tell(self, session: aiohttp.ClientSession, wishes: Mapping[str, Wish]) -> None:
        """Tell each engine that has not taken its wish yet, all of them beside each other."""
        self._taken = {node: wish for node, wish in self._taken.items() if wishes.get(node) == wish}
        self._troubles = {node: trouble for node, trouble in self._troubles.items() if node in wishes}
        await asyncio.gather(*(self._post(session, node, wish) for node, wish in wishes.items() if node not in self._taken))

    async def _post(self, session: aiohttp.ClientSession, node: str, wish: Wish) -> None:
        trouble = self._troubles.setdefault(node, Trouble(self._clock))
        try:
            async with (
                asyncio.timeout(TIMEOUT_S),
                session.post(wish.url, json={"max_num_seqs": wish.max_num_seqs}, allow_redirects=False) as answer,
            ):
                problem = None if answer.status < 300 else f"answered {answer.status}"
        except TimeoutError:
            problem = "timeout"
        except (aiohttp.ClientError, OSError) as error:
            problem = type(error).__name__
        if problem is None:
            self._taken[node] = wish
        if trouble.heard(problem):
            log.warning("engine.control_failed", node=node, problem=problem)
        self._metrics.engine_controls.labels(node, "failed" if problem else "taken").inc()
