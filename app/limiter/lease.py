"""A lease: what one admitted request was charged, who may end it, and what its end came to."""

from collections.abc import Iterable
from dataclasses import dataclass
from sys import getsizeof
from typing import Literal

from app.limiter.charge import Bucket, Charge, LiveLease, Settlement, Usage

LEAST_TOKENS = 1
"""Reserved at least, so that a request that names no tokens is never free."""

RECORD_BYTES = 1400
"""One lease without its answer and the texts of its request, measured: usage, settlement, prices, places in the indexes."""

BUCKET_BYTES = 200
"""One bucket and its key without its text, measured: counted with the first lease that keeps it."""


State = Literal["live", "settled", "expired", "released", "cancelled"]
"""How a lease stands; once it has ended, also the metric's label."""

ENDS: tuple[State, ...] = ("settled", "expired", "released", "cancelled")


@dataclass(frozen=True, slots=True)
class Noted:
    """A lease that has a note, for whoever left it there."""

    lease_id: str
    state: State
    note: bytes


@dataclass(slots=True, eq=False, repr=False)
class Lease:
    """One lease and, after its end, its record: values only, since hundreds of thousands are kept at a time."""

    lease_id: str
    scope: str
    tenant: str
    model: str
    node: str | None
    prompt_tokens: int
    max_tokens: int
    input_cost: float
    output_cost: float
    cached_cost: float
    request_key: tuple[str, ...] | None
    request_digest: bytes
    started_ms: float
    expires_ms: float
    weighted_tokens: float
    """Charged to tpm before factors: first as reserved, then as used."""
    size_bytes: int = 0
    """What keeping it takes, its answer aside."""
    buckets: tuple[Bucket, ...] = ()
    prices: tuple[float, ...] = ()
    """What each bucket was charged, in its meter's unit."""
    state: State = "live"
    ended_ms: float = 0.0
    answer: bytes | None = None
    note: bytes | None = None
    """Of whoever admitted the request; nothing here reads it."""
    settled_by: Usage | None = None
    settlement: Settlement | None = None

    @classmethod
    def of(cls, charge: Charge, now_ms: float) -> "Lease":
        """The lease that a charge asks for; at least one weighted token is reserved."""
        return cls(
            charge.lease_id,
            charge.scope,
            charge.tenant,
            charge.model,
            charge.node,
            charge.prompt_tokens,
            charge.max_tokens,
            charge.input_cost,
            charge.output_cost,
            charge.cached_cost,
            charge.request_key,
            charge.request_digest,
            now_ms,
            now_ms + charge.ttl_ms,
            max(float(LEAST_TOKENS), charge.prompt_tokens * charge.input_cost + charge.max_tokens * charge.output_cost),
        )

    def pay(self, buckets: tuple[Bucket, ...], prices: tuple[float, ...], brought: Iterable[Bucket]) -> None:
        """Note what it costs, and weigh it with `brought`, those of its buckets that no lease before it was weighed with."""
        self.buckets, self.prices = buckets, prices
        texts = (self.tenant, self.model, *(self.request_key or ())[-1:])
        self.size_bytes = RECORD_BYTES + sum(map(getsizeof, texts))
        for bucket in brought:
            self.size_bytes += BUCKET_BYTES + getsizeof(bucket.key[-1])

    @property
    def tokens_reserved(self) -> int:
        """Real tokens, at least one."""
        return max(LEAST_TOKENS, self.prompt_tokens + self.max_tokens)

    def used(self, usage: Usage) -> tuple[float, tuple[str, ...]]:
        """Weighted tokens of a report, and flags for what in it could not be taken as it stands."""
        flags = []
        prompt, completion, cached = usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens
        if prompt is None or prompt < 0:
            prompt, flags = self.prompt_tokens, ["estimated"]
        if completion is None or completion < 0:
            completion, flags = self.max_tokens, ["estimated"]
        if not 0 <= cached <= prompt:
            cached = 0
            flags.append("cached_implausible")
        if completion > self.max_tokens:
            flags.append("over_reserved")
        weighted = (prompt - cached) * self.input_cost + cached * self.cached_cost + completion * self.output_cost
        return weighted, tuple(flags)

    def view(self, now_ms: float) -> LiveLease:
        """What operators see of a live lease."""
        return LiveLease(
            self.lease_id,
            self.scope,
            self.tenant,
            self.model,
            self.node,
            self.tokens_reserved,
            age_ms=now_ms - self.started_ms,
            expires_in_ms=self.expires_ms - now_ms,
        )
