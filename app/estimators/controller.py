"""How many requests of one model may be in flight on one node, and what share of new ones goes there at all (A2, A3).

A PI controller in velocity form on one error: the tightest of KV usage, waiting requests and iteration latency against
their set points, which come from policy. Admission is the proportional part: it acts at once, and only above a set point.
The maximum in flight is the integral part: it moves by a rate, in the direction that the error's sign gives, and acts on
ratios, so that a step of 10 % is as large at 4 as at 400. A change shows fully only when the requests that were there
have ended, so the rate is counted in the time that requests last: faster would swing between too many and too few.

Fewer requests can't make an engine faster than it is. So its iteration time is held against no less than what it can do:
an engine that is slow by nature is not shut for it, one that becomes slower is.
"""

import math
from dataclasses import dataclass, replace

from app.estimators.best import Best
from app.estimators.smoothing import Smoothed

SMOOTHING_MS = 300.0
"""Half-life of the error: three polls, so that one odd page moves little, and far less than what an answer takes."""
FORGET_MS = 1_000.0
"""An error older than a stale page (A2) is forgotten, and the next one taken as it is."""
MOST_STEP_MS = 1_000.0
"""Time that one update makes up for at most: after a pause the controller goes on, it does not leap."""
DEAD_BAND = 0.05
"""Errors within 5 % of the set point start nothing: the last few percent are noise, and chasing them is flapping."""
REST_BAND = 0.01
"""What moves goes on until it is this near: it rests in the middle of the band, not on its edge where the next noise starts it."""
GROWTH = 1.0
"""Growth in the time that a request lasts, times the error: half of the set point free lets the maximum grow by e^0.5 = 1.65."""
CUT = 2.0
"""The same downwards, twice as fast: too much in flight hurts everybody, too little only who waits."""
MOST_UP_PER_S = 0.25
"""Steepest growth: times e^0.25 = 1.28 in a second. From 1 to 90 % of 64 it takes 16 s, half of what a recovery may last."""
MOST_DOWN_PER_S = 1.0
"""Steepest cut: to e^-1 = 37 % in a second."""
LASTS_MS = 2_000.0
"""How long a request lasts where nobody knows: a hundred tokens of 20 ms."""
LEAST_LASTS_MS = 1_000.0
"""Shorter requests make nothing faster: polls and smoothing take half a second by themselves."""
NEAR_RATIO = 0.8
"""Growth needs this share of the maximum in flight: what is not asked for proves nothing. A cut never runs further ahead
of what is in flight either, since the engine can't show yet what that would change. With nothing in flight at all the maximum
returns to the ceiling while all is well: what an overload proved is over, and the next burst is as welcome as the first."""
SHED_GAIN = 2.0
"""Admission lost per unit of error below 0: least is let in at half of the set point above it."""
LEAST_ADMISSION = 0.05
"""Never none at all: an engine that tells only latencies tells nothing while nothing runs, and would stay shut for ever."""
BEST_FACTOR = 2.0
"""Aim of an iteration, in the engine's best, where the set point is no more than that best: half of the aim is free then, so
that noise and a few requests at once shed nothing, recovery is quick, and a fourfold time still shows in full."""
LITTLE_RATIO = 1 / 16
"""Share of the ceiling that is next to nothing at the engine: an eighth of a batch makes no step much longer. At the floor
it doesn't matter who else is there: nothing is left that fewer requests of ours could make faster."""
ADMISSION_UP_PER_S = 0.6
"""Admission returns in 1.6 s, not at a stroke: with the smoothing before it within 2 s of the page that says that all is well."""


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
    lasts_ms: float | None = None
    """How long requests there last of late, from admission to settlement; None: unknown."""

    @property
    def proven(self) -> int:
        """Requests that are certainly there on our behalf: no more than we count, nor than the engine knows."""
        return self.in_flight if self.at_engine is None else min(self.in_flight, self.at_engine)

    @property
    def present(self) -> int:
        """Requests there, whoever sent them, as far as anybody knows."""
        return self.in_flight if self.at_engine is None else self.at_engine

    @property
    def lasts_s(self) -> float:
        """The time in which a change of the maximum shows."""
        lasts_ms = LASTS_MS if self.lasts_ms is None or not _possible(self.lasts_ms) else self.lasts_ms
        return max(LEAST_LASTS_MS, lasts_ms) / 1000


@dataclass(frozen=True, slots=True)
class Output:
    """What is in force until the next update."""

    max_in_flight: int
    admission: float
    """Share of new requests let in, 0..1."""


