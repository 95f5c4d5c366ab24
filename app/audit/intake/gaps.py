"""What the log has to be told of times in which it could not be written, or in which more came than could be kept.

A gap runs from the first attempt that failed to the write that succeeds, and is the first thing that this write commits. Its counts are
exact: once handed to the database a gap is never made again with other counts, since a commit without an answer may have
happened; what fails afterwards belongs to the next one.

When down: the open gap waits in memory and goes on counting; a process that is killed meanwhile leaves its mark (app/audit/intake/waiting.py).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Literal

from app.audit.records.entry import SERVICE, Entry, make_entry
from app.clock import Clock
from app.errors import DependencyDown
from app.instants import rfc3339

Reason = Literal["database_down", "stopped", "full"]


def gap(
    *, recorded: datetime, begin: datetime, end: datetime, reason: Reason, refused: int | None = None, lost: int | None = None
) -> Entry:
    """From `begin` to `end` the log may be incomplete.

    `refused`: decisions and changes that were refused because they could not be logged. `lost`: decisions that no summary
    counts, and other entries that were dropped; None where nobody knows, and then absent from the entry.
    """
    details = {"from": rfc3339(begin), "to": rfc3339(end), "reason": reason, "refused": refused, "lost": lost}
    return make_entry("audit.gap", recorded=recorded, operator=SERVICE, tenant=None, outcome="done", details=details)


class Gaps:
    """The open gap of this process, and the closed one that is not known to be committed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: datetime | None = None
        self._down = False
        self._refused = self._lost = 0
        self._closed: Entry | None = None
        self._closed_began: datetime | None = None

    @property
    def since(self) -> datetime | None:
        """When the oldest gap began that the log has not been told; None where it has been told of all."""
        return self._closed_began or self._began

    def failed(self) -> None:
        """The log could not be written."""
        self._open()
        self._down = True

    def lose(self, events: int) -> None:
        """That many events were dropped: no room was left for them."""
        self._open()
        self._lost += events

    @contextmanager
    def refusing(self, *entries: Entry) -> Iterator[None]:
        """Count what is refused where the block raises DependencyDown, as one decision or change.

        The gap reaches back to when that was tried, or to the first of its `entries`: the server may have committed them and only
        the answer was lost, and whoever finds one in the log sees by its instant that it may be one of those refused.
        """
        tried = min([self._clock.utcnow(), *(entry.recorded for entry in entries)])
        try:
            yield
        except DependencyDown:
            self._open(tried)
            self._down = True
            self._refused += 1
            raise

    def close(self) -> tuple[Entry, ...]:
        """The gap that is to be written now, at most one. The same again until it is `committed`."""
        if self._closed is None and self._began is not None:
            now = self._clock.utcnow()
            reason: Reason = "database_down" if self._down else "full"
            end = max(now, self._began)  # a clock that stepped back makes no negative gap
            self._closed = gap(recorded=now, begin=self._began, end=end, reason=reason, refused=self._refused, lost=self._lost)
            self._closed_began = self._began
            self._began, self._down, self._refused, self._lost = None, False, 0, 0
        return () if self._closed is None else (self._closed,)

    def committed(self, *gaps: Entry) -> None:
        """These are committed."""
        if self._closed in gaps:
            self._closed = self._closed_began = None

    def _open(self, since: datetime | None = None) -> None:
        since = since or self._clock.utcnow()
        self._began = min(self._began or since, since)
