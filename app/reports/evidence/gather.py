"""The evidence of one night, from one pass over the exported log. Pure.

Memory holds what facts.py keeps: the first MOST_LISTED entries of each kind but the summaries, and sums.
"""

from collections.abc import Callable, Iterable, Mapping

from app.instants import rfc3339
from app.reports.evidence.accesses import ACCESS, Accesses
from app.reports.evidence.approvals import APPROVAL_KINDS, approvals_at
from app.reports.evidence.completeness import is_readable
from app.reports.evidence.context import Context
from app.reports.evidence.counts import Coverage, Decisions, Kinds, Lists, is_summary
from app.reports.evidence.export import Gone, entries_of
from app.reports.evidence.facts import Declared, Evidence, Group, Integrity, Listed, Logged
from app.reports.evidence.integrity import with_unproven
from app.reports.evidence.registers import BREACH_KINDS, REQUEST_KINDS, breaches, subject_requests
from app.reports.nights.night import LATE, Night, counts_at

NOTHING_OLDER = Context()
NOTHING_DECLARED = Declared()
LATE_ONES = "late"
_GROUPS: Mapping[Group, tuple[str, ...]] = {"requests": REQUEST_KINDS, "breaches": BREACH_KINDS, "approvals": APPROVAL_KINDS}


def _ignore(_: Logged) -> None:
    """Nobody wants to see the entries."""


def gather(
    lines: Iterable[bytes],
    night: Night,
    integrity: Integrity,
    context: Context = NOTHING_OLDER,
    *,
    declared: Declared = NOTHING_DECLARED,
    each: Callable[[Logged], None] = _ignore,
) -> Evidence:
    """The evidence of `night` from the `lines` of the export that `integrity` tells of, with what the older log says in `context`.

    `each` is called with every entry of the night, summaries among them, in the order of the log: so that a table of all of them is
    written while they pass.
    """
    gathering = _Gathering(night, context, declared, each, joins=integrity.joins)
    for entry in entries_of(lines):
        gathering.take(entry)
    return gathering.evidence(integrity)


class _Gathering:
    """One pass."""

    def __init__(self, night: Night, context: Context, declared: Declared, each: Callable[[Logged], None], *, joins: int | None) -> None:
        self._night, self._context, self._declared, self._each = night, context, declared, each
        self._begin, self._before_closed = rfc3339(night.begin), rfc3339(night.begin + LATE)
        self._kinds, self._lists, self._coverage = Kinds(), Lists(), Coverage()
        self._decisions = Decisions(night)
        self._accesses = Accesses(night, declared, context.older.get("unconfirmed", ()))
        self._late = Lists()
        self._entries = self._purged = 0
        self._newest, self._joins = "", joins

    def take(self, entry: Logged | Gone) -> None:
        """The next entry of the file."""
        if isinstance(entry, Gone):
            self._purged += self._night.spans(entry.leaf.recorded)
            return
        self._newest = max(self._newest, entry.recorded)
        minute = entry.body.get("minute")
        at = counts_at(entry.kind, entry.recorded, minute if isinstance(minute, str) else None)
        if self._night.spans(at):
            self._of_the_day(entry)
        elif at < self._begin and self._too_late(entry):
            self._late.take(LATE_ONES, entry)
        self._accesses.follow(entry)

    def _too_late(self, entry: Logged) -> bool:
        """Whether an entry of a day before is not in the report of that day: what is in that one's file is, where this one joins it."""
        return self._newest >= self._before_closed if self._joins is None else entry.seq >= self._joins

    def _of_the_day(self, entry: Logged) -> None:
        self._entries += 1
        self._each(entry)
        self._kinds.take(entry)
        self._coverage.take(entry)
        if is_summary(entry):
            decisions = self._decisions.take(entry)
            self._coverage.decide(entry, decisions)
            self._accesses.decide(entry, decisions)
            return
        self._lists.take(entry.kind, entry)
        if entry.kind == ACCESS:
            self._accesses.take(entry)

    def evidence(self, integrity: Integrity) -> Evidence:
        """All of it."""
        context, listed = self._context, self._lists.listed()
        for incident in context.older.get("incidents", ()):
            self._accesses.follow(incident)
        unmet = self._accesses.finish()
        cut_today = frozenset(group for group, kinds in _GROUPS.items() if any(listed.get(kind, Listed()).more for kind in kinds))
        approvals = self._with_older("approvals", APPROVAL_KINDS, listed)
        standing = approvals_at(approvals, rfc3339(self._night.end))
        return Evidence(
            night=self._night,
            integrity=with_unproven(integrity, context.unproven),
            first=integrity.report.first,
            end=integrity.report.end,
            entries=self._entries,
            kinds=self._kinds.counts(),
            decisions=self._decisions.counts(),
            operators=self._coverage.operators(),
            tenants=self._coverage.tenants(context.tenants),
            listed=listed,
            consultations=self._accesses.consulted.rows(),
            more_consultations=self._accesses.consulted.more,
            unmet=unmet,
            retention=context.retention,
            requests=subject_requests(self._with_older("requests", REQUEST_KINDS, listed)),
            breaches=breaches(self._with_older("breaches", BREACH_KINDS, listed)),
            approvals=self._accesses.approvals(approvals),
            standing=standing,
            unapproved=self._accesses.unapproved(
                standing, all_older="approvals" not in context.cut, all_today="approvals" not in cut_today
            ),
            incomplete=self._kinds.incomplete.numbered(),
            declared=self._declared,
            uncovered=self._accesses.uncovered(),
            late=self._late.listed().get(LATE_ONES, Listed()),
            late_decisions=self._decisions.late,
            purged=self._purged,
            sealed=dict(sorted(self._coverage.sealed.items())),
            cut=context.cut | cut_today,
            rules=next((revision for entry in context.older.get("rules", ()) if (revision := entry.body.get("policy_revision"))), None),
            older=tuple(context.proofs.items()),
        )

    def _with_older(self, group: str, kinds: Iterable[str], listed: dict[str, Listed]) -> list[Logged]:
        """The entries of these kinds until the end of the day, in the order of the log; one that lacks something says nothing."""
        today = [entry for kind in kinds for entry in listed.get(kind, Listed()).entries]
        found = {entry.seq: entry for entry in (*self._context.older.get(group, ()), *today) if is_readable(entry)}
        return [found[seq] for seq in sorted(found)]
