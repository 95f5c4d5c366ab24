"""A small file that says since when something waits in memory for the log: what a killed process cannot tell any more.

It says null while nothing waits. Whoever starts next and finds a time knows from when on the log may be incomplete.
When down: a file that cannot be written keeps what it said, and the work that keeps it current fails and begins again; decisions go on.
"""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import orjson
import structlog

from app import private_files
from app.errors import ConfigError
from app.instants import rfc3339
from app.tasks import retrieve

log = structlog.get_logger()


class Marker:
    """The file, and what it says."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._one_at_a_time = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self.shown = _read(path)
        """What the file says now: at first, what the process before us left."""
        self.wanted = self.shown
        """What it will say once all that was begun is done."""
        self.failed = False
        """Whether the last attempt to write it failed."""

    def show(self, since: datetime | None) -> asyncio.Task[None]:
        """Begin to let the file say `since`, durably. The task ends with ConfigError where that failed."""
        self.wanted = since
        task = asyncio.create_task(self._show(since))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def _show(self, since: datetime | None) -> None:
        async with self._one_at_a_time:
            if since == self.shown:
                return
            content = orjson.dumps({"waiting_since": rfc3339(since) if since else None})
            try:
                await asyncio.to_thread(private_files.replace, self._path, content)
            except ConfigError:
                self.failed = True
                raise
            self.shown, self.failed = since, False

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        retrieve(task)


def _read(path: Path) -> datetime | None:
    """What the file at `path` says. One that cannot be understood was last known to be whole when it was written."""
    if not path.exists():
        return None
    try:
        said = orjson.loads(path.read_bytes())["waiting_since"]
        return None if said is None else datetime.fromisoformat(said).astimezone(UTC)
    except (ValueError, KeyError, TypeError) as error:
        log.warning("audit.marker_unreadable", path=str(path), problem=str(error))
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
