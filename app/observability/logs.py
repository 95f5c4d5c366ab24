"""Structured logs: one event name and fields a line, the decision id among them; JSON in production, text on a terminal."""

import contextlib
import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO, cast

import structlog

_SECRET_WORDS = ("authorization", "password", "secret", "token", "api_key", "passphrase")


class SteadyStream:
    """A stream whose reader may go away or whose disk may fill: lines are lost then, but nobody who logs fails."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write what can be written."""
        with contextlib.suppress(OSError, ValueError):
            return self._stream.write(text)
        return 0

    def flush(self) -> None:
        """Flush what can be flushed."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


def _hide_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key in event:
        if any(word in key.lower() for word in _SECRET_WORDS):
            event[key] = "[hidden]"
    return event


def configure_logs(level: str = "info", fmt: str = "auto", process: str = "serve") -> None:
    """Set up structlog and the standard library's logging for this process: all goes to stderr, data to stdout."""
    stream = cast("TextIO", SteadyStream(sys.stderr))
    as_json = fmt == "json" or (fmt == "auto" and not sys.stderr.isatty())
    renderer: Any = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer()
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.MaybeTimeStamper(fmt="iso", utc=True),  # a child's line has its own
        _hide_secrets,
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(stream),  # a line and its end in one write: threads log, too
        cache_logger_on_first_use=False,
    )
    structlog.contextvars.bind_contextvars(process=process)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer], foreign_pre_chain=shared
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("uvicorn", "uvicorn.error", "uvicorn.access", "watchfiles", "aiohttp.access", "asyncio"):
        logging.getLogger(noisy).setLevel("WARNING")
    logging.getLogger("psycopg").setLevel("ERROR")  # it warns of a failure beside the one that it raises for the same reason
