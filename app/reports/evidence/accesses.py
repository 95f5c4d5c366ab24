"""What a day's accesses to sensitive models come to: who consulted what, which obligations nobody confirmed, what was not recorded. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from app.instants import rfc3339
from app.reports.evidence.counts import Tally
from app.reports.evidence.facts import MOST_LISTED, Approval, Consultations, Declared, Logged, Numbered, Unmet
from app.reports.nights.night import Night

ACCESS, INCIDENT = "sensitive.access", "obligation.unmet"
ASKED = ("allowed", "refused", "unconfirmed")
"""Outcomes of an access that is asked for: one entry for each."""
MINUTE = timedelta(minutes=1)
FOLLOWING = ("confirmed", "cancelled")
"""Outcomes of an access that follow another one: it was `unconfirmed`."""
_Access = tuple[int, str, str | None, bool | None]
"""Number, instant, id of the approval, and whether one was needed."""
_Pair = tuple[str, str]
"""Tenant and model."""
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

    def __init__(self, night: Night, declared: Declared, earlier: Iterable[Logged] = ()) -> None:
        self.consulted = Consulted()
        self._inside = rfc3339(night.begin + MINUTE), rfc3339(night.end - MINUTE)
        self._waiting = {_decision(access): access for access in earlier}
        self._today: dict[str, Logged] = {}
        self._ended: dict[str, str] = {}
        self._incidents: dict[str, int] = {}
        self._late: list[Unmet] = []
        self._recorded: Counter[_Pair] = Counter()
        self._counted: Counter[_Pair] = Counter()
        self._sensitive = set(declared.sensitive)
        self._named: set[str] = set()
        self._to_approve: list[_Access] = []

    def take(self, access: Logged) -> None:
        """An access of the day."""
        if access.outcome in FOLLOWING:
            return
        if access.outcome != "refused":
            self._given(access)
        if access.outcome != "unconfirmed":
            self.consulted.take(access, access.outcome)
        elif (ended := self._ended.get(decision := _decision(access))) is not None:
            self.consulted.take(access, ended)
        else:
            self._waiting[decision] = self._today[decision] = access

    def _given(self, access: Logged) -> None:
        approval, tenant, model = (_said(access, name) for name in ("approval_id", "tenant", "model"))
        said = access.body.get("approval_needed")
        needed = said if isinstance(said, bool) else None
        if tenant and model:
            self._recorded[tenant, model] += 1
        if approval:
            self._named.add(approval)
        if needed and model:
            self._sensitive.add(model)
        if needed is not False:
            self._to_approve.append((access.seq, access.recorded, approval, needed))

    def follow(self, entry: Logged) -> None:
        """Any entry of the exported range, of this day or the first minutes of the next, which may say what became of an access."""
        if entry.kind == INCIDENT:
            decision = _decision(entry)
            self._incidents.setdefault(decision, entry.seq)
            if (access := self._waiting.pop(decision, None)) is not None:
                self._late.append(Unmet(access, entry.seq))
        elif entry.kind == ACCESS and entry.outcome in FOLLOWING:
            decision = _decision(entry)
            self._ended[decision] = entry.outcome
            self._waiting.pop(decision, None)
            if (access := self._today.pop(decision, None)) is not None:
                self.consulted.take(access, entry.outcome)

    def decide(self, summary: Logged, decisions: int) -> None:
        """Decisions were counted; accesses of those of the first and last minute may have been recorded on the other side of midnight."""
        tenant, model, minute = (_said(summary, name) for name in ("tenant", "model", "minute"))
        begin, end = self._inside
        if summary.outcome == "allow" and tenant and model and minute and begin <= minute < end:
            self._counted[tenant, model] += decisions

    def finish(self) -> list[Unmet]:
        """What nobody confirmed in time, in the order of the log; no more is taken afterwards."""
        for access in self._today.values():
            self.consulted.take(access, "unconfirmed")
        found = [*self._late, *(Unmet(access, self._incidents.get(decision)) for decision, access in self._waiting.items())]
        return sorted(found, key=lambda unmet: unmet.access.seq)

    def approvals(self, entries: Iterable[Logged]) -> list[Logged]:
        """Those of `entries` that made the approvals which the day's accesses name."""
        return [entry for entry in entries if _said(entry, "approval_id") in self._named]

    def unapproved(self, standing: Iterable[Approval], *, all_older: bool, all_today: bool) -> Numbered | None:
        """Accesses that needed an approval and had none which covered them, by what their entries say of it.

        None where there may be some: an entry of before this was written down does not say it, an approval may only not have been read
        (unless `all_older`), or not what came after it (unless `all_today`).
        """
        known = {approval.id: approval for approval in standing}
        tally, doubts = Tally(), False
        for seq, at, name, needed in self._to_approve:
            approval = known.get(name) if name else None
            if approval is not None and approval.covers(at):
                doubts |= not all_today
            elif needed is None or (name and approval is None and not (all_older and all_today)):
                doubts = True
            else:
                tally.add(seq)
        found = tally.numbered()
        return None if doubts and not found.total else found

    def uncovered(self) -> list[str]:
        """Tenants and models with more counted decisions that gave access than accesses in the log.

        A model that became sensitive during the day is among them: of its decisions before there is no access.
        """
        pairs = [pair for pair, count in self._counted.items() if pair[1] in self._sensitive and count > self._recorded[pair]]
        return [f"{tenant} / {model}" for tenant, model in sorted(pairs)]


def _decision(entry: Logged) -> str:
    """What an access and what followed it have in common; one that names no decision is followed by nothing."""
    return _said(entry, "decision_id") or f"entry {entry.seq}"


def _said(entry: Logged, member: str) -> str | None:
    """What the entry has there, where it is text."""
    value = entry.body.get(member)
    return value if isinstance(value, str) else None
