"""How often an engine is asked: as its settings say, and less often where reading its pages costs much.

Pages are read one after the other on one core, so a page that takes long is time that no other engine gets.
"""

import contextlib
from collections.abc import Iterator

import structlog

from app.clock import Clock

log = structlog.get_logger()

READING_SHARE = 0.1
"""Most of the time of an engine that goes into reading its pages. A page of 50 KB takes 0.2 ms of its 100, so nobody notices
but one whose page is made anew each time; and of those it takes ten to hurry all others."""
LATE_MS = 500.0
"""An interval worth a line: readings are then older than half of the second after which they do not count."""
HINT = "Let the engine drop metrics or labels that it makes anew for each page, or give `url` a page of its own without them."


class Pace:
    """The pauses of one engine. The first one is the share `phase` (0..1) of its interval."""

    def __init__(self, node: str, poll_ms: float, clock: Clock, phase: float = 1.0) -> None:
        self._node = node
        self._poll_ms = poll_ms
        self._clock = clock
        self._interval_ms = poll_ms * phase
        self._reading_ms = 0.0
        self._told = False

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Counts what is done inside, which must not wait for anything, as the cost of a page."""
        began_ms = self._clock.cpu_ms()
        try:
            yield
        finally:
            self._reading_ms = self._clock.cpu_ms() - began_ms

    def pause_ms(self, took_ms: float) -> float:
        """How long to wait after a scrape that took `took_ms`, reading included, until the next one."""
        earliest_ms, self._reading_ms = self._reading_ms / READING_SHARE, 0.0
        interval_ms, self._interval_ms = max(self._interval_ms, earliest_ms), self._poll_ms
        if earliest_ms >= LATE_MS and not self._told:
            self._told = True
            log.warning(
                "scrape.costly",
                node=self._node,
                reading_ms=round(earliest_ms * READING_SHARE),
                asked_again_ms=round(earliest_ms),
                hint=HINT,
            )
        return max(0.0, interval_ms - took_ms)
