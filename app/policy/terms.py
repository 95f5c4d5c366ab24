"""Terms: what a caller may do right now, combined from what each rule contributes (design, section 1)."""

from dataclasses import dataclass, field

BUCKETS = ("site", "model", "tenant", "tenant_model", "subject")
DIMENSIONS = ("qps", "tpm", "concurrency", "tokens_in_flight", "request_tokens")
MAX_FACTOR = 1.5


@dataclass(frozen=True, slots=True)
class Deny:
    """A refusal by a rule: `status` is what the gateway should answer (403 unless the rule says otherwise)."""

    rule: str
    code: str
    message: str
    status: int = 403
    waivable: bool = False


@dataclass(frozen=True, slots=True)
class Limit:
    """The smallest limit for one (bucket, dimension). Units: qps requests/s, tpm tokens/min, else counts."""

    rule: str
    bucket: str
    dimension: str
    limit: float
    burst: float | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """Multipliers of what one call spends: `requests` of qps; `input`, `output`, `cached` of tpm."""

    requests: float = 1.0
    input: float = 1.0
    output: float = 1.0
    cached: float = 1.0


@dataclass(frozen=True, slots=True)
class Obligation:
    """Something that must be done with an admitted request; `audit` is done here before the answer."""

    code: str
    retention_days: int | None = None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Terms:
    """The combination. Frozen and shared between callers with the same question."""

    revision: str
    denies: tuple[Deny, ...] = ()
    waived: tuple[Deny, ...] = ()
    limits: tuple[Limit, ...] = ()
    cost: Cost = field(default_factory=Cost)
    factors: tuple[tuple[str, float], ...] = ()
    """(dimension, product of the rules' factors held within 0..1.5); absent dimensions are 1."""
    shed: float = 0.0
    shed_rule: str | None = None
    obligations: tuple[Obligation, ...] = ()
    parts: tuple[tuple[str, dict[str, list[object]]], ...] = ()
    """Each rule's own outputs as OPA gave them, for `?explain` and `policy eval`."""
    degraded: bool = False
    """True where a substitute answer was used because OPA did not answer (design, section 7)."""
