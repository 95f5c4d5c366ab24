"""What the limiter is asked and what it answers: charges over buckets, all or none, and a lease for what was spent."""

from dataclasses import dataclass
from math import floor

from app.limiter import gcra

ROUNDING = 1e-9
"""Forgiven where a limit or a price times a factor falls just beside a whole number."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """One bucket that a request must pass.

    `key` is the kind, then the owner with the tenant first: ("site",), ("model", "m"), ("tenant", "a"),
    ("tenant_model", "a", "m"), ("subject", "a", "s"). One charge names a key and dimension once.
    """

    kind: str
    key: tuple[str, ...]
    dimension: str
    limit: float
    """qps: requests/s; tpm: tokens/min; concurrency: leases; tokens_in_flight, request_tokens: tokens."""
    burst: float | None = None
    """Capacity of a qps or tpm bucket; None: one second's (at least 1), or one minute's budget. Of tokens_in_flight the most that
    its limit may become: who is larger than the limit of the moment waits; None: the limit stays what it is."""
    factor: float = 1.0
    """0..1.5; price = min(capacity, cost / factor); concurrency compares with max(1, limit * factor); 0 sheds."""

    @property
    def capacity(self) -> float:
        """What a request may cost at most, before any factor: what rates and tokens in flight hold at best, the others their limit."""
        if self.dimension in ("qps", "tpm"):
            return gcra.capacity(self.limit, self.burst)
        return self.burst if self.dimension == "tokens_in_flight" and self.burst is not None else self.limit

    @property
    def bound(self) -> float:
        """What the bucket is filled up to: its capacity; whole tokens; as many slots as the factor leaves, at least one."""
        if self.dimension == "concurrency":
            return float(max(1, floor(self.limit * self.factor + ROUNDING)))
        return float(floor(self.limit)) if self.dimension == "tokens_in_flight" else self.capacity


@dataclass(frozen=True, slots=True)
class Charge:
    """One request's spending. Token counts are real tokens; `requests_cost` etc. are the terms' multipliers."""

    lease_id: str
    buckets: tuple[Bucket, ...]
    prompt_tokens: int
    max_tokens: int
    """Output tokens reserved, already multiplied by the number of choices."""
    requests_cost: float = 1.0
    input_cost: float = 1.0
    output_cost: float = 1.0
    cached_cost: float = 1.0
    ttl_ms: float = 30_000.0
    scope: str = ""
    """Who may see and end the lease: credential id."""
    tenant: str = ""
    model: str = ""
    request_key: tuple[str, ...] | None = None
    """(credential, tenant, request_id), or None without a request_id."""
    request_digest: bytes = b""
    node: str | None = None
    """Where the request is sent; None where no node is known. A name from the settings, shared by all its leases."""


@dataclass(frozen=True, slots=True)
class Level:
    """A bucket after the step, in its own units: for headers and `limits`."""

    bucket: Bucket
    remaining: float
    reset_ms: float
    """Until it is full again (0 for counts), at most 30 days."""

    @property
    def bound(self) -> float:
        """What `remaining` is out of, in the bucket's units."""
        return self.bucket.bound


@dataclass(frozen=True, slots=True)
class Refusal:
    """One bucket that did not pass. `frees_in_ms` None: waiting cannot help (larger than the bucket) or unknown; at most 30 days."""

    bucket: Bucket
    observed: float
    """What the request would have brought the bucket to, in its units; alone, where it is larger than the bucket."""
    frees_in_ms: float | None
    over_capacity: bool = False
    shed: bool = False
    """True where factor 0 closed the bucket for now."""

    @property
    def bound(self) -> float:
        """What `observed` went over, in the bucket's units: of a larger request the capacity, 0 of a closed bucket."""
        if self.over_capacity:
            return self.bucket.capacity
        return 0.0 if self.shed else self.bucket.bound


@dataclass(frozen=True, slots=True)
class Spent:
    """The answer: admitted with `levels` (tightest per dimension) or refused with every bucket that did not pass."""

    admitted: bool
    levels: tuple[Level, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    tokens_reserved: int = 0
    expires_in_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What the gateway reports when it settles.

    A count that is None or negative keeps the reserved figure and is flagged `estimated`; cached tokens that are
    negative or more than the prompt are taken for 0 and flagged `cached_implausible`.
    """

    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int = 0
    outcome: str = "completed"


@dataclass(frozen=True, slots=True)
class Settlement:
    """Answer of a settle: what was charged in the end."""

    lease_id: str
    outcome: str
    tokens_charged: float
    """Weighted tokens of tpm: input*cost + output*cost + cached*cost, before factors."""
    refunded: float
    """Weighted tokens less than were charged before; negative where more was used. A bucket gets back what it has not earned since."""
    freed: bool
    """False where the slot had been freed before (expired, released, or a correction of an earlier settle)."""
    repeated: bool
    """True where the same settle had been taken before: this is its answer again, nothing changed now."""
    flags: tuple[str, ...] = ()
    """estimated, cached_implausible, over_reserved (more completion than reserved)."""
    note: bytes | None = None
    """What whoever admitted the request keeps with the lease."""


@dataclass(frozen=True, slots=True)
class LiveLease:
    """A lease in flight, as operators see it."""

    lease_id: str
    scope: str
    tenant: str
    model: str
    node: str | None
    tokens_reserved: int
    age_ms: float
    expires_in_ms: float
