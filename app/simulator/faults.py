"""Faults on demand, so that a test or a demo can make the stand-in engine misbehave and recover.

slow      each answer comes `delay_ms` later
frozen    the whole process hangs: connections are accepted, nothing is answered, no step is made
dead      the page and /health go on, but no step is made: gauges and counters stay, requests are accepted and get no token
stuck     all requests are dropped and the page keeps its last gauges, as a real vLLM's does after aborts: only a step sets them,
          and only a new request brings a step, with which the fault ends. Gauges forced before stay as long
nan       KV and the queue read NaN
error500  every answer is a 500
html      the page is a web page with status 200
restart   requests and counters are lost at once, and the engine goes on
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.simulator import fields
from app.simulator.readings import Gauges

Mode = Literal["none", "slow", "frozen", "dead", "stuck", "nan", "error500", "html", "restart"]
STILL: tuple[Mode, ...] = ("frozen", "dead")
"""Under these the engine makes no step."""
UNTOUCHED_PATHS = ("/faults", "/load", "/dcgm/metrics")
"""Never affected by a fault: otherwise nobody could end it, and the exporter of the card is a process of its own."""
MAX_DELAY_MS = 60_000


@dataclass(frozen=True, slots=True)
class Fault:
    """The fault in force. `delay_ms` is what `slow` adds before each answer."""

    mode: Mode = "none"
    delay_ms: float = 300.0

    @classmethod
    def of(cls, document: dict[str, Any]) -> "Fault":
        """A fault from a JSON body. Raises ValueError naming the field."""
        fields.only(("mode", "delay_ms"), document)
        mode: Mode | None = document.get("mode")
        if mode is None or mode not in get_args(Mode):
            raise ValueError(f"mode: expected one of {', '.join(get_args(Mode))}")
        return cls(mode, fields.number(document, "delay_ms", cls().delay_ms, MAX_DELAY_MS))


@dataclass(frozen=True, slots=True)
class Load:
    """Gauges forced to a value, whatever the scheduler holds; None: what it holds."""

    kv_ratio: float | None = None
    waiting: float | None = None
    running: float | None = None

    @classmethod
    def of(cls, document: dict[str, Any]) -> "Load":
        """A load from a JSON body; an empty one ends the forcing. Raises ValueError naming the field."""
        fields.only(("kv_ratio", "waiting", "running"), document)
        return cls(
            kv_ratio=fields.number(document, "kv_ratio", None, 1.0),
            waiting=fields.number(document, "waiting", None, 1e9),
            running=fields.number(document, "running", None, 1e9),
        )

    def over(self, measured: Gauges) -> Gauges:
        """`measured` with the forced values laid over it."""
        forced = {"kv_ratio": self.kv_ratio, "waiting": self.waiting, "running": self.running}
        return replace(measured, **{name: value for name, value in forced.items() if value is not None})


def spoil(gauges: Gauges, fault: Fault) -> Gauges:
    """Gauges as the page shows them under `fault`."""
    return replace(gauges, kv_ratio=math.nan, waiting=math.nan) if fault.mode == "nan" else gauges


class FaultSwitch:
    """The fault in force, and a way to wait until it is another."""

    def __init__(self) -> None:
        self.current = Fault()
        self._changed = asyncio.Event()

    def set(self, fault: Fault) -> None:
        """Put `fault` in force; what waited for the end of the one before goes on under it."""
        self.current = fault
        self._changed.set()
        self._changed = asyncio.Event()

    async def left(self, *modes: Mode) -> None:
        """Returns once the fault is none of these."""
        while self.current.mode in modes:
            await self._changed.wait()


class FaultGate:
    """ASGI layer that delays, freezes or breaks every answer but those of the untouched paths; all are 503 while the engine is down."""

    def __init__(self, app: ASGIApp, switch: FaultSwitch, down: Callable[[], bool]) -> None:
        self._app = app
        self._switch = switch
        self._down = down

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in UNTOUCHED_PATHS:
            await self._app(scope, receive, send)
            return
        await self._switch.left("frozen")
        if self._switch.current.mode == "slow":
            await asyncio.sleep(self._switch.current.delay_ms / 1000)
        await self._answer(scope)(scope, receive, send)

    def _answer(self, scope: Scope) -> ASGIApp:
        if self._down():
            return PlainTextResponse("the engine is starting\n", status_code=503)
        mode = self._switch.current.mode
        if mode == "error500":
            return PlainTextResponse("engine error on demand\n", status_code=500)
        if mode == "html" and scope["path"] == "/metrics":
            return HTMLResponse("<html><body>upstream is starting</body></html>\n")
        return self._app
