"""The kinds of entries: what each says, how it can end, and which members it has beside the envelope.

This is the only list: an entry is checked against it before it is written, and docs/reference/log-entries.md is made of it.
A later version of a kind may add optional members; whoever reads passes over those it does not know.
"""

from collections.abc import Collection
from dataclasses import dataclass

ENVELOPE = {
    "v": "version of the envelope, a number",
    "id": "the entry's own id, a UUID of version 7",
    "kind": "what happened; the kinds are below",
    "recorded": "when it was written down: RFC 3339 in UTC with microseconds",
    "operator": "who did it: the name of a key, `cli:` and a user, or the part of Sluice that acted by itself",
    "tenant": "whom it concerns; null where it concerns no single tenant",
    "outcome": "how it ended; each kind has its own words",
}

MEMBERS = {
    "action": "what is done with the model, where that is `infer` or a word of the model's spec; any other text is sealed",
    "address": "the caller's address as a pseudonym of the tenant",
    "after": "the state that is now in force, complete",
    "approval_id": "id of the approval; where a request names none that is known, its text is sealed",
    "approval_needed": "whether the model's spec asked for an approval when it was decided",
    "article": "the article under which somebody asks",
    "at": "when it was done, which may be before it was written down",
    "base64": "what was handed over, or its first 64 KiB",
    "before": "the state that was in force before, complete",
    "breach": "id of the breach of personal data",
    "bytes": "length in bytes",
    "count": "how many there were",
    "decision_id": "the decision it belongs to",
    "diff": "what changed: a list of `path`, `before`, `after`",
    "end": "one past the last entry",
    "expires": "when it ends",
    "file": "name of the file",
    "files": "a list of files: `name`, `sm3`",
    "first": "number of the first entry",
    "from": "when it began",
    "kept_bytes": "how much of it is kept",
    "key": "id of an API key, or fingerprint of a signer's certificate",
    "last": "number of the last entry",
    "legal_basis": "the article and paragraph that it rests on",
    "lost": "how many decisions no summary counts, and how many other entries were dropped; absent where nobody knows",
    "minute": "the minute that is counted, by its beginning",
    "model": "id of the model",
    "obligations": "codes of the obligations that the gateway must confirm",
    "obligations_met": "codes of the obligations that the gateway says it met",
    "policy_revision": "revision of the rules",
    "previous_revision": "revision of the rules that were in force before, and stay where new ones are refused",
    "problem": "what was wrong, in words",
    "proposal": "id of the proposed change",
    "purpose": "what for, where the model's spec declares the word; any other text is sealed",
    "query": "what was asked for, by name",
    "quota_version": "version of the tenant's quota",
    "read": "what was read: `entries`, `entry`, `proof`, `export`, `report` or `approvals`",
    "reason": "why, as a code of Sluice",
    "reasons": "a list of `code` and `rule`",
    "refused": "how many decisions and changes were refused because their entries could not be written",
    "replica": "id of the process that counted, new at each start",
    "report": "id of the report",
    "request": "id of what a person asked for",
    "retention": "retention class",
    "row": "id under which it was handed over",
    "sealed": "texts about people by the member they would stand in, each encrypted under the key of the person they are about",
    "shelf": "retention class and month of recording",
    "sm3": "SM3 of what is meant, in hex",
    "subject": "the person or service behind the call, as a pseudonym of the tenant",
    "to": "when it ended",
    "use": "what the key is for: `api`, `log` or `report`",
    "waived": "a list of the refusals that were lifted: `code`, `rule`",
    "whom": "who was told: `authority` or `subjects`",
    "why": "what is wrong with it, in words",
    "zone": "the time zone whose day it is",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of entry; members are names of MEMBERS."""

    says: str
    outcomes: tuple[str, ...] = ("done",)
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()


def _kind(says: str, required: str, optional: str = "", outcomes: str = "done") -> Kind:
    must = frozenset(required.split())
    return Kind(says, tuple(outcomes.split()), must, frozenset(optional.split()) - must)


_REQUEST = "action address model policy_revision purpose quota_version sealed subject"
_DECISION = f"{_REQUEST} approval_id"

KINDS = {
    "quota.proposed": _kind("A change of a quota was proposed.", "proposal after diff", "before quota_version sealed"),
    "quota.approved": _kind("A proposed change of a quota was approved.", "proposal", "approval_id quota_version sealed"),
    "quota.refused": _kind("A proposed change of a quota was refused.", "proposal", "reasons sealed", outcomes="refused"),
    "quota.in_force": _kind("A quota was created or changed.", "quota_version after diff", "before proposal sealed"),
    "quota.rolled_back": _kind("A quota went back to what it was before.", "quota_version before after diff", "proposal reason sealed"),
    "quota.deleted": _kind("A tenant's quota was deleted.", "quota_version before diff", "proposal sealed"),
    "sensitive.access": _kind(
        "Access to a sensitive model was asked for: `unconfirmed` is allowed with obligations that only the gateway can meet, "
        "`confirmed` follows it when the gateway says that it met them, and `cancelled` when it says that the access was never used.",
        "decision_id model reasons",
        f"{_DECISION} approval_needed obligations obligations_met",
        outcomes="allowed refused unconfirmed confirmed cancelled",
    ),
    "obligation.unmet": _kind(
        "An access was given on obligations that the gateway had not confirmed when its lease ended: an incident. `reason` is how that "
        "ended: `settled` without confirming, `expired`, `released` by an operator, `stopped` with the process, or `killed` with it, which is "
        "found when the day's reports are made. A gateway that confirms later is told by a `confirmed` access after this.",
        "decision_id model obligations reason",
        _DECISION,
        outcomes="unmet",
    ),
    "policy.refusal": _kind(
        "A rule forbade a request for an ordinary model.", "decision_id model policy_revision reasons", _DECISION, outcomes="refused"
    ),
    "waiver.used": _kind(
        "Rules lifted a refusal of other rules for a request, which then was allowed or refused for other reasons.",
        "decision_id model policy_revision waived",
        _DECISION,
        outcomes="allowed refused",
    ),
    "decisions.minute": _kind(
        "Decisions of one minute, tenant, model and outcome were counted.",
        "minute count replica",
        "model",
        outcomes="allow deny quota shed error",
    ),
    "approval.asked": _kind("An approval was asked for.", "approval_id", f"{_REQUEST} expires"),
    "approval.approved": _kind("An approval was given.", "approval_id", f"{_REQUEST} expires"),
    "approval.refused": _kind("An approval was refused.", "approval_id", f"{_REQUEST} reasons", outcomes="refused"),
    "approval.revoked": _kind("An approval was taken back.", "approval_id", f"{_REQUEST} reasons"),
    "policy.activated": _kind("Rules came into force.", "policy_revision", "previous_revision"),
    "policy.refused": _kind(
        "New rules were refused; those in force stay.", "problem", "policy_revision previous_revision", outcomes="refused"
    ),
    "key.created": _kind("A key was made, of the API or to sign the log or the reports with.", "key use after"),
    "key.rotated": _kind("A key took the place of another.", "key use before after"),
    "key.revoked": _kind("A key was revoked.", "key use before", "reason"),
    "report.made": _kind(
        "The reports of a day were made, or could not be.", "report from to zone", "count files problem", outcomes="done failed"
    ),
    "log.read": _kind(
        "The log, or what it seals, was read, or somebody who may not was refused it. With a `step` in `query`, what was refused is that "
        "step of an approval.",
        "read",
        "count end file first query report sealed subject",
        outcomes="done refused",
    ),
    "subject.request": _kind(
        "A person asked at `from` for what the law gives them; `expires` is when the answer is due.",
        "request article subject from expires",
        "sealed",
    ),
    "subject.access": _kind(
        "A person was given what the log holds about them.",
        "subject",
        "count files legal_basis reasons request sealed",
        outcomes="done refused",
    ),
    "subject.erasure": _kind(
        "The key of a person was destroyed, and with it what was sealed under it.",
        "subject",
        "legal_basis reasons request sealed",
        outcomes="done refused",
    ),
    "subject.answer": _kind(
        "What a person asked for was answered outside of Sluice, or refused on a ground.",
        "request subject",
        "legal_basis reasons sealed",
        outcomes="done refused",
    ),
    "breach.known": _kind(
        "A breach of personal data became known at `from`; it is to be notified before `expires`.", "breach from expires", "count sealed"
    ),
    "breach.notified": _kind("The authority, or the people concerned, were told of a breach.", "breach whom at legal_basis", "sealed"),
    "audit.purge": _kind("Bodies went because their time was over; their leaves stay.", "shelf first last count", "files sm3"),
    "audit.gap": _kind("For a time entries could not be written, or more came than could be kept.", "from to reason", "lost refused"),
    "audit.malformed": _kind(
        "Something was handed over that is no entry; this stands in its place.",
        "row why retention bytes kept_bytes base64 sm3",
        outcomes="malformed",
    ),
}


def check(kind: str, outcome: str, members: Collection[str]) -> None:
    """Raises ValueError naming what is wrong with an entry of `kind` that ends in `outcome` and has `members`."""
    known = KINDS.get(kind)
    if known is None:
        raise ValueError(f"{kind!r} is no kind of entry; app/audit/records/kinds.py lists them")
    if outcome not in known.outcomes:
        raise ValueError(f"{kind}: outcome {outcome!r} is none of {', '.join(known.outcomes)}")
    if missing := sorted(known.required.difference(members)):
        raise ValueError(f"{kind}: {missing[0]} is missing")
    if unknown := sorted(set(members) - known.required - known.optional):
        raise ValueError(f"{kind}: {unknown[0]} is no member of it")
