"""How figures are taken from evidence: counts of entries, with the question that repeats them and the numbers of some entries. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from app.reports.clauses.clause import Measured
from app.reports.document import Words
from app.reports.evidence.facts import MOST_SHOWN, Evidence, Logged

Take = Callable[[Evidence], Measured]


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure about a night that clauses may name."""

    label: Words
    unit: Words
    take: Take


ENTRIES = Words("条", "entries")
TIMES = Words("次", "times")
HOURS = Words("小时", "hours")
DAYS = Words("天", "days")
SHARE = Words("比例", "share of 1")
STATUS = Words("退出状态", "exit status")
ITEMS = Words("项", "items")
NOBODY_KNOWS = "not in the log"


def asked(kind: str, outcome: str | None = None) -> str:
    """How GET /audit/entries finds the entries, with the day's from and to; the outcome is for the reader to look at."""
    return f"kind={kind}" + (f" outcome={outcome}" if outcome else "")


def numbers(entries: Iterable[Logged]) -> tuple[int, ...]:
    """The numbers of the first of `entries`, as many as stand beside a figure."""
    shown: list[int] = []
    for entry in entries:
        if len(shown) == MOST_SHOWN:
            break
        shown.append(entry.seq)
    return tuple(shown)


def first(seqs: Iterable[int]) -> tuple[int, ...]:
    """The first of these numbers, each once."""
    return tuple(dict.fromkeys(seqs))[:MOST_SHOWN]


def counted(*kinds: str, outcomes: tuple[str, ...] = ()) -> Take:
    """Entries of these kinds; with `outcomes` only those that ended so."""

    def take(evidence: Evidence) -> Measured:
        of = [one for one in evidence.kinds if one.kind in kinds and (not outcomes or one.outcome in outcomes)]
        shown = (entry for kind in kinds for entry in evidence.of(kind).entries if not outcomes or entry.outcome in outcomes)
        query = "; ".join(asked(kind, "|".join(outcomes)) for kind in kinds)
        return Measured(sum(one.count for one in of), query, numbers(shown))

    return take


def sure(evidence: Evidence, value: float, *kinds: str) -> float | None:
    """The figure; unknown where it is 0, and not all entries of `kinds` were looked at."""
    return None if not value and any(evidence.of(kind).more for kind in kinds) else value


def unknown(why: str) -> Take:
    """What nobody can know from the log."""
    return lambda _: Measured(None, f"{NOBODY_KNOWS}: {why}")
