"""Time, handed in: every room takes a Clock, so that tests move it by hand and nothing sleeps."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """The readings of time that exist in Sluice."""

    def monotonic_ms(self) -> float:
        """Milliseconds since an arbitrary start; never steps back. For intervals, leases and buckets."""
        ...

    def cpu_ms(self) -> float:
        """Milliseconds of a core that this thread has used. For what a piece of work costs, however busy the machine is."""
        ...

    def utcnow(self) -> datetime:
        """The aware UTC instant. For records and for the `time` section of a question, never for intervals."""
        ...


class SystemClock:
    """The machine's clocks."""

    def __init__(self) -> None:
        # Starting near zero keeps float milliseconds exact to well under a microsecond for decades of uptime.
        self._start_ns = time.monotonic_ns()

    def monotonic_ms(self) -> float:
        """Milliseconds since this object was made."""
        return (time.monotonic_ns() - self._start_ns) / 1e6

    def cpu_ms(self) -> float:
        """Since the thread began."""
        return time.thread_time_ns() / 1e6

    def utcnow(self) -> datetime:
        """Now, in UTC."""
        return datetime.now(UTC)


class ManualClock:
    """A clock that only moves when told to: for tests and simulations."""

    def __init__(self, utc: datetime = datetime(2026, 1, 1, tzinfo=UTC), monotonic_ms: float = 0.0) -> None:
        self._utc = utc
        self._monotonic_ms = monotonic_ms

    def monotonic_ms(self) -> float:
        """Milliseconds advanced so far, plus the start value."""
        return self._monotonic_ms

    def cpu_ms(self) -> float:
        """The same: whatever advances the clock is work."""
        return self._monotonic_ms

    def utcnow(self) -> datetime:
        """The start instant plus what was advanced."""
        return self._utc

    def advance(self, ms: float) -> None:
        """Move both clocks forward by `ms` milliseconds (0 or more)."""
        if ms < 0:
            raise ValueError("a monotonic clock never steps back; use step_utc for the wall clock")
        self._monotonic_ms += ms
        self._utc += timedelta(milliseconds=ms)

    def step_utc(self, delta: timedelta) -> None:
        """Step the wall clock alone, as NTP or an operator would; intervals must not notice."""
        self._utc += delta
