"""The answer to a gateway and why, as a value, and its one rendering as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from app.limiter.charge import Level
from app.policy.terms import Obligation


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a request may not start: a stable code, the rule or bucket behind it, and when it frees where that is known."""

    code: str
    message: str
    rule: str | None = None
    bucket: str | None = None
    dimension: str | None = None
    limit: float | None = None
    observed: float | None = None
    frees_in_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What every decision carries, however it ends."""

    id: str
    revision: str | None
    quota_version: int | None
    generation: int | None
    age_ms: int | None
    degraded: bool
    node: str | None = None
    probe: bool = False
    """Whether the request would show that its node lives; nothing else is sent there."""
    explain: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision. `status` is what the gateway should answer its client; the HTTP answer of Sluice is 200 either way."""

    facts: Facts
    allow: bool
    status: int
    outcome: str
    """allow, deny, quota, shed or error: the label of the decisions metric."""
    reasons: tuple[Reason, ...] = ()
    retry_after_ms: int | None = None
    tokens_reserved: int = 0
    expires_in_ms: int = 0
    levels: tuple[Level, ...] = ()
    obligations: tuple[Obligation, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def probe(self) -> bool:
        """Whether this request is sent to a node to see whether it lives."""
        return self.allow and self.facts.probe

    def document(self) -> dict[str, Any]:
        """The wire shape, as docs/reference/http.md has it."""
        facts = self.facts
        document: dict[str, Any] = {
            "decision_id": facts.id,
            "allow": self.allow,
            "status": self.status,
            "reasons": [_reason(reason) for reason in self.reasons],
            "retry_after_ms": self.retry_after_ms,
            "replayed": False,
            "lease": {"expires_in_ms": self.expires_in_ms, "tokens_reserved": self.tokens_reserved} if self.allow else None,
            "limits": {level.bucket.dimension: _level(level) for level in self.levels},
            "obligations": [_obligation(obligation) for obligation in self.obligations],
            "node": facts.node if self.allow else None,
            "headers": self.headers,
            "policy": {"revision": facts.revision, "quota_version": facts.quota_version},
            "telemetry": {"generation": facts.generation, "age_ms": facts.age_ms, "degraded": facts.degraded},
        }
        if self.probe:
            document["telemetry"]["probe"] = True
        if facts.explain is not None:
            document["explain"] = facts.explain
        return document

    def json(self) -> bytes:
        """The document as JSON bytes."""
        return orjson.dumps(self.document())


def replayed(answer: bytes) -> bytes:
    """A recorded answer, marked as the replay it now is."""
    document = orjson.loads(answer)
    document["replayed"] = True
    return orjson.dumps(document)


RATES = ("qps", "tpm")
"""Their limit is what is earned a second or a minute; with a burst, more than that may be left."""

MAX_WHOLE = 2**53


def number(value: float) -> float | int:
    """Whole numbers without a decimal point: 50, not 50.0. Beyond 2^53 they stay floats, which JSON writers take at any size."""
    if abs(value) >= MAX_WHOLE:
        return float(value)
    return int(value) if value == int(value) else round(value, 3)


def _level(level: Level) -> dict[str, Any]:
    return {
        "bucket": level.bucket.kind,
        "limit": number(level.bucket.limit if level.bucket.dimension in RATES else level.bound),
        "remaining": int(level.remaining),
        "reset_ms": round(level.reset_ms),
    }


def _reason(reason: Reason) -> dict[str, Any]:
    document: dict[str, Any] = {"code": reason.code, "message": reason.message}
    for name in ("rule", "bucket", "dimension", "frees_in_ms"):
        if (value := getattr(reason, name)) is not None:
            document[name] = value
    for name in ("limit", "observed"):
        if (value := getattr(reason, name)) is not None:
            document[name] = number(value)
    return document


def _obligation(obligation: Obligation) -> dict[str, Any]:
    document: dict[str, Any] = {"code": obligation.code}
    if obligation.retention_days is not None:
        document["retention_days"] = obligation.retention_days
    if obligation.fields:
        document["fields"] = list(obligation.fields)
    return document
