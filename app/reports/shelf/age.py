"""How old the newest finished night is, for whoever watches that nights are made."""

import asyncio
from datetime import datetime

from app.clock import Clock
from app.errors import SluiceError
from app.instants import instant
from app.observability.metrics import Metrics
from app.reports.shelf.shelf import Shelf

MOST_TRIED = 10
"""Folders whose manifest cannot be read; they are told by GET /reports, and an older night counts."""


class ShelfAge:
    """Keeps the gauge of it."""

    def __init__(self, shelf: Shelf, clock: Clock, metrics: Metrics) -> None:
        self._shelf = shelf
        self._clock = clock
        self._gauge = metrics.report_age

    async def look(self) -> None:
        """Look once. Raises ShelfDown, and the age is unknown."""
        self._gauge.clear()
        newest = await asyncio.to_thread(self._newest)
        if newest is not None:
            zone, end = newest
            self._gauge.labels(zone).set((self._clock.utcnow() - end).total_seconds())

    def _newest(self) -> tuple[str, datetime] | None:
        """Zone and end of the newest day."""
        for report in self._shelf.reports()[:MOST_TRIED]:
            try:
                manifest = self._shelf.manifest(report)
                return manifest.zone, instant(manifest.end, "end")
            except SluiceError:
                continue
        return None
