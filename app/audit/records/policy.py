"""Entries of rules that came into force or were refused."""

from datetime import datetime

from app.audit.records.entry import SERVICE, Entry, make_entry

MOST_PROBLEM_CHARS = 4000  # the first lines of a compiler's errors; all of them are in serve's log


def policy_activated(*, recorded: datetime, revision: str, previous: str | None) -> Entry:
    """OPA runs `revision`; `previous` ran until then, None at a start."""
    details = {"policy_revision": revision, "previous_revision": previous}
    return make_entry("policy.activated", recorded=recorded, operator=SERVICE, tenant=None, outcome="done", details=details)


def policy_refused(*, recorded: datetime, problem: str, revision: str | None, previous: str | None) -> Entry:
    """Rules were refused for `problem`: a folder, which has no revision, or a bundle. `previous` stays in force."""
    readable = problem.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")  # names of files may hold any byte
    details = {"problem": readable[:MOST_PROBLEM_CHARS], "policy_revision": revision, "previous_revision": previous}
    return make_entry("policy.refused", recorded=recorded, operator=SERVICE, tenant=None, outcome="refused", details=details)
