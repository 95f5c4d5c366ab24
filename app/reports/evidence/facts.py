"""What a night's log says, as reports are made of it. Pure values.

All that the day says comes from one export of the log that the verifier has checked; entries are named by their numbers, and the export
that is filed with the reports proves each of them. What is older comes from the log itself, each entry with a proof that leads to the
checkpoint which closes that export.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from app.audit.format.checkpoint import Checkpoint
from app.audit.verification.report import Report
from app.reports.nights.night import Night

MOST_LISTED = 20_000
"""Entries of a kind that are kept and printed; all are counted, and all stand in the CSV."""


@dataclass(frozen=True, slots=True)
class Logged:
    """An entry of the log, its body parsed."""

    seq: int
    body: Mapping[str, Any]
    retention: str

    @property
    def kind(self) -> str:
        """What happened (app/audit/records/kinds.py)."""
        return str(self.body["kind"])

    @property
    def outcome(self) -> str:
        """How it ended."""
        return str(self.body.get("outcome", ""))

    @property
    def recorded(self) -> str:
        """When, RFC 3339 in UTC with microseconds."""
        return str(self.body["recorded"])


@dataclass(frozen=True, slots=True)
class Listed:
    """The entries of a kind, by number: the first MOST_LISTED of `total`."""

    entries: Sequence[Logged] = ()
    total: int = 0

    @property
    def more(self) -> int:
        """How many are not among `entries`."""
        return self.total - len(self.entries)


@dataclass(frozen=True, slots=True)
class Numbered:
    """How many there are of something, and the numbers of the first of them, as many as a clause shows."""

    total: int = 0
    entries: Sequence[int] = ()


MOST_SHOWN = 20
"""Numbers of entries that stand beside one figure."""


@dataclass(frozen=True, slots=True)
class KindCount:
    """How many entries there are of a kind and outcome, and which are the first and last."""

    kind: str
    outcome: str
    count: int
    first: int
    last: int
    complete: int
    """How many of them have all that an audit record must have: date and time, user, kind of event, and how it ended."""


@dataclass(frozen=True, slots=True)
class DecisionCount:
    """Decisions of one tenant, model and outcome in one hour, counted from the minute summaries."""

    hour: datetime
    """Its beginning, in UTC. Where a zone is not whole hours from UTC, the hour of the zone's clock."""
    tenant: str | None
    model: str | None
    outcome: str
    count: int


@dataclass(frozen=True, slots=True)
class Covered:
    """What the log has of one user, that is a key's name, `cli:` user or part of Sluice, or of one tenant."""

    name: str
    entries: int
    decisions: int = 0
    """Of a tenant: how many decisions its summaries count."""
    first: int | None = None
    """The number of its first entry of the day."""


@dataclass(frozen=True, slots=True)
class Consultations:
    """What was done with the data of one person: accesses by one subject, model, purpose, and how they ended."""

    subject: str
    """Pseudonym."""
    tenant: str
    model: str
    purpose: str | None
    """None where it stands sealed in the log."""
    outcome: str
    count: int
    first: str
    last: str
    retention: str


Status = Literal["open", "done", "refused"]


@dataclass(frozen=True, slots=True)
class SubjectRequest:
    """What a person asked for, as it stood when the day ended."""

    id: str
    tenant: str | None
    subject: str
    article: str
    asked: str
    due: str
    status: Status
    answered: str | None = None
    ground: str | None = None
    """Why it was refused: the article and paragraph, or the code of the reason."""
    entries: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Breach:
    """A breach of personal data, as it stood when the day ended."""

    id: str
    tenant: str | None
    known: str
    due: str
    """72 hours after it became known (GDPR Art. 33(1))."""
    people: int | None
    notified: Mapping[str, str] = field(default_factory=dict)
    """When whom: `authority`, `subjects`."""
    entries: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Unmet:
    """An access of the day, or of the day before, whose obligations nobody confirmed in time.

    In time is before its lease ended, of which an incident tells, and else before the day's report could be made.
    """

    access: Logged
    incident: int | None
    """Number of the entry that says so; None where there is none: its lease had not ended, or the process that should have written it."""


RootFrom = Literal["given", "pinned", "log"]
"""Where the root certificate comes from that the log is checked under: from elsewhere; from the log, as in an earlier report; from the log alone."""


