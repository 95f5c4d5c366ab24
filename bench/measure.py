"""One measurement, and how measurements of two peers become a ratio: in turns, round by round, so that noise meets both."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from bench.load import Load, Outcome, Running
from bench.processes import cpu_s
from bench.report import Finding

Attribute = Callable[["Round"], float]
Beside = Callable[[], contextlib.AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Peer:
    """A load, and the process whose CPU time it costs. `per_answer` is how many decisions one answer holds."""

    name: str
    load: Load
    pid: int
    per_answer: int = 1
    beside: Beside = contextlib.nullcontext
    """What goes on meanwhile."""
    may_refuse: bool = False
    """Whether refusals are a finding; otherwise they are a failure, since then something else was measured."""


@dataclass(frozen=True, slots=True)
class Round:
    """One load on one peer."""

    cpu_us: float
    """CPU time of the peer's process tree per decision."""
    p99_ms: float
    outcome: Outcome
    generator_share: float
    """CPU time of the load generator, in cores."""
    refused: float
    """Share of the decisions that were refusals."""


def measure(peer: Peer) -> Round:
    """Make the load once. Raises RuntimeError where an answer was no success."""
    with peer.beside():
        before = cpu_s(peer.pid)
        outcome = Running(peer.load).outcome()
        spent_s = cpu_s(peer.pid) - before
    if outcome.failed or not outcome.answers:
        raise RuntimeError(f"{peer.name}: {outcome.failed} of {outcome.answers} answers were no success, the first: {outcome.odd}")
    decisions = outcome.answers * peer.per_answer
    refused = decisions - outcome.allowed if peer.load.path.startswith("/decide") else 0
    if refused and not peer.may_refuse:
        raise RuntimeError(f"{peer.name}: {refused} of {decisions} decisions were refusals, the first: {outcome.odd}")
    return Round(spent_s / decisions * 1e6, outcome.p99_ms, outcome, outcome.cpu_s / outcome.seconds, refused / decisions)


def warm_up(peers: Sequence[Peer], seconds: float = 1.0) -> None:
    """One load on each that is not counted: connections, memos and code paths are new only once."""
    for peer in peers:
        Running(replace(peer.load, seconds=seconds)).outcome()


def in_turns(peers: Sequence[Peer], rounds: int) -> list[list[Round]]:
    """The rounds of each peer, every other time in the opposite order. Each round has its own arrivals, the same for all peers."""
    found: list[list[Round]] = [[] for _ in peers]
    for number in range(rounds):
        order = range(len(peers)) if number % 2 == 0 else reversed(range(len(peers)))
        for index in order:
            peer = peers[index]
            load = replace(peer.load, seed=number + 1, first=peer.load.first + _done(found[index]))
            found[index].append(measure(replace(peer, load=load)))
    return found


def _done(rounds: list[Round]) -> int:
    """Requests so far: numbers go on from round to round, so a request that was to be new stays new."""
    return sum(each.outcome.answers for each in rounds)


def cpu_us(each: Round) -> float:
    """CPU time per decision."""
    return each.cpu_us


def p99_ms(each: Round) -> float:
    """The 99th percentile of latencies."""
    return each.p99_ms


def compare(
    row: str,
    what: str,
    measured: Sequence[Round],
    against: str,
    peer: Sequence[Round],
    *,
    attribute: Attribute = cpu_us,
    budget: float | None = None,
    note: str = "",
) -> Finding:
    """The median of the rounds' ratios, with the smallest and the largest of them; refusals are noted, whatever is compared."""
    if any(each.refused for each in measured):
        note = "; ".join(filter(None, [note, f"refused, by rounds: {', '.join(f'{each.refused:.1%}' for each in measured)}"]))
    ratios = [attribute(one) / attribute(other) for one, other in zip(measured, peer, strict=True)]
    return Finding(
        row=row,
        what=what,
        value=median(map(attribute, measured)),
        unit="µs" if attribute is cpu_us else "ms",
        against=against,
        peer=median(map(attribute, peer)),
        ratio=median(ratios),
        spread=(min(ratios), max(ratios)),
        budget=budget,
        note=note,
    )


def generator_note(rounds: Sequence[Round]) -> str:
    """What the load generator took of the machine, and how late it was."""
    share = median(each.generator_share for each in rounds)
    late_ms = median(each.outcome.late_p99_ms for each in rounds)
    rate = median(each.outcome.answers / each.outcome.seconds for each in rounds)
    return f"{rate:.0f} answers/s; generator {share:.2f} cores, p99 {late_ms:.2f} ms late"
