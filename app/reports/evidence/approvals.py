"""Approvals as they stood at an instant, by their entries alone. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from app.reports.evidence.facts import Approval, ApprovalState, Logged

APPROVAL_KINDS = ("approval.asked", "approval.approved", "approval.refused", "approval.revoked")


def approvals_at(entries: Iterable[Logged], at: str) -> list[Approval]:
    """The approvals among `entries`, which are in the order of the log, as they stood at `at`; other kinds are passed over.

    The first decision counts: what was refused or is over cannot be approved by another entry.
    """
    found: dict[str, Approval] = {}
    for entry in entries:
        name = entry.body.get("approval_id")
        if entry.kind not in APPROVAL_KINDS or not isinstance(name, str):
            continue
        known = found.get(name) or Approval(name, "asked", None, None, None, None, None)
        found[name] = replace(_after(known, entry), entries=(*known.entries, entry.seq))
    return [_at(approval, at) for approval in found.values()]


def _after(approval: Approval, entry: Logged) -> Approval:
    body, operator = entry.body, entry.body.get("operator")
    state: ApprovalState
    match entry.kind.removeprefix("approval."), approval.state:
        case "asked", "asked":
            return _with(replace(approval, asked_by=approval.asked_by or operator), body)
        case "approved", "asked":
            state = "approved"
            return _with(replace(approval, state=state, decided_by=operator, begins=entry.recorded), body)
        case "refused", "asked":
            return replace(approval, state="refused", decided_by=operator)
        case "revoked", "asked" | "approved":
            return replace(approval, state="revoked", revoked=entry.recorded)
    return approval


def _with(approval: Approval, body: Mapping[str, Any]) -> Approval:
    """What the entry says of what is approved; the newest word counts, as who approves may shorten it."""
    return replace(
        approval,
        expires=body.get("expires", approval.expires),
        model=body.get("model", approval.model),
        tenant=body.get("tenant") or approval.tenant,
    )


def _at(approval: Approval, at: str) -> Approval:
    over = approval.state in ("asked", "approved") and approval.expires is not None and approval.expires <= at
    return replace(approval, state="expired") if over else approval