@dataclass(frozen=True, slots=True)
class Integrity:
    """What checking the exported log found, and what protects it."""

    report: Report
    """The verifier's own."""
    text: Sequence[str]
    """The same as `sluice audit verify` prints it."""
    note: str
    """The checkpoint that closes the export, as signed."""
    root: str
    """SM3 fingerprint of the root certificate of the log, in hex."""
    anchors: int
    """Checkpoints kept elsewhere that were compared; 0 where none were given."""
    root_from: RootFrom = "given"
    joins: int | None = None
    """The number of the entry at which the file of the day before ended, by its signed report; None where none was there."""
    unproven: Sequence[int] = ()
    """Numbers of older entries that the reports needed, and that no proof leads from to the closing checkpoint: they are left out."""

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong with what the reports are made from."""
        return self.report.verdict == "whole" and not self.unproven


@dataclass(frozen=True, slots=True)
class Closing:
    """The checkpoint that closes the export, which the verifier accepted: under it older entries are proven."""

    checkpoint: Checkpoint
    note: str
    """The same as signed."""


@dataclass(frozen=True, slots=True)
class RetentionClass:
    """What the log holds of one retention class: how long it must be kept, and since when there is something."""

    name: str
    days: int
    oldest: str | None
    """When its oldest body that is still there was recorded, by its proven leaf; None where there is none, or no proof of it."""
    entries: int | None
    """How many bodies are there; None where counting took too long."""
    seq: int | None = None
    """The number of the oldest."""


ApprovalState = Literal["asked", "approved", "refused", "revoked", "expired"]


@dataclass(frozen=True, slots=True)
class Approval:
    """An approval as it stood when the day ended."""

    id: str
    state: ApprovalState
    asked_by: str | None
    """Who asked, as an operator; None where the log does not have it any more."""
    decided_by: str | None
    """Who approved or refused it; None where nobody did."""
    begins: str | None
    """When it was given."""
    expires: str | None
    revoked: str | None
    """When it was taken back."""
    model: str | None = None
    tenant: str | None = None
    entries: Sequence[int] = ()

    @property
    def by_oneself(self) -> bool:
        """Whether who asked approved it, too: that must not be."""
        return self.begins is not None and self.asked_by == self.decided_by

    def covers(self, at: str) -> bool:
        """Whether it was given, and neither over nor taken back, at the instant `at`."""
        ends = min(filter(None, (self.expires, self.revoked)), default=None)
        return self.begins is not None and self.begins <= at and (ends is None or at < ends)


@dataclass(frozen=True, slots=True)
class Declared:
    """Models of the catalogue as it is when the reports are made: which are sensitive, and which of those need an approval.

    It only says of which models there must be accesses; what an access needed says its entry.
    """

    sensitive: frozenset[str] = frozenset()
    approval: frozenset[str] = frozenset()


Group = Literal["tenants", "requests", "breaches", "approvals", "unconfirmed", "incidents", "retention", "rules"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that the reports of one night are made of."""

    night: Night
    integrity: Integrity
    first: int
    """Numbers [first, end) of the exported entries; those of other days between them are not counted below."""
    end: int
    entries: int
    """Of this day."""
    kinds: Sequence[KindCount] = ()
    decisions: Sequence[DecisionCount] = ()
    operators: Sequence[Covered] = ()
    tenants: Sequence[Covered] = ()
    """All that have a quota or appear in the log of the day; `entries` is 0 where nothing was written of one."""
    listed: Mapping[str, Listed] = field(default_factory=dict)
    """By kind, all but the summaries."""
    consultations: Sequence[Consultations] = ()
    unmet: Sequence[Unmet] = ()
    retention: Sequence[RetentionClass] = ()
    requests: Sequence[SubjectRequest] = ()
    breaches: Sequence[Breach] = ()
    approvals: Sequence[Logged] = ()
    """The entries, of whatever day, that made the approvals which the day's accesses name."""
    standing: Sequence[Approval] = ()
    """All approvals of which the log has something until the day's end."""
    declared: Declared = Declared()
    uncovered: Sequence[str] = ()
    """Tenants and models, as `tenant / model`, with more counted decisions that allow the model, which is sensitive, than the day has accesses."""
    unapproved: Numbered | None = Numbered()
    """Accesses that needed an approval, by what their entries say, given without one that covered them; None where that cannot be known."""
    incomplete: Numbered = Numbered()
    """Entries of the day that lack something of what an audit record must have."""
    late: Listed = Listed()
    """Entries of earlier days that came into the log only when the reports of their day could already be made."""
    late_decisions: int = 0
    """How many of the decisions were counted too late for the day of their minute; they stand in the hour in which they were written down."""
    purged: int = 0
    """Entries that were recorded on this day and whose bodies are gone: what they said is not known, and not counted."""
    sealed: Mapping[str, int] = field(default_factory=dict)
    """How many texts about people the entries of the day have sealed, by the member that they would stand in."""
    more_consultations: int = 0
    """Accesses beyond those that `consultations` has room for; the CSV has all."""
    cut: frozenset[Group] = frozenset()
    """Of what there is more than a report reads, or something that is not proven: what depends on all of it is unknown."""
    rules: str | None = None
    """Revision of the rules that came into force last before the day; None where none did, or it is not proven."""
    older: Sequence[tuple[int, str]] = ()
    """Numbers of the older entries that the reports are made of, each with its proof as text (app/audit/format/proof_file.py)."""

    def of(self, kind: str) -> Listed:
        """The entries of `kind`."""
        return self.listed.get(kind, Listed())
