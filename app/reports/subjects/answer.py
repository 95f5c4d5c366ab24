"""What one person is told, beside the entries themselves: who asks, under which checkpoint, how much of what, and how their key stands."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from app.audit.people.subject_keys import KeptKey
from app.audit.reading.proven import Closing
from app.instants import rfc3339
from app.reports.evidence.facts import SubjectRequest
from app.reports.subjects.person import Person
from app.reports.subjects.view import YOURSELF, Shown

_NEVER = "9999"
"""Later than all times of the log."""
_ASKING = frozenset({"subject.request", "subject.access", "subject.answer", "log.read"})
"""Kinds of entries that somebody else's asking leaves about a person: under a name that was mistyped there are these alone."""

KeyState = Literal["none", "kept", "damaged", "renewed", "replaced", "erased", "missing"]


@dataclass(slots=True)
class Summary:
    """Of the entries that went by, one after the other."""

    entries: int = 0
    met: int = 0
    """Those that tell of more than that somebody asked about the person."""
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By kind and outcome."""
    retention: Counter[str] = field(default_factory=Counter)
    opened: int = 0
    """Texts that stand in clear."""
    erased: int = 0
    unreadable: int = 0
    withheld: int = 0
    first: str | None = None
    """When the first entry was recorded."""
    last: str | None = None
    erased_at: str | None = None
    """When the person's key was last destroyed, as the log has it."""

    def add(self, entry: Shown) -> None:
        """Count one more entry."""
        self.entries += 1
        self.met += entry.kind not in _ASKING or entry.by == YOURSELF
        self.kinds[entry.kind, entry.outcome] += 1
        self.retention[entry.retention] += 1
        texts = entry.texts
        self.opened += len(texts.opened)
        self.erased += len(texts.erased)
        self.unreadable += len(texts.unreadable)
        self.withheld += len(texts.withheld)
        self.first = min(self.first or entry.recorded, entry.recorded)
        self.last = max(self.last or entry.recorded, entry.recorded)
        if (entry.kind, entry.outcome) == ("subject.erasure", "done"):
            self.erased_at = entry.recorded


@dataclass(frozen=True, slots=True)
class Responsible:
    """Who is responsible for what system, as the settings name them; empty where nobody did."""

    organization: str = ""
    system: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The report for one person, all but its entries."""

    id: str
    """Of the entry of the log that says that the report was made."""
    made: datetime
    person: Person
    pseudonym: str
    legal_basis: str
    request: SubjectRequest | None
    closing: Closing
    key: KeptKey | None
    held: Mapping[str, int]
    """Rows of the registry, by table."""
    by: Responsible

    @property
    def name(self) -> str:
        """By which its files begin: it names nobody."""
        return f"subject-{self.id}"

    def key_state(self, summary: Summary) -> KeyState:
        """How the person's key stands. `missing`: texts are sealed under it, it is gone, and no entry says why.

        Somebody who is met again after that has another key: `renewed` after an erasure, `replaced` where no entry says why.
        """
        if self.key is not None and self.key.key is None:
            return "damaged"
        if self.key is not None and (summary.erased or rfc3339(self.key.created) > (summary.erased_at or _NEVER)):
            return "replaced" if summary.erased_at is None else "renewed"
        if self.key is not None:
            return "kept"
        if summary.erased_at is not None:
            return "erased"
        return "missing" if summary.erased else "none"
