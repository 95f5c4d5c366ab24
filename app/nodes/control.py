"""Telling engines their max_num_seqs, where one can take it: POST {"max_num_seqs": n} at engines[].control_url.

No widely used engine takes another batch size while it runs, so most have no such address, and the figure is only
published (GET /telemetry, sluice_engine_max_num_seqs). Each engine is told by a task of its own, so that one that hangs
delays nobody: at once, right after a change, and again every REPEAT_S, since one that restarted begins with its own figure.

When down: an engine that does not take it keeps the figure it has; it is counted, said once, and tried again.
"""

import asyncio
import contextlib
from dataclasses import dataclass

import aiohttp
import structlog

from app.observability.metrics import Metrics
from app.telemetry.scrape import open_session
from app.telemetry.view import View
from app.trouble import Trouble

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

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.wishes: dict[str, Wish] = {}
        """By node."""
        self._changed: dict[str, asyncio.Event] = {}
        """By node that a task tells: whether its wish changed since it was told last."""
        self._new = asyncio.Event()

    def see(self, view: View) -> None:
        """Take what rules leave of each node's batch; telling happens beside."""
        wishes = {
            state.node: Wish(state.control_url, state.standing.max_num_seqs)
            for state in view.nodes
            if state.control_url and state.standing.max_num_seqs is not None
        }
        if wishes == self.wishes:
            return
        before, self.wishes = self.wishes, wishes
        for node, changed in self._changed.items():
            if wishes.get(node) != before.get(node):
                changed.set()
        self._new.set()

    async def follow(self) -> None:
        """Tell for ever, by one task for each engine that is to have something."""
        self._changed = {}
        async with open_session(force_close=True) as session, asyncio.TaskGroup() as tasks:
            while True:
                self._new.clear()
                for node in self.wishes.keys() - self._changed.keys():
                    self._changed[node] = asyncio.Event()
                    tasks.create_task(self._tell(session, node), name=f"control of {node}")
                await self._new.wait()

    async def _tell(self, session: aiohttp.ClientSession, node: str) -> None:
        """Tell one engine, one post at a time, for as long as it is to have something."""
        trouble, changed = Trouble(), self._changed[node]
        while wish := self.wishes.get(node):
            changed.clear()
            problem = await _post(session, wish)
            if problem is None:
                trouble.over()
            elif trouble.is_news(problem):
                log.warning("engine.control_failed", node=node, problem=problem)
            self._metrics.engine_controls.labels(node, "failed" if problem else "taken").inc()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REPEAT_S):
                    await changed.wait()
        del self._changed[node]


async def _post(session: aiohttp.ClientSession, wish: Wish) -> str | None:
    """Why the engine did not take it; None: it did. Of the answer only the status is read, however large it is."""
    try:
        async with (
            asyncio.timeout(TIMEOUT_S),
            session.post(wish.url, json={"max_num_seqs": wish.max_num_seqs}, allow_redirects=False) as answer,
        ):
            return None if answer.status < 300 else f"answered {answer.status}"
    except TimeoutError:
        return "timeout"
    except (aiohttp.ClientError, OSError) as error:
        return type(error).__name__
