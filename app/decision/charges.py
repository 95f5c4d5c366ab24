"""From a request and its terms to what it spends: one bucket per limit, owned by whom the limit names."""

from app.catalog.models import ModelSpec
from app.decision.decision import Facts
from app.decision.request import Asking, DecideRequest
from app.limiter.charge import Bucket, Charge
from app.policy.terms import Limit, Terms

MOST_KEPT = 1_000
"""Owners whose buckets are kept, each with its terms some 3 KB; past it all are made anew, as they are after each new snapshot."""


HELD = ("concurrency", "tokens_in_flight")
"""What is held while a request runs: batches and caches of nodes."""


class Buckets:
    """The buckets that terms mean for an owner; warm requests share both, so they are made once."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str, str, str, str], tuple[Terms, tuple[Bucket, ...]]] = {}

    def of(self, terms: Terms, request: DecideRequest, *, pool: str = "") -> tuple[Bucket, ...]:
        """One bucket per limit, with the factor of its dimension. Models of one pool share what their nodes hold."""
        subject = (request.subject and request.subject.id) or ""
        key = (id(terms), request.tenant, request.model, pool, subject)
        kept = self._kept.get(key)
        # What is kept holds its terms alive, so no other terms can have their id meanwhile.
        if kept is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            factors = dict(terms.factors)
            buckets = tuple(
                Bucket(
                    one.bucket, _owner(one, request, pool, subject), one.dimension, one.limit, one.burst, factors.get(one.dimension, 1.0)
                )
                for one in terms.limits
            )
            kept = self._kept[key] = (terms, buckets)
        return kept[1]


def reserved_tokens(request: DecideRequest, spec: ModelSpec) -> int:
    """Output tokens that a request may generate in all; without `max_tokens` the model's default, per choice."""
    return (spec.default_max_tokens if request.max_tokens is None else request.max_tokens) * request.n


def charges(asking: Asking, spec: ModelSpec, terms: Terms, buckets: tuple[Bucket, ...], facts: Facts, *, ttl_ms: float) -> Charge:
    """The charge of one admitted request."""
    request = asking.request
    return Charge(
        lease_id=facts.id,
        buckets=buckets,
        prompt_tokens=request.prompt_tokens,
        max_tokens=reserved_tokens(request, spec),
        requests_cost=terms.cost.requests,
        input_cost=terms.cost.input,
        output_cost=terms.cost.output,
        cached_cost=terms.cost.cached,
        ttl_ms=ttl_ms,
        scope=asking.caller.key_id,
        tenant=request.tenant,
        model=request.model,
        request_key=asking.key,
        request_digest=asking.digest,
        node=facts.node,
    )


def _owner(limit: Limit, request: DecideRequest, pool: str, subject: str) -> tuple[str, ...]:
    match limit.bucket:
        case "tenant":
            return ("tenant", request.tenant)
        case "tenant_model":
            return ("tenant_model", request.tenant, request.model)
        case "model":
            return ("model", pool if pool and limit.dimension in HELD else request.model)
        case "subject":
            # Callers without a subject id share one bucket of the tenant, so that leaving it out gains nothing.
            return ("subject", request.tenant, subject)
        case _:
            return ("site",)
