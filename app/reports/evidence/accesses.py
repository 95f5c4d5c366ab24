"""What a day's accesses to sensitive models come to: who consulted what, which obligations nobody confirmed, what was not recorded. Pure."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from app.instants import rfc3339
from app.reports.evidence.facts import MOST_LISTED, Consultations, Logged, Unmet
from app.reports.nights.night import Night

ACCESS, INCIDENT = "sensitive.access", "obligation.unmet"
_Row = tuple[str, str, str, str | None, str, str]
"""Subject, tenant, model, purpose, outcome, retention."""


@dataclass(slots=True)
class _Times:
    first: str
    last: str
    count: int = 0


class Consulted:
    """Accesses by subject, model, purpose and how they ended."""

    def __init__(self) -> None:
        self._rows: dict[_Row, _Times] = {}
        self.more = 0
        """Accesses of rows for which there is no room."""

    def take(self, access: Logged, outcome: str) -> None:
        """Count an access that ended in `outcome`."""
        subject, tenant, model, purpose = (_said(access, name) for name in ("subject", "tenant", "model", "purpose"))
        row = (subject or "", tenant or "", model or "", purpose, outcome, access.retention)
        times = self._rows.get(row)
        if times is None:
            if len(self._rows) >= MOST_LISTED:
                self.more += 1
                return
            times = self._rows[row] = _Times(access.recorded, access.recorded)
        times.first, times.last = min(times.first, access.recorded), max(times.last, access.recorded)
        times.count += 1

    def rows(self) -> list[Consultations]:
        """By subject, and there by time."""
        found = [Consultations(*row[:5], times.count, times.first, times.last, row[5]) for row, times in self._rows.items()]
        return sorted(found, key=lambda row: (row.subject, row.tenant, row.first, row.model, row.purpose or "", row.outcome, row.retention))


class Accesses:
    """The day's accesses, and what became of those that only a gateway could complete.

    `earlier`: accesses of the day before that were not confirmed yet.
    """

    def __init__(self, night: Night, sensitive: Collection[str], earlier: Iterable[Logged] = ()) -> None:
        self.consulted = Consulted()
        self._sensitive = sensitive
        self._first_minute = rfc3339(night.begin)[:16]
        self._unconfirmed = {_decision(access): access for access in earlier}
        self._today: set[str] = set()
        self._confirmed: set[str] = set()
        self._incidents: dict[str, int] = {}
        self._recorded: set[str] = set()
        self._counted: set[str] = set()
        self.approvals: set[str] = set()
        """Ids of the approvals that the day's accesses name."""

    def take(self, access: Logged) -> None:
        """An access of the day."""
        if access.outcome == "confirmed":
            return
        approval, tenant = _said(access, "approval_id"), _said(access, "tenant")
        if approval:
            self.approvals.add(approval)
        if access.outcome != "unconfirmed":
            self.consulted.take(access, access.outcome)
        elif (decision := _decision(access)) in self._confirmed:
            self.consulted.take(access, "confirmed")
        else:
            self._unconfirmed[decision] = access
            self._today.add(decision)
        if access.outcome != "refused" and tenant:
            self._recorded.add(tenant)

    def follow(self, entry: Logged) -> None:
        """Any entry of the exported range, of this day or the first minutes of the next, which may say what became of an access."""
        decision = _decision(entry)
        if entry.kind == INCIDENT:
            self._incidents.setdefault(decision, entry.seq)
        elif entry.kind == ACCESS and entry.outcome == "confirmed":
            self._confirmed.add(decision)
            access = self._unconfirmed.pop(decision, None)
            if access is not None and decision in self._today:
                self._today.discard(decision)
                self.consulted.take(access, "confirmed")

    def decide(self, summary: Logged) -> None:
        """Decisions were counted; those of the day's first minute may have been recorded before midnight."""
        tenant, model, minute = (_said(summary, name) for name in ("tenant", "model", "minute"))
        if summary.outcome == "allow" and tenant and model in self._sensitive and (minute or "")[:16] != self._first_minute:
            self._counted.add(tenant)

    def finish(self) -> list[Unmet]:
        """What nobody confirmed, in the order of the log; no more is taken afterwards."""
        for decision in self._today:
            self.consulted.take(self._unconfirmed[decision], "unconfirmed")
        found = [Unmet(access, self._incidents.get(decision)) for decision, access in self._unconfirmed.items()]
        return sorted(found, key=lambda unmet: unmet.access.seq)

    def uncovered(self) -> list[str]:
        """Tenants with counted decisions that gave access, and without any access in the log."""
        return sorted(self._counted - self._recorded)


def _decision(entry: Logged) -> str:
    return str(entry.body.get("decision_id"))


def _said(entry: Logged, member: str) -> str | None:
    """What the entry has there, where it is text."""
    value = entry.body.get(member)
    return value if isinstance(value, str) else None
