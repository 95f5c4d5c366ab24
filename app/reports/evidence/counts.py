"""What a day's entries sum up to: kinds, decisions by hour, users and tenants, sealed texts. Pure; each grows entry by entry."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.audit.records.entry import MAX_INTEGER
from app.reports.evidence.completeness import is_complete
from app.reports.evidence.facts import MOST_LISTED, MOST_SHOWN, Covered, DecisionCount, KindCount, Listed, Logged, Numbered
from app.reports.nights.hours import HourOf
from app.reports.nights.night import SUMMARY, Night


class Tally:
    """Counts entries, and keeps the numbers of the first."""

    def __init__(self) -> None:
        self._total = 0
        self._entries: list[int] = []

    def add(self, seq: int) -> None:
        """One more."""
        self._total += 1
        if len(self._entries) < MOST_SHOWN:
            self._entries.append(seq)

    def numbered(self) -> Numbered:
        """The result."""
        return Numbered(self._total, tuple(self._entries))


@dataclass(slots=True)
class _Kind:
    first: int
    last: int = 0
    count: int = 0
    complete: int = 0


class Kinds:
    """Entries by kind and outcome."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self.incomplete = Tally()

    def take(self, entry: Logged) -> None:
        """Count it."""
        name = entry.kind, entry.outcome
        kind = self._kinds.get(name) or self._kinds.setdefault(name, _Kind(entry.seq))
        kind.last = entry.seq
        kind.count += 1
        if is_complete(entry):
            kind.complete += 1
        else:
            self.incomplete.add(entry.seq)

    def counts(self) -> list[KindCount]:
        """By name."""
        return [
            KindCount(name, outcome, kind.count, kind.first, kind.last, kind.complete)
            for (name, outcome), kind in sorted(self._kinds.items())
        ]


class Lists:
    """The entries of each kind but the summaries."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Logged]] = {}
        self._totals: Counter[str] = Counter()

    def take(self, name: str, entry: Logged) -> None:
        """Count it under `name`, and keep it where there is room."""
        self._totals[name] += 1
        kept = self._kept.setdefault(name, [])
        if len(kept) < MOST_LISTED:
            kept.append(entry)

    def listed(self) -> dict[str, Listed]:
        """By name."""
        return {name: Listed(tuple(kept), self._totals[name]) for name, kept in sorted(self._kept.items())}


class Decisions:
    """Decisions by hour of the zone's clock, tenant, model and outcome, from the summaries."""

    def __init__(self, night: Night) -> None:
        self._night = night
        self._hour_of = HourOf(night)
        self._counts: Counter[tuple[int, str | None, str | None, str]] = Counter()
        self._names: dict[str, str] = {}
        self.late = 0
        """Counted too late for the day of their minute."""

    def take(self, summary: Logged) -> int:
        """Count the decisions of a summary of the day; how many they are."""
        body = summary.body
        count, minute = counted(body), body.get("minute")
        at = summary.recorded
        if isinstance(minute, str) and self._night.spans(minute):
            at = minute
        else:
            self.late += count
        key = self._hour_of.index(at), self._name(body.get("tenant")), self._name(body.get("model")), summary.outcome
        self._counts[key] += count
        return count

    def counts(self) -> list[DecisionCount]:
        """By hour, and there by tenant, model and outcome; those of no known tenant or model first."""
        hours = self._hour_of.hours
        return [
            DecisionCount(hours[hour].begin, tenant, model, outcome, count)
            for (hour, tenant, model, outcome), count in sorted(self._counts.items(), key=_in_order)
        ]

    def _name(self, name: Any) -> str | None:
        """One text for equal names: a day repeats each a thousand times."""
        return self._names.setdefault(name, name) if isinstance(name, str) else None


def counted(body: Mapping[str, Any]) -> int:
    """How many decisions a summary counts; 0 where it says no number."""
    count = body.get("count")
    return count if type(count) is int and 0 <= count <= MAX_INTEGER else 0


def _in_order(item: tuple[tuple[int, str | None, str | None, str], int]) -> tuple[int, str, str, str]:
    hour, tenant, model, outcome = item[0]
    return hour, tenant or "", model or "", outcome


class Coverage:
    """Of which users and tenants there are entries."""

    def __init__(self) -> None:
        self._operators: dict[str, _Kind] = {}
        self._tenants: dict[str, _Kind] = {}
        self._decisions: Counter[str] = Counter()
        self.sealed: Counter[str] = Counter()

    def take(self, entry: Logged) -> None:
        """Count it for its user and its tenant."""
        for names, name in ((self._operators, entry.body.get("operator")), (self._tenants, entry.body.get("tenant"))):
            if isinstance(name, str):
                one = names.get(name) or names.setdefault(name, _Kind(entry.seq))
                one.count += 1
        sealed = entry.body.get("sealed")
        if isinstance(sealed, dict):
            self.sealed.update(sealed.keys())

    def decide(self, summary: Logged, decisions: int) -> None:
        """Count decisions for the tenant of the summary that counts them."""
        tenant = summary.body.get("tenant")
        if isinstance(tenant, str):
            self._decisions[tenant] += decisions

    def operators(self) -> list[Covered]:
        """By name."""
        return [Covered(name, one.count, first=one.first) for name, one in sorted(self._operators.items())]

    def tenants(self, known: Iterable[str]) -> list[Covered]:
        """Those that appear and those that are `known`, by name."""
        names = sorted({*known, *self._tenants})
        return [self._tenant(name) for name in names]

    def _tenant(self, name: str) -> Covered:
        one = self._tenants.get(name)
        return Covered(name, one.count, self._decisions[name], one.first) if one else Covered(name, 0)


def is_summary(entry: Logged) -> bool:
    """Whether it counts decisions."""
    return entry.kind == SUMMARY
