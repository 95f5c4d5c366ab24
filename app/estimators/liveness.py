"""Whether a node whose page is fresh does live, and when somebody may try one that seems not to.

An engine refreshes its gauges only when it steps. A page that stands still with busy gauges and nothing of ours in flight
would keep everybody away for ever, and the idle page of a dead engine attracts everybody. So such a node gets no traffic
but one probe at once and one every 10 s, until its page moves.
"""

from collections.abc import Collection
from dataclasses import dataclass

FROZEN_AFTER_MS = 5_000.0
"""A busy engine steps several times a second; five seconds without any step are longer than a long prompt takes."""
FAILURES = 5
"""Failures in a row that speak against a node, as many as open a breaker (C11)."""
SEEN_MS = 1_000.0
"""A page older than this is stale and its node out (A2); so after this long, a page was read since a failure."""
PROBE_EVERY_MS = 10_000.0
"""One probe in so long for each node and model: the longest that one that lives again is shut out."""
PROBE_LASTS_MS = 60_000.0
"""A call in flight there is awaited no longer than this, be it a first one or the probe: its lease may be renewed for ever."""
HANGS_UP_MS = 1_000.0
"""A client that gives up sooner did not wait for an answer: an engine's first step and the page that shows it take as long."""
FAILED = ("failed", "timeout")
"""Outcomes that speak against a node by themselves."""

Key = tuple[str, str]
"""Name of a node and id of a model on it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one model on one node now."""

    still_ms: float | None
    """Since when nothing on its page moved; None: unknown."""
    busy: bool
    """Whether its gauges say that it has work: KV in use, waiting or running above 0."""
    in_flight: int
    """Requests of ours there."""


@dataclass(slots=True)
class _State:
    why: str = ""
    judged_ms: float = 0.0
    in_flight: int = 0
    failures: int = 0
    failing_since_ms: float = 0.0
    ticket_ms: float | None = None
    ticket_before_ms: float | None = None


class Liveness:
    """The judgement of each (node, model), and its probes. Only keys that were judged are known."""

    def __init__(self) -> None:
        self._states: dict[Key, _State] = {}

    def judge(self, key: Key, evidence: Evidence, now_ms: float) -> str:
        """Why the node is not live: frozen or failing; empty where nothing speaks against it."""
        state = self._states.setdefault(key, _State())
        state.why = _why(state, evidence, now_ms)
        state.judged_ms, state.in_flight = now_ms, evidence.in_flight
        return state.why

    def ended(self, key: Key, outcome: str, lasted_ms: float, still_ms: float | None, now_ms: float) -> None:
        """A call there ended as its gateway reports: completed, failed, timeout or aborted. A lease nobody settled is no end.

        `still_ms` is how long the page has stood still now. A client that gives up says nothing by itself; but a call during
        whose whole life nothing on the page moved was served by nobody, and counts as failed.
        """
        if (state := self._states.get(key)) is None:
            return
        if outcome == "completed":
            state.failures = 0
        elif outcome in FAILED or (outcome == "aborted" and _unserved(lasted_ms, still_ms)):
            if not state.failures:
                state.failing_since_ms = now_ms
            state.failures += 1

    def due(self, key: Key, now_ms: float) -> bool:
        """Whether somebody may try the node now although it is not live."""
        state = self._states.get(key)
        if state is None or not state.why:
            return False
        if state.ticket_ms is None:
            return True
        least_ms = PROBE_LASTS_MS if state.in_flight else PROBE_EVERY_MS
        return now_ms - state.ticket_ms >= least_ms

    def take(self, key: Key, now_ms: float) -> bool:
        """Take the ticket of the probe that is due; of several callers exactly one gets it."""
        if not self.due(key, now_ms):
            return False
        state = self._states[key]
        state.ticket_before_ms, state.ticket_ms = state.ticket_ms, now_ms
        return True

    def give_back(self, key: Key) -> None:
        """The newest ticket was not used, since its request was refused after all: the probe is due again at once."""
        if state := self._states.get(key):
            state.ticket_ms = state.ticket_before_ms

    def keep(self, keys: Collection[Key]) -> None:
        """Forget all keys but these."""
        self._states = {key: state for key, state in self._states.items() if key in keys}


def _unserved(lasted_ms: float, still_ms: float | None) -> bool:
    return still_ms is not None and HANGS_UP_MS <= lasted_ms <= still_ms


def _why(state: _State, evidence: Evidence, now_ms: float) -> str:
    """The judgement; also forgets failures that lie before a movement of the page."""
    still_ms = evidence.still_ms
    if still_ms is None:
        return ""
    if now_ms - still_ms >= state.failing_since_ms:
        state.failures = 0
    failing_ms = now_ms - state.failing_since_ms
    if state.failures >= FAILURES and failing_ms >= SEEN_MS:
        return "failing"
    # The probe itself is in flight there; so who was frozen stays so while the page has not moved since.
    stays = state.why == "frozen" and still_ms >= now_ms - state.judged_ms
    awaited = evidence.in_flight > 0 and still_ms < PROBE_LASTS_MS and not stays
    return "frozen" if evidence.busy and still_ms >= FROZEN_AFTER_MS and not awaited else ""