def error(measured: Levels, set_points: Levels, proven: int = 0) -> float | None:
    """The tightest signal's distance below its set point, as a share of it: -1..1, below 0 above it; None: nothing known.

    Too many waiting count as a share of those in flight where these are more: one too many waiting is one too many of all.
    """
    shares = (
        _below(measured.kv_ratio, set_points.kv_ratio),
        _below(measured.waiting, set_points.waiting, of=proven),
        _below(measured.iteration_ms, set_points.iteration_ms),
    )
    return min((share for share in shares if share is not None), default=None)


def iteration_aim(set_point_ms: float, best_ms: float) -> float:
    """The set point, or a multiple of what the engine can do, less what that is below the set point.

    So the set point holds where the engine's best is two thirds of it or less: fewer requests do keep it there.
    """
    return max(set_point_ms, BEST_FACTOR * best_ms - max(0.0, set_point_ms - best_ms))


class Controller:
    """One model on one node. Starts at the ceiling: what the engine is configured for holds until a signal speaks against it."""

    def __init__(self) -> None:
        self._smoothed = Smoothed(SMOOTHING_MS, FORGET_MS)
        self._updated_ms: float | None = None
        self._limit = math.inf
        self._direction = 0
        self._reach = 0.0
        """Up to here the maximum returns unasked: it stood here when a cut began that our own requests didn't press for."""
        self._admission = 1.0
        self._best = Best()

    def update(self, measured: Levels, set_points: Levels, load: Load, *, floor: int, ceiling: int, now_ms: float) -> Output:
        """One step. 1 <= floor <= ceiling. While every signal is unknown both outputs hold, within floor and ceiling.

        That is, unless the engine has nothing to do: then all of its room is free, and an engine that tells only latencies has none to tell.
        """
        step_s = 0.0 if self._updated_ms is None else min(now_ms - self._updated_ms, MOST_STEP_MS) / 1000
        self._updated_ms = now_ms
        self._limit = max(min(self._limit, ceiling), floor)
        unloaded = int(self._limit) <= floor or load.present <= LITTLE_RATIO * ceiling
        raw = error(measured, self._aims(measured, set_points, step_s, unloaded=unloaded), load.proven)
        if raw is None and load.at_engine == 0:
            raw = 1.0
        smoothed = self._smoothed.push(raw, now_ms)
        if raw is not None and smoothed is not None:
            self._move(smoothed, load, step_s)
            self._limit = max(min(self._limit, ceiling), floor)
            self._admit(smoothed, step_s)
        return Output(int(self._limit), self._admission)

    def _aims(self, measured: Levels, set_points: Levels, step_s: float, *, unloaded: bool) -> Levels:
        """The set points, with no less for an iteration than this engine can do; `unloaded`: while next to nothing is in flight."""
        if measured.iteration_ms is None or set_points.iteration_ms is None:
            return set_points
        self._best.push(measured.iteration_ms, step_s * 1000, unloaded=unloaded)
        if self._best.value_ms is None:
            return set_points
        aim_ms = iteration_aim(set_points.iteration_ms, self._best.value_ms)
        return set_points if aim_ms == set_points.iteration_ms else replace(set_points, iteration_ms=aim_ms)

    def _move(self, error: float, load: Load, step_s: float) -> None:
        near = load.proven >= NEAR_RATIO * int(self._limit)
        before, self._direction = self._direction, _direction(error, self._direction)
        if self._direction < 0:
            if before >= 0:
                self._reach = 0.0 if near else max(self._reach, self._limit)
            rate = max(-MOST_DOWN_PER_S, CUT * error / load.lasts_s)
            drained = min(self._limit, NEAR_RATIO * load.proven)
            self._limit = max(self._limit * math.exp(rate * step_s), drained)
        elif load.proven == 0 and error > -REST_BAND:
            self._limit *= math.exp(MOST_UP_PER_S * step_s)
        elif self._direction > 0 and (near or self._limit < self._reach):
            rate = min(MOST_UP_PER_S, GROWTH * error / load.lasts_s)
            self._limit *= math.exp(rate * step_s)

    def _admit(self, error: float, step_s: float) -> None:
        wanted = max(LEAST_ADMISSION, min(1.0, 1 + SHED_GAIN * error))
        self._admission = min(wanted, self._admission + ADMISSION_UP_PER_S * step_s)


def _below(value: float | None, set_point: float | None, of: float = 0.0) -> float | None:
    if value is None or set_point is None or not (_possible(value) and _possible(set_point)):
        return None
    scale = max(set_point, of) if value > set_point else set_point
    return max(-1.0, min(1.0, (set_point - value) / (scale or 1.0)))


def _direction(error: float, before: int) -> int:
    """1 up, -1 down, 0 at rest: it starts outside the dead band and ends within the narrower one."""
    sign = 1 if error > 0 else -1
    return sign if abs(error) > (REST_BAND if sign == before else DEAD_BAND) else 0


def _possible(value: float) -> bool:
    return 0 <= value < math.inf
