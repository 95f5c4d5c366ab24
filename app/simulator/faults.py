"""Faults on demand, so that a test or a demo can make the stand-in engine misbehave and recover."""

import asyncio
import math
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.simulator import fields
from app.simulator.readings import Gauges

Mode = Literal["none", "slow", "frozen", "nan", "error500", "html", "restart"]
CONTROL_PATHS = ("/faults", "/load")
"""Never affected by a fault: otherwise nobody could end it."""
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
        """Put `fault` in force; connections frozen by the one before go on under it."""
        self.current = fault
        self._changed.set()
        self._changed = asyncio.Event()

    async def thawed(self) -> None:
        """Returns once the engine is not frozen."""
        while self.current.mode == "frozen":
            await self._changed.wait()


class FaultGate:
    """ASGI layer that delays, freezes or breaks every answer but those of the control paths."""

    def __init__(self, app: ASGIApp, switch: FaultSwitch) -> None:
        self._app = app
        self._switch = switch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in CONTROL_PATHS:
            await self._app(scope, receive, send)
            return
        await self._switch.thawed()
        if self._switch.current.mode == "slow":
            await asyncio.sleep(self._switch.current.delay_ms / 1000)
        await self._answer(scope)(scope, receive, send)

    def _answer(self, scope: Scope) -> ASGIApp:
        mode = self._switch.current.mode
        if mode == "error500":
            return PlainTextResponse("engine error on demand\n", status_code=500)
        if mode == "html" and scope["path"] == "/metrics":
            return HTMLResponse("<html><body>upstream is starting</body></html>\n")
        return self._app
