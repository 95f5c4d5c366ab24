"""What children of serve write: one event a line in our own log, those that are structured already with their own fields and level."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import structlog

LINE_BYTES = 8192  # a longer line is cut, so that a child without newlines cannot fill our memory
EVENT_FIELDS = ("event", "msg")  # what structlog and OPA call it
LEVELS = logging.getLevelNamesMapping()


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a child as it goes into the log."""

    name: str
    level: int
    fields: dict[str, Any] = field(default_factory=dict)


def event_of(line: str, level: int) -> Event:
    """What a line says: a JSON object that names its event and level says it in its own words, any other line as `child_line` at `level`."""
    document: object = None
    with contextlib.suppress(orjson.JSONDecodeError):
        document = orjson.loads(line)
    if isinstance(document, dict):
        named = next((key for key in EVENT_FIELDS if isinstance(document.get(key), str)), None)
        own = LEVELS.get(str(document.get("level")).upper())
        if named is not None and own is not None:
            return Event(document[named], own, {key: value for key, value in document.items() if key not in (named, "level")})
    return Event("child_line", level, {"line": line})


def write(child: str, event: Event, most: int) -> None:
    """Log the event with the child's name, at its level but not above `most`."""
    structlog.get_logger(**event.fields | {"child": child}).log(min(event.level, most), event.name)


class Lines(asyncio.Protocol):
    """Cuts a stream of bytes into lines of at most LINE_BYTES."""

    def __init__(self, say: Callable[[bytes], None], drained: asyncio.Future[None]) -> None:
        self._say = say
        self._drained = drained
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        """Say each line that is whole."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._say(line[:LINE_BYTES])
        if len(self._rest) > LINE_BYTES:
            self._say(self._rest[:LINE_BYTES])
            self._rest = b""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        """Say what is left."""
        self._say(self._rest)
        self._drained.set_result(None)
