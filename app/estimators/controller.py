"""How many requests of one model may be in flight on one node, and what share of new ones goes there at all (A2, A3).

A PI controller in velocity form on one error, the tightest of KV usage, waiting requests and iteration latency against
their set points; the set points come from policy. The sign of the error alone gives the direction, so noise in its rate
of change cannot make the maximum swing; the rate of change only brakes or speeds. It acts on ratios: a step of 10 % is
as large at 4 as at 400.
"""

import math
from dataclasses import dataclass

from app.estimators.smoothing import Smoothed

SMOOTHING_MS = 300.0
"""Half-life of the error: three polls, so that one odd page moves little, and far less than what an answer takes."""
FORGET_MS = 1_000.0
"""An error older than a stale page (A2) is forgotten, and the next one taken as it is."""
MOST_STEP_MS = 1_000.0
"""Time that one update makes up for at most: after a pause the controller goes on, it does not leap."""
DEAD_BAND = 0.05
"""Errors within 5 % of the set point move nothing: the last few percent are noise, and chasing them is flapping."""
GAIN_PER_S = 0.5
"""Rate of growth per second and unit of error: with half of the set point free it reaches its steepest."""
CUT_GAIN_PER_S = 1.0
"""The same downwards, twice as fast: too much in flight hurts everybody, too little only who waits."""
BRAKE = 0.5
"""Weight of the error's own change: a signal that rushes to its set point stops the growth before it is there."""
MOST_UP_PER_S = 0.25
"""Steepest growth: times e^0.25 = 1.28 in a second. From 1 to 90 % of 64 it takes 16 s, half of what a recovery may last."""
MOST_DOWN_PER_S = 1.0
"""Steepest cut: to e^-1 = 37 % in a second."""
NEAR_RATIO = 0.8
"""Growth needs this share of the maximum in flight: what is not asked for proves nothing. A cut never runs further ahead
of what is in flight either, since the engine can't show yet what that would change."""
SHED_GAIN = 2.0
"""Admission lost per unit of error below 0: none is let in at half of the set point above it."""
LEAST_ADMISSION = 0.05
"""Never none at all: an engine that tells only latencies tells nothing while nothing runs, and would stay shut for ever."""
ADMISSION_UP_PER_S = 0.5
"""Admission returns within 2 s, not at a stroke."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Three signals of an engine, or the set points for them. None: unknown, or without a set point."""

    kv_ratio: float | None = None
    waiting: float | None = None
    iteration_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Load:
    """What is at work on the node."""

    in_flight: int
    """Requests of ours there, by their leases."""
    at_engine: int | None = None
    """Running and waiting as the engine counts them; None: unknown. A lease that nobody settles is in the first count alone."""

    @property
    def proven(self) -> int:
        """Requests that are certainly there on our behalf: no more than we count, nor than the engine knows."""
        return self.in_flight if self.at_engine is None else min(self.in_flight, self.at_engine)


@dataclass(frozen=True, slots=True)
class Output:
    """What is in force until the next update."""

    max_in_flight: int
    admission: float
    """Share of new requests let in, 0..1."""


def error(measured: Levels, set_points: Levels) -> float | None:
    """The tightest signal's distance below its set point, as a share of it: -1..1, below 0 above it; None: nothing known."""
    pairs = (
        (measured.kv_ratio, set_points.kv_ratio),
        (measured.waiting, set_points.waiting),
        (measured.iteration_ms, set_points.iteration_ms),
    )
    known = [(value, point) for value, point in pairs if value is not None and point is not None and _possible(value) and _possible(point)]
    return min((max(-1.0, min(1.0, (point - value) / (point or 1.0))) for value, point in known), default=None)


class Controller:
    """One model on one node. Starts at the ceiling: what the engine is configured for holds until a signal speaks against it."""

    def __init__(self) -> None:
        self._smoothed = Smoothed(SMOOTHING_MS, FORGET_MS)
        self._error: float | None = None
        self._updated_ms: float | None = None
        self._limit = math.inf
        self._reach = 0.0
        """Up to here the maximum returns unasked: it stood here when a cut began that our own requests didn't press for."""
        self._cutting = False
        self._admission = 1.0

    def update(self, measured: Levels, set_points: Levels, load: Load, *, floor: int, ceiling: int, now_ms: float) -> Output:
        """One step. 1 <= floor <= ceiling. While every signal is unknown both outputs hold, within floor and ceiling."""
        step_s = 0.0 if self._updated_ms is None else min(now_ms - self._updated_ms, MOST_STEP_MS) / 1000
        self._updated_ms = now_ms
        raw = error(measured, set_points)
        before, self._error = self._error, None if raw is None else self._smoothed.push(raw, now_ms)
        self._limit = max(min(self._limit, ceiling), floor)
        if self._error is not None:
            change_per_s = 0.0 if before is None or step_s == 0 else (self._error - before) / step_s
            self._move(self._error, change_per_s, step_s, load.proven)
            self._limit = max(min(self._limit, ceiling), floor)
            self._admit(self._error, step_s)
        return Output(int(self._limit), self._admission)

    def _move(self, error: float, change_per_s: float, step_s: float, proven: int) -> None:
        near = proven >= NEAR_RATIO * int(self._limit)
        cuts = error < -DEAD_BAND
        if cuts and not self._cutting:
            self._reach = 0.0 if near else max(self._reach, self._limit)
        self._cutting = cuts
        if cuts:
            rate = max(-MOST_DOWN_PER_S, min(0.0, CUT_GAIN_PER_S * error + BRAKE * change_per_s))
            drained = min(self._limit, NEAR_RATIO * proven)
            self._limit = max(self._limit * math.exp(rate * step_s), drained)
        elif error > DEAD_BAND and (near or self._limit < self._reach):
            rate = max(0.0, min(MOST_UP_PER_S, GAIN_PER_S * error + BRAKE * change_per_s))
            self._limit *= math.exp(rate * step_s)

    def _admit(self, error: float, step_s: float) -> None:
        wanted = max(LEAST_ADMISSION, min(1.0, 1 + SHED_GAIN * error))
        self._admission = min(wanted, self._admission + ADMISSION_UP_PER_S * step_s)


def _possible(value: float) -> bool:
    return 0 <= value < math.inf
