"""Entries of the compliance reports of a day: that they were made, or could not be."""

from collections.abc import Iterable
from datetime import datetime

from app.audit.records.entry import Entry, make_entry
from app.instants import Period, rfc3339

MOST_PROBLEM_CHARS = 4000
"""All of it is in the log of the process that failed."""


def report_made(
    *, recorded: datetime, operator: str, report: str, period: Period, zone: str, files: Iterable[tuple[str, str]], count: int
) -> Entry:
    """The reports of `period`, a day of `zone`, are whole and signed. `files`: name and SM3 in hex of each; `count`: entries of that day."""
    named = [{"name": name, "sm3": sm3} for name, sm3 in files]
    details = _day(report, period, zone) | {"files": named, "count": count}
    return make_entry("report.made", recorded=recorded, operator=operator, tenant=None, outcome="done", details=details)


def report_failed(*, recorded: datetime, operator: str, report: str, period: Period, zone: str, problem: str) -> Entry:
    """They could not be made, for `problem`, which may be any text."""
    readable = problem.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")  # names of files may hold any byte
    details = _day(report, period, zone) | {"problem": readable[:MOST_PROBLEM_CHARS]}
    return make_entry("report.made", recorded=recorded, operator=operator, tenant=None, outcome="failed", details=details)


def _day(report: str, period: Period, zone: str) -> dict[str, object]:
    return {"report": report, **{name: rfc3339(at) for name, at in zip(("from", "to"), period.bounds.values(), strict=True)}, "zone": zone}
