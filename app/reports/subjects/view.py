"""One entry as a person is shown it: what concerns them, and nothing of anybody else. Pure.

Members are named one by one, so that a new one is hidden until somebody has thought about it. Who acted is masked (CJEU C-579/21: the
dates and purposes of each consultation, not the names of those who consulted), and so is, for those who operate, whom they acted on.
Texts open only where they are sealed under the person's own key and are stated about the person; why somebody asked, allowed or refused
something, and what they noted, is written by others and may name third ones (GDPR Art. 15(4)): it is withheld, from whomever.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from app.audit.people.subject_keys import KeptKey, Keyring
from app.audit.reading.proven import Proven
from app.audit.records.entry import SERVICE
from app.audit.records.kinds import KINDS
from app.reports.subjects.person import Person, Role, is_key_of

_COMMON = {"article", "at", "count", "expires", "from", "legal_basis", "minute", "model", "policy_revision", "previous_revision", "read"}
_SUBJECT = _COMMON | {
    *("action", "approval_id", "decision_id", "end", "first", "obligations", "obligations_met"),
    *("purpose", "quota_version", "reason", "reasons", "request", "to", "waived"),
}
MEMBERS: Mapping[Role, frozenset[str]] = {
    "subject": frozenset(_SUBJECT),
    "tenant": frozenset(_SUBJECT | {"after", "before", "diff", "proposal"}),
    "operator": frozenset(_COMMON | {"to", "use", "zone"}),
}
"""What each is shown beside the envelope. Of those who operate neither ids of decisions and requests nor what they looked for."""

STATED = frozenset({"action", "address", "approval_id", "purpose", "subject"})
"""Sealed members that a request or its gateway states about the person; all others are somebody's words."""

_OWN_KEY = ("expires", "roles")
"""What an operator is shown of the state of the API key that they present; its tenants may be persons."""
_TENANT_MASK, _OPERATOR_MASK = "tenant", "operator"
YOURSELF = "yourself"
"""Who did something, where that is the person."""


class Masks:
    """Numbers in place of names, in the order in which they are met."""

    def __init__(self, person: Person) -> None:
        self._person = person
        self._numbers: dict[tuple[str, str], int] = {}
        self._counts: Counter[str] = Counter()

    def operator(self, name: str) -> str:
        """`operator #1`; `yourself` where it is the person; Sluice itself is no person."""
        if name == SERVICE:
            return name
        return YOURSELF if self._person.role == "operator" and name == self._person.name else self._masked(_OPERATOR_MASK, name)

    def tenant(self, tenant: str | None) -> str | None:
        """The tenant of a person who has one; `tenant #1` for those who operate, since a tenant may be a person."""
        return tenant if tenant is None or self._person.role != "operator" else self._masked(_TENANT_MASK, tenant)

    def _masked(self, what: str, name: str) -> str:
        if (what, name) not in self._numbers:
            self._counts[what] += 1
            self._numbers[what, name] = self._counts[what]
        return f"{what} #{self._numbers[what, name]}"


@dataclass(frozen=True, slots=True)
class Texts:
    """What an entry has sealed; each member is in exactly one of the four."""

    opened: Mapping[str, str] = field(default_factory=dict, repr=False)
    erased: tuple[str, ...] = ()
    """The person's key is destroyed."""
    unreadable: tuple[str, ...] = ()
    """The key or the text was damaged, or the key is gone and nobody knows whose it was."""
    withheld: tuple[str, ...] = ()
    """Written by or about somebody else."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One entry as the person is shown it."""

    seq: int
    recorded: str
    kind: str
    outcome: str
    by: str
    tenant: str | None
    members: Mapping[str, Any]
    texts: Texts
    retention: str
    kept_until: str
    """The day, UTC, until which it must be kept, at least."""
    leaf: str
    """What is hashed of it (docs/log-format.md)."""
    path: tuple[str, ...]
    """From its hash to the root of the checkpoint, in hex, leaf side first."""

    @property
    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        texts = self.texts
        hidden = {name: list(value) for name in ("erased", "unreadable", "withheld") if (value := getattr(texts, name))}
        return {
            "number": self.seq,
            "recorded": self.recorded,
            "kind": self.kind,
            "meaning": KINDS[self.kind].says if self.kind in KINDS else None,
            "outcome": self.outcome,
            "by": self.by,
            "tenant": self.tenant,
            **self.members,
            **({"texts": dict(texts.opened)} if texts.opened else {}),
            **hidden,
            "retention": self.retention,
            "kept_until": self.kept_until,
            "proof": {"leaf": self.leaf, "path": list(self.path)},
        }


def texts_of(entry: Proven, person: Person, pseudonym: str, key: KeptKey | None, others: frozenset[str]) -> Texts:
    """What of the sealed texts of `entry` the person is shown. `others`: those under keys of somebody else."""
    opened: dict[str, str] = {}
    hidden: dict[str, list[str]] = {"erased": [], "unreadable": [], "withheld": []}
    keyring = key.keyring if key else Keyring({})
    about = entry.body.get("subject") == pseudonym
    for member, sealed in entry.body.get("sealed", {}).items():
        if sealed in others or member not in STATED:
            hidden["withheld"].append(member)
            continue
        try:
            text = keyring.open(UUID(entry.logged.leaf.identity), member, sealed)
        except ValueError:
            hidden["unreadable"].append(member)
            continue
        if text is None:
            # What is stated about a person is sealed under that person's key; of other entries nobody can tell whose is gone.
            damaged = key is not None and key.key is None
            hidden["erased" if about and not damaged else "unreadable"].append(member)
        elif person.role == "operator":
            hidden["withheld"].append(member)
        else:
            opened[member] = text
    return Texts(opened, *(tuple(hidden[name]) for name in ("erased", "unreadable", "withheld")))


def shown(entry: Proven, person: Person, masks: Masks, texts: Texts) -> Shown:
    """`entry` as `person` is shown it."""
    body, leaf = entry.body, entry.logged.leaf
    members = {name: body[name] for name in sorted(MEMBERS[person.role] & body.keys())}
    if person.role == "operator" and is_key_of(body, person.name):
        members |= {name: _own_key(body[name]) for name in ("before", "after") if isinstance(body.get(name), Mapping)}
    return Shown(
        seq=entry.logged.seq,
        recorded=leaf.recorded,
        kind=body["kind"],
        outcome=str(body.get("outcome", "")),
        by=masks.operator(str(body.get("operator", ""))),
        tenant=masks.tenant(body.get("tenant")),
        members=members,
        texts=texts,
        retention=leaf.retention,
        kept_until=_kept_until(leaf.recorded, leaf.retention),
        leaf=leaf.text.decode(),
        path=tuple(step.hex() for step in entry.path),
    )


def _own_key(state: Mapping[str, Any]) -> dict[str, Any]:
    return {name: state[name] for name in _OWN_KEY if name in state}


def _kept_until(recorded: str, retention: str) -> str:
    return (date.fromisoformat(recorded[:10]) + timedelta(days=int(retention.removeprefix("d")))).isoformat()
